"""Hugging Face encoders: `ModelConfig(encoder="hf:FOLDER")`, fine-tuned or frozen."""

from routepool.extras.huggingface.encoder import HuggingFaceEncoder

__all__ = ["HuggingFaceEncoder"]
