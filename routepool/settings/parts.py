"""The classes that a setting names: tables that are filled when they are first asked."""

from typing import TYPE_CHECKING

from routepool.registry import Extra, Registry

if TYPE_CHECKING:
    from routepool.layers.aggregation import Aggregator
    from routepool.layers.encoders import Encoder, PretrainedEncoder

AGGREGATORS: "Registry[type[Aggregator]]" = Registry("aggregator", home="routepool.layers.aggregation")
ENCODERS: "Registry[type[Encoder]]" = Registry("encoder", home="routepool.layers.encoders")
PRETRAINED: "Registry[type[PretrainedEncoder]]" = Registry(
    "pre-trained encoder", {"hf": Extra("routepool.extras.huggingface", "hf")}
)
