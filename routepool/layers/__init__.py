"""Encoders, aggregators and heads: the layers of a model, and what a new one of each is made of.

Letters for the axes of tensors, in this room and above it:

B batch  S sentences  T tokens  D features  M parts of a vector: capsules, rows  C size of a part  K classes
"""

from routepool.layers.aggregation.attention import MultiHopAttention, SelfAttention, StructuredAttention
from routepool.layers.aggregation.pooling import MaxPooling, MeanPooling
from routepool.layers.aggregation.routing import ReverseRouting, Round, StandardRouting, squash
from routepool.layers.blocks import Embedding, Perceptron
from routepool.layers.contract import (
    Aggregator,
    Encoder,
    Head,
    Parts,
    register_aggregator,
    register_encoder,
    register_head,
)
from routepool.layers.encoders import CNN, BiGRU, BiLSTM, NoEncoder, Pretrained, PretrainedEncoder

__all__ = [
    "CNN",
    "Aggregator",
    "BiGRU",
    "BiLSTM",
    "Embedding",
    "Encoder",
    "Head",
    "MaxPooling",
    "MeanPooling",
    "MultiHopAttention",
    "NoEncoder",
    "Parts",
    "Perceptron",
    "Pretrained",
    "PretrainedEncoder",
    "ReverseRouting",
    "Round",
    "SelfAttention",
    "StandardRouting",
    "StructuredAttention",
    "register_aggregator",
    "register_encoder",
    "register_head",
    "squash",
]
