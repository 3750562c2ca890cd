"""The classes that a setting names: tables that are filled when they are first asked."""

from typing import TYPE_CHECKING

from routepool.registry import Extra, Registry, origin_of
from routepool.settings.declarations import ModelConfig

if TYPE_CHECKING:
    from routepool.layers import Aggregator, Encoder, Head, PretrainedEncoder

AGGREGATORS: "Registry[type[Aggregator]]" = Registry("aggregator", home="routepool.layers")
ENCODERS: "Registry[type[Encoder]]" = Registry("encoder", home="routepool.layers")
HEADS: "Registry[type[Head]]" = Registry("head", home="routepool.layers")
PRETRAINED: "Registry[type[PretrainedEncoder]]" = Registry(
    "pre-trained encoder", {"hf": Extra("routepool.extras.huggingface", "hf")}
)


def plugins_of(config: ModelConfig) -> dict[str, str]:
    """Where those of a model's classes come from that are not routepool's: setting -> class and package.

    >>> plugins_of(ModelConfig(aggregator="max"))
    {}
    """
    encoder = PRETRAINED if config.encoder in PRETRAINED.names() else ENCODERS
    used = {"aggregator": AGGREGATORS[config.aggregator], "encoder": encoder[config.encoder]}
    if config.upper_encoder:
        used["upper_encoder"] = ENCODERS[config.upper_encoder]
    return {setting: origin for setting, cls in used.items() if (origin := origin_of(cls)) is not None}
