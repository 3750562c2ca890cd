"""Text classification by dynamic routing: small models that show which word went where.

The flow, which the modules follow:

    text -> sentences -> tokens -> vectors -> encoding -> aggregation -> prediction

>>> import torch
>>> from routepool import StandardRouting
>>> layer = StandardRouting(400, capsules=5, capsule_size=200, iterations=3)
>>> vector, coupling = layer(torch.randn(2, 7, 400), torch.ones(2, 7, dtype=torch.bool))
>>> vector.shape, coupling.shape
(torch.Size([2, 1000]), torch.Size([2, 7, 5]))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from routepool.errors import UnreadTextWarning as UnreadTextWarning
    from routepool.estimator.classifier import TextClassifier as TextClassifier
    from routepool.layers import MaxPooling as MaxPooling
    from routepool.layers import MeanPooling as MeanPooling
    from routepool.layers import MultiHopAttention as MultiHopAttention
    from routepool.layers import ReverseRouting as ReverseRouting
    from routepool.layers import SelfAttention as SelfAttention
    from routepool.layers import StandardRouting as StandardRouting
    from routepool.layers import StructuredAttention as StructuredAttention
    from routepool.model import Classifier as Classifier
    from routepool.runs.api import resume as resume
    from routepool.runs.api import train as train
    from routepool.scoring.predictor import Predictor as Predictor
    from routepool.scoring.predictor import load as load

__version__ = "0.1.0"

# Resolved on first use: `import routepool` alone must not wait seconds for torch.
_HOMES = {
    "Classifier": "routepool.model",
    "MaxPooling": "routepool.layers",
    "MeanPooling": "routepool.layers",
    "MultiHopAttention": "routepool.layers",
    "Predictor": "routepool.scoring.predictor",
    "ReverseRouting": "routepool.layers",
    "SelfAttention": "routepool.layers",
    "StandardRouting": "routepool.layers",
    "StructuredAttention": "routepool.layers",
    "TextClassifier": "routepool.estimator.classifier",
    "UnreadTextWarning": "routepool.errors",
    "load": "routepool.scoring.predictor",
    "resume": "routepool.runs.api",
    "train": "routepool.runs.api",
}

__all__ = sorted(_HOMES)  # noqa: PLE0605


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'routepool' has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *_HOMES]
