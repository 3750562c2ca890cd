"""What users of a frozen encoder rely on: its states are computed once, and no file on disk can change a result."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from support import planted, tiny_encoder
from support.tiny_vectors import flipped
from torch import Tensor

from routepool.extras.huggingface.encoder import HuggingFaceEncoder
from routepool.extras.huggingface.states import StatesCache, folder_of
from routepool.scoring.predictor import of_saved
from routepool.settings import Preset, TextConfig, change
from routepool.text import PieceTokenizer
from routepool.training import Fitted, fit

IDS = torch.tensor([7, 8, 9])
STATES = torch.arange(6.0).reshape(3, 2)


def refuse(ids: Tensor) -> Tensor:
    raise AssertionError("computed again")


def give(states: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda ids: states


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_encoder.write_encoder(tmp_path_factory.mktemp("encoder"))


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def frozen(folder: Path, *, seed: int = 0) -> Fitted:
    preset = planted.tiny(encoder=f"hf:{folder}", epochs=2, seed=seed)
    model = change(preset.model, encoder_options={"frozen": True})
    return fit(planted.task(train=24, dev=8), Preset(model, preset.training, TextConfig(max_words=0)))


def counting(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many windows each pass of the encoder reads."""
    passes: list[int] = []
    compute = HuggingFaceEncoder.one_pass

    def counted(self: HuggingFaceEncoder, windows: list[Tensor]) -> list[Tensor]:
        passes.append(len(windows))
        return compute(self, windows)

    monkeypatch.setattr(HuggingFaceEncoder, "one_pass", counted)
    return passes


def test_what_was_computed_once_is_read_the_next_time(tmp_path: Path) -> None:
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, give(STATES)), STATES)
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, refuse), STATES)
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS[:2], give(STATES[:2])), STATES[:2])


@pytest.mark.parametrize(
    "damage",
    [
        lambda content: content[:-1],
        lambda content: b"",
        lambda content: content[:20] + bytes([content[20] ^ 1]) + content[21:],
        lambda content: content + b"more",
    ],
    ids=["cut short", "empty", "a bit flipped", "longer"],
)
def test_a_damaged_file_is_computed_again(
    tmp_path: Path, damage: Callable[[bytes], bytes], caplog: pytest.LogCaptureFixture
) -> None:
    StatesCache(tmp_path, size=2).get(IDS, give(STATES))
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, give(STATES + 1)), STATES + 1)
    assert caplog.text.count("the cache is broken and made again") == 1
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, refuse), STATES + 1)


def test_no_flipped_bit_gives_other_states(tmp_path: Path) -> None:
    StatesCache(tmp_path, size=2).get(IDS, give(STATES))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    for place in range(8 * len(whole)):
        file.write_bytes(flipped(whole, place))
        assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, give(STATES)), STATES)


def test_the_file_of_another_text_is_computed_again(tmp_path: Path) -> None:
    StatesCache(tmp_path, size=2).get(IDS, give(STATES))
    (first,) = tmp_path.iterdir()
    StatesCache(tmp_path, size=2).get(IDS + 1, give(STATES + 1))
    (second,) = (file for file in tmp_path.iterdir() if file != first)
    first.write_bytes(second.read_bytes())
    assert torch.equal(StatesCache(tmp_path, size=2).get(IDS, give(STATES)), STATES)


def test_the_folder_grows_to_its_bound_and_no_further(tmp_path: Path) -> None:
    bound = 2 * (16 + STATES.numel() * 4)
    for start in range(5):
        StatesCache(tmp_path, size=2, most=bound).get(IDS + start, give(STATES))
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == bound


def test_a_folder_that_cannot_be_written_costs_only_time(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("in the way")
    cache = StatesCache(tmp_path / "file" / "states", size=2)
    for _ in range(2):
        assert torch.equal(cache.get(IDS, give(STATES)), STATES)
    assert caplog.text.count("not kept") == 1


def test_every_encoder_has_a_folder_of_its_own() -> None:
    weights = {"a": torch.ones(2)}
    places = {
        folder_of(weights, {"window": 1}),
        folder_of(weights, {"window": 2}),
        folder_of({"a": torch.zeros(2)}, {"window": 1}),
        folder_of({"b": torch.ones(2)}, {"window": 1}),
    }
    assert len(places) == 4


def test_later_epochs_and_later_trainings_compute_no_states(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    passes = counting(monkeypatch)
    frozen(folder)
    task = planted.task(train=24, dev=8)
    texts = sorted({example.text for example in (*task.train, *task.dev)})
    pieces = PieceTokenizer(TextConfig(), tiny_encoder.tokenizer().to_str()).encode(texts)
    windows = sum(1 if len(text.ids) <= 30 else 2 for text in pieces)
    assert passes == [1] * windows  # each once, though there are two epochs
    frozen(folder, seed=1)
    assert len(passes) == windows


def test_kept_states_change_no_weight_by_a_bit(folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    cold = frozen(folder)
    frozen(folder, seed=1)
    assert planted.identical(frozen(folder), cold)
    monkeypatch.setenv("ROUTEPOOL_CACHE", str(tmp_path / "another"))
    frozen(folder, seed=1)  # fills the cache in another order
    assert planted.identical(frozen(folder), cold)


def test_nothing_of_the_texts_that_are_predicted_is_kept(folder: Path, cache: Path) -> None:
    fitted = frozen(folder)
    before = sorted(cache.rglob("*"))
    of_saved(fitted.saved).predict(["A private letter."])
    assert sorted(cache.rglob("*")) == before
