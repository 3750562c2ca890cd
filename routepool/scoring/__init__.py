"""A model on texts: logits, probabilities, labels, and how good they are.

>>> from routepool.scoring import RowLayout, predict_file
>>> predict_file("runs/reviews", "new.csv", "predicted.csv", RowLayout(top=2))  # doctest: +SKIP
"""

from routepool.scoring.backends import BACKENDS, Backend, Encoding, Engine, Prediction
from routepool.scoring.bulk import RowLayout, encode_file, predict_file
from routepool.scoring.predictor import Predictor

__all__ = [
    "BACKENDS",
    "Backend",
    "Encoding",
    "Engine",
    "Prediction",
    "Predictor",
    "RowLayout",
    "encode_file",
    "predict_file",
]
