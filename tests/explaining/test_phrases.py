"""Training on the labelled phrases of a treebank: what the sets hold, how they are read, what a phrase weighs."""

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from support import planted
from support.cli_runs import TINY, refused, succeed
from support.real_data import needs, sizes

from routepool.datasets import Example, load_named
from routepool.errors import InputError
from routepool.settings import Changes, named_preset, preset, text_settings
from routepool.training import Task, Trainer

SENTENCES = "1\ta warm and lovely film\n0\ta cold and dull film\n"
PHRASES = "1\twarm\n1\ta warm and lovely film\n0\tdull\n0\tcold and dull\n0\tdull\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("sst1", "sst2"):
        (tmp_path / name).mkdir()
        for part in ("train", "dev", "test"):
            (tmp_path / name / f"{part}.tsv").write_text(SENTENCES)
    (tmp_path / "sst_phrases").mkdir()
    for kind in ("fine", "binary"):
        (tmp_path / "sst_phrases" / f"{kind}.phrases.train.tsv.gz").write_bytes(gzip.compress(PHRASES.encode()))
    return tmp_path


@pytest.mark.parametrize("name", ["sst1", "sst2"])
def test_each_phrase_follows_the_sentences_once_and_a_sentence_is_no_phrase(name: str, folder: Path) -> None:
    parts = load_named(f"{name}-phrases", folder=folder)
    sentences = load_named(name, folder=folder)
    assert parts[1:] == sentences[1:]
    assert parts.train.examples[:2] == sentences.train.examples
    assert [(e.text, e.labels, e.is_phrase) for e in parts.train.examples[2:]] == [
        ("warm", ("1",), True),
        ("dull", ("0",), True),
        ("cold and dull", ("0",), True),
    ]


@needs("sst_phrases")
@pytest.mark.parametrize(
    ("name", "phrases"), [("sst1", 156_230 - 8_528), ("sst2", 77_187 - 6_906)], ids=["sst1", "sst2"]
)
def test_the_published_phrases_less_the_sentences_among_them(name: str, phrases: int) -> None:
    parts, sentences = load_named(f"{name}-phrases"), load_named(name)
    assert sizes(parts) == (sizes(sentences)[0] + phrases, *sizes(sentences)[1:])
    held_out = {example.text for part in parts[1:] for example in part.examples}
    assert not any(example.is_phrase and example.text in held_out for example in parts.train.examples)


@pytest.mark.parametrize("name", ["sst1", "sst2"])
@pytest.mark.parametrize("family", ["paper", "released", "best", "cnn"])
def test_settings_are_those_of_the_set_without_phrases(name: str, family: str) -> None:
    chosen = Changes.of(family, {}).preset(data=f"{name}-phrases")
    assert chosen == replace(preset(f"{family}-{name}"), text=text_settings(name))
    assert chosen.text.split == "spaces"


def test_the_best_preset_is_for_sentences_of_any_set_and_not_for_documents() -> None:
    assert named_preset("best", data="mine.csv") == preset("best-sst2")
    with pytest.raises(InputError, match="best is for sentences, the texts are documents; take the preset default"):
        named_preset("best", data="mine.csv", document=True)


def test_a_phrase_weighs_what_the_setting_says(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[list[float] | None] = []
    begin = Trainer.__init__

    def watch(self: Trainer, *args: object, **options: object) -> None:
        begin(self, *args, **options)  # type: ignore[arg-type]
        seen.append(None if self.train.weights is None else self.train.weights.tolist())

    monkeypatch.setattr(Trainer, "__init__", watch)
    sentences = planted.planted(6)
    task = Task([*sentences, *(Example(0, cue, ("glad",), is_phrase=True) for cue in ("merry", "sunny"))], sentences,
                planted.LABELS)  # fmt: skip
    for weight in (1.0, 0.25):
        planted.train(planted.tiny(epochs=1, phrase_weight=weight), of=task)
    planted.train(planted.tiny(epochs=1, phrase_weight=0.25), of=replace(task, weights=[1.0] * 8))
    total = 6 * 1 + 2 * 0.25
    assert seen[0] is None
    assert seen[1] == pytest.approx([8 / total] * 6 + [0.25 * 8 / total] * 2)
    assert seen[2] == [1.0] * 8  # weights of the task win


def test_a_run_remembers_both_files(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTEPOOL_DATA", str(folder))
    succeed("train", "sst2-phrases", "--out", tmp_path / "run", *TINY, "--set", "phrase_weight=0.5")
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert [(fact["role"], Path(fact["file"]).name) for fact in record["files"]] == [
        ("training", "train.tsv"),
        ("training", "binary.phrases.train.tsv.gz"),
        ("dev", "dev.tsv"),
    ]
    assert "train.tsv, binary.phrases.train.tsv.gz" in (tmp_path / "run" / "README.md").read_text()


def test_missing_phrases_are_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTEPOOL_DATA", str(folder))
    (folder / "sst_phrases" / "fine.phrases.train.tsv.gz").unlink()
    assert "fine.phrases.train.tsv.gz: no such file" in refused("train", "sst1-phrases")


@pytest.mark.parametrize("weight", [0, -1])
def test_a_phrase_without_weight_is_refused(weight: float, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ROUTEPOOL_DATA", str(folder))
    wrong = refused("train", "sst2-phrases", "--set", f"phrase_weight={weight}")
    assert "phrase_weight must be above 0" in wrong
