"""Vectors of tokens -> one vector: pooling, attention and dynamic routing behind one contract."""

from routepool.aggregation.attention import MultiHopAttention, SelfAttention, StructuredAttention
from routepool.aggregation.base import AGGREGATORS, Aggregator, register
from routepool.aggregation.pooling import MaxPooling, MeanPooling
from routepool.aggregation.routing import Iteration, ReverseRouting, StandardRouting
from routepool.aggregation.squashing import squash

__all__ = [
    "AGGREGATORS",
    "Aggregator",
    "Iteration",
    "MaxPooling",
    "MeanPooling",
    "MultiHopAttention",
    "ReverseRouting",
    "SelfAttention",
    "StandardRouting",
    "StructuredAttention",
    "register",
    "squash",
]
