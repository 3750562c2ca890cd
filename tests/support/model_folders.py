"""Tiny models for the tests of saving and loading, and ways to spoil their folders."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load, save
from torch import Tensor

from routepool.model import Classifier
from routepool.persistence import SavedModel
from routepool.persistence.folder import Entry
from routepool.persistence.saving import seal
from routepool.settings import ModelConfig, TrainingConfig
from routepool.text import Tokenizer

TEXTS = ["The soup was warm and the bread was fresh.", "Cold soup, stale bread!", "Nobody came."]
CONFIG = ModelConfig(
    embedding_size=3, hidden_size=2, head_size=3, aggregator_options={"capsules": 2, "capsule_size": 2}
)
NEEDED = ("config.json", "tokenizer.json", "model.safetensors")


def tiny_model(*, seed: int = 0, config: ModelConfig = CONFIG, **values: Any) -> SavedModel:
    tokenizer = Tokenizer.build(TEXTS[:2])
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = Classifier.build(config, vocabulary_size=len(tokenizer.words), classes=2).eval()
        for parameter in model.parameters():  # far from their small initial values, so that each one matters
            torch.nn.init.normal_(parameter)
    made = SavedModel(
        classifier=model,
        tokenizer=tokenizer,
        model_config=config,
        labels=("cold", "warm"),
        temperature=1.25,
        columns={"text": "review", "label": "stars", "header": True},
        training=TrainingConfig(epochs=3),
        provenance={"data": {"file": "soups.csv", "rows": 2}, "seed": seed},
    )
    return replace(made, **values)


def overflowing() -> SavedModel:
    """Every weight is finite, but the products with the vector of one word, soup, are not."""
    config = ModelConfig(embedding_size=3, hidden_size=2, head_size=3, encoder="cnn", aggregator="max")
    saved = tiny_model(config=config)
    assert isinstance(saved.tokenizer, Tokenizer)
    weights = saved.classifier.state_dict()
    weights["levels.0.embedding.weight"][saved.tokenizer.words.index("soup")] = 3e38
    for name, each in weights.items():
        if "encoder" in name and each.ndim > 1:
            each.abs_().mul_(100)
        assert torch.isfinite(each).all()
    return saved


def logits(saved: SavedModel) -> Tensor:
    encoded = saved.tokenizer.encode(TEXTS)
    ids = torch.zeros(len(encoded), max(len(one.ids) for one in encoded), dtype=torch.long)
    for row, one in zip(ids, encoded, strict=True):
        row[: len(one.ids)] = torch.from_numpy(one.ids)
    with torch.no_grad():
        computed: Tensor = saved.classifier(ids, ids != 0)
    return computed


def reseal(folder: Path, name: str, content: bytes) -> None:
    """Change a file as somebody would who also corrects the manifest."""
    (folder / name).write_bytes(content)
    contents = {each: (folder / each).read_bytes() for each in NEEDED}
    entries = [Entry(each, len(data), hashlib.sha256(data).hexdigest()) for each, data in contents.items()]
    (folder / "manifest.json").write_bytes(seal(entries))


def change_config(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    reseal(folder, "config.json", json.dumps({**config, **values}).encode())


def change_model_config(folder: Path, **values: Any) -> None:
    config = json.loads((folder / "config.json").read_bytes())
    change_config(folder, model_config={**config["model_config"], **values})


def change_tensors(folder: Path, changes: Mapping[str, Tensor | None]) -> None:
    tensors = {**load((folder / "model.safetensors").read_bytes()), **changes}
    reseal(folder, "model.safetensors", save({name: one for name, one in tensors.items() if one is not None}))
