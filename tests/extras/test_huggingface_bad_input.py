"""Encoders that cannot be used are refused in one sentence that says what to do."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file
from support import planted, tiny_encoder

from routepool.errors import InputError
from routepool.model import Classifier
from routepool.settings import PRETRAINED, ModelConfig, TextConfig
from routepool.training import fit


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tiny_encoder.write_encoder(tmp_path / "encoder")


def change_config(**values: Any) -> Callable[[Path], object]:
    def change(folder: Path) -> None:
        content = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps({**content, **values}))

    return change


def drop_a_weight(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["embeddings.word_embeddings.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        (lambda folder: (folder / "config.json").unlink(), r"wanted config\.json in it, got none"),
        (lambda folder: (folder / "tokenizer.json").unlink(), r"wanted tokenizer\.json in it.*fast tokenizer"),
        (lambda folder: (folder / "tokenizer.json").write_text("{}"), r"tokenizer\.json: it cannot be read"),
        (lambda folder: (folder / "config.json").write_text("no"), r"config\.json: wanted JSON"),
        (lambda folder: (folder / "config.json").write_text("{}"), r"model_type, got none"),
        (change_config(model_type="nobody-knows"), r"nobody-knows"),
        (
            change_config(hidden_size=17),
            r"config\.json: hidden_size and heads of the encoder must fit each other, got 17",
        ),
        (lambda folder: (folder / "model.safetensors").unlink(), r"its weights cannot be read"),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"1234567890"), r"its weights cannot be read"),
        (drop_a_weight, r"lacks embeddings\.word_embeddings\.weight"),
    ],
)
def test_a_folder_that_is_no_whole_encoder_is_refused(
    folder: Path, damage: Callable[[Path], object], told: str
) -> None:
    damage(folder)
    with pytest.raises(InputError, match=told) as caught:
        fit(planted.task(train=8, dev=4), planted.tiny(encoder=f"hf:{folder}"))
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"wanted a folder with config\.json, got nothing of that name"):
        PRETRAINED["hf"].read(str(tmp_path / "none"), TextConfig())


def test_a_name_that_the_hub_does_not_give_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from routepool.extras.huggingface import source

    def refuse(*args: object, **options: object) -> str:
        raise OSError("no network")

    monkeypatch.setattr(source, "snapshot_download", refuse)
    with pytest.raises(InputError, match=r"no such folder, and the hub gave no such model \(no network\)"):
        PRETRAINED["hf"].read("someone/nothing", TextConfig())


def test_a_tokenizer_of_another_encoder_is_refused(folder: Path) -> None:
    found = PRETRAINED["hf"].read(str(folder), TextConfig())
    with pytest.raises(InputError, match=r"knows ids below \d+, but its tokenizer has 5000"):
        PRETRAINED["hf"](5000, **found.options)


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({}, "needs its folder or name"),
        ({"architecture": {"model_type": "os.system"}}, r"model_type must be one of .*, got 'os\.system'"),
        ({"architecture": {"model_type": "t5"}}, "model_type must be one of .*, got 't5'"),
        ({"frozen": "no"}, "frozen must be true or false, got 'no'"),
        ({"before": [-5]}, "an id must be a whole number of at least 0, got -5"),
        ({"behind": [10_000]}, "an id must be at most"),
        ({"pieces": 2}, "pieces of a window"),
        ({"surprise": 1}, "surprise"),
    ],
)
def test_settings_of_a_saved_model_that_name_no_encoder_are_refused(
    folder: Path, options: dict[str, Any], told: str
) -> None:
    needed = PRETRAINED["hf"].read(str(folder), TextConfig()).options
    config = ModelConfig(encoder="hf", encoder_options={**needed, **options} if options else {})
    with pytest.raises(InputError, match=told):
        Classifier.build(config, vocabulary_size=10, classes=2)


def test_word_vectors_beside_a_pretrained_encoder_are_refused(folder: Path) -> None:
    task = planted.task(train=8, dev=4)
    with_vectors = type(task)(task.train, task.dev, task.labels, vectors="some.txt")
    with pytest.raises(InputError, match="word vectors of its own"):
        fit(with_vectors, planted.tiny(encoder=f"hf:{folder}"))


def test_a_missing_package_is_told_with_its_pip_line() -> None:
    script = (
        "import sys; sys.modules['transformers'] = None\n"
        "from routepool.settings import PRETRAINED\n"
        "try:\n    PRETRAINED['hf']\nexcept ImportError as error:\n    print(error)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True)
    assert 'pip install "routepool[hf]"' in done.stdout
