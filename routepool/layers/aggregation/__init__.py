"""Vectors of tokens -> one vector: pooling, attention and dynamic routing behind one contract."""

from routepool.layers.aggregation.attention import MultiHopAttention, SelfAttention, StructuredAttention
from routepool.layers.aggregation.base import Aggregator, Parts, register
from routepool.layers.aggregation.pooling import MaxPooling, MeanPooling
from routepool.layers.aggregation.routing import Iteration, ReverseRouting, StandardRouting
from routepool.layers.aggregation.squashing import squash

__all__ = [
    "Aggregator",
    "Iteration",
    "MaxPooling",
    "MeanPooling",
    "MultiHopAttention",
    "Parts",
    "ReverseRouting",
    "SelfAttention",
    "StandardRouting",
    "StructuredAttention",
    "register",
    "squash",
]
