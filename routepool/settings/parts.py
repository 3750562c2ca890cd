"""The classes that a setting names: tables that are filled when they are first asked."""

from typing import TYPE_CHECKING

from routepool.registry import Extra, Registry

if TYPE_CHECKING:
    from routepool.layers import Aggregator, Encoder, Head, PretrainedEncoder

AGGREGATORS: "Registry[type[Aggregator]]" = Registry("aggregator", home="routepool.layers")
ENCODERS: "Registry[type[Encoder]]" = Registry("encoder", home="routepool.layers")
HEADS: "Registry[type[Head]]" = Registry("head", home="routepool.layers")
PRETRAINED: "Registry[type[PretrainedEncoder]]" = Registry(
    "pre-trained encoder", {"hf": Extra("routepool.extras.huggingface", "hf")}
)
