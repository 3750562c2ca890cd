"""What a model does not read or know of a text is told by every door, and once."""

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest
import tokenizers
from support import planted
from support.cli_runs import TINY, sentences, succeed, train_tiny, write_csv

from routepool import TextClassifier, UnreadTextWarning
from routepool.persistence import SavedModel
from routepool.scoring.predictor import Predictor, of_saved
from routepool.settings import TextConfig, change
from routepool.text import PieceTokenizer, Tokenizer

WORDS = planted.planted(1, seed=3)[0].text.split()
LONG, UNKNOWN, EMPTY = " ".join([WORDS[0]] * 9), "qqq zzz .", ""
TEXTS = [WORDS[0], LONG, UNKNOWN, EMPTY]
READINGS = [(0, 1), (4, 5), (0, 0), (0, 0)]
LINES = (
    "texts longer than the model reads: 1 of 4, 4 words left unread (texts[1]); "
    "texts without a word that the model knows: 2 of 4, their results mean nothing (texts[2], texts[3])"
)


@pytest.fixture(scope="module")
def saved() -> SavedModel:
    saved = planted.train(planted.tiny(epochs=1)).saved
    assert isinstance(saved.tokenizer, Tokenizer)
    return replace(saved, tokenizer=replace(saved.tokenizer, config=change(saved.tokenizer.config, max_words=5)))


@pytest.fixture(scope="module")
def predictor(saved: SavedModel) -> Predictor:
    return of_saved(saved)


@pytest.mark.parametrize("method", ["predict", "predict_proba", "logits", "encode", "stream_vectors"])
def test_plain_results_come_with_one_warning_at_the_line_that_asked(predictor: Predictor, method: str) -> None:
    with pytest.warns(UnreadTextWarning) as caught:
        list(getattr(predictor, method)(TEXTS))
    assert [str(one.message) for one in caught] == [LINES]
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        list(getattr(predictor, method)([WORDS[0]]))


def test_results_that_have_room_for_it_say_it_themselves(predictor: Predictor) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for results in (predictor.predictions(TEXTS), predictor.stream(TEXTS), predictor.stream_encodings(TEXTS)):
            assert [tuple(one.reading) for one in results] == READINGS
        assert [(one.unread, one.known) for one in predictor.explain(TEXTS)] == READINGS


def test_of_many_texts_the_first_five_are_named(predictor: Predictor) -> None:
    with pytest.warns(UnreadTextWarning, match=r"knows: 9 of 10, .* \(texts\[1\], .* texts\[5\], \.\.\.\)$"):
        predictor.predict([WORDS[0], *[UNKNOWN] * 9])


def test_the_estimator_warns_of_what_it_does_not_read() -> None:
    texts, labels = [f"{text} , and more of it" for text, _ in sentences(40)], [label for _, label in sentences(40)]
    small = {"hidden_size": 4, "embedding_size": 4, "epochs": 1, "vectors": "none", "random_state": 0}
    model = TextClassifier(settings={"max_words": 6}, **small)  # type: ignore[arg-type]
    with pytest.warns(UnreadTextWarning, match="36 training texts too long: 180 words"):
        model.fit(texts, labels)
    for method in ("predict", "predict_proba", "decision_function", "transform"):
        with pytest.warns(UnreadTextWarning, match="texts longer than the model reads: 1 of 2") as caught:
            getattr(model, method)([texts[0], "great"])
        assert len(caught) == 1


def test_pieces_are_known_unless_they_stand_for_what_has_none() -> None:
    words = tokenizers.Tokenizer(tokenizers.models.WordPiece({"[UNK]": 0, "film": 1, "##s": 2, ".": 3}))
    words.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
    unigram = tokenizers.Tokenizer(tokenizers.models.Unigram([("<unk>", 0.0), ("film", -1.0)], unk_id=0))
    for pieces, text, known in (
        (words, "films qqq .", 2),
        (words, "qqq .", 0),
        (unigram, "film", 1),
        (unigram, "q", 0),
    ):
        tokenizer = PieceTokenizer(TextConfig(), pieces.to_str())
        assert tokenizer.reading(tokenizer.encode([text])[0]) == (0, known)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return train_tiny(tmp_path_factory.mktemp("unread"), "--set", "max_words=6")


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return write_csv(tmp_path / "new.csv", [("a great film", "good"), ("great " * 20, "good"), ("qqq zzz", "bad")])


TOLD = [
    "new.csv: texts longer than the model reads: 1 of 3, 14 words left unread (row 3)",
    "new.csv: texts without a word that the model knows: 1 of 3, their results mean nothing (row 4)",
]


@pytest.mark.parametrize("command", [["predict"], ["encode", "--out", "vectors.npy"], ["evaluate"], ["explain"]])
def test_the_command_line_names_the_rows_at_the_end(
    command: list[str], run: Path, new: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    name, *options = command
    assert succeed(name, run, new.name, *options).err.splitlines() == TOLD
    write_csv(new, sentences(3))
    assert succeed(name, run, new.name, *options, *(["--force"] if options else [])).err == ""


def test_json_lines_tell_it_of_every_row(run: Path, new: Path) -> None:
    rows = [json.loads(line) for line in succeed("predict", run, new, "--format", "jsonl").out.splitlines()]
    assert [(row["unread"], row["known"]) for row in rows] == [(0, 3), (14, 6), (0, 0)]


def test_training_tells_what_it_could_not_read_of_the_dev_set(new: Path, tmp_path: Path) -> None:
    data = write_csv(tmp_path / "reviews.csv", sentences(60))
    called = succeed("train", data, "--dev", new, "--out", tmp_path / "run", *TINY)
    assert called.err.splitlines() == [f"{tmp_path}/{TOLD[1]}"]
