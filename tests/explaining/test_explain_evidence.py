"""On texts whose evidence is known, the word that counts most is a piece of it."""

import pytest
from support import evidence, planted

from routepool.explaining import Subject, explain
from routepool.explaining.methods import DEFAULT_METHOD
from routepool.training import Task


@pytest.fixture(scope="module")
def subject() -> Subject:
    settings = planted.quick(epochs=12, patience=12, batch_size=32, smallest_batch=32, window=200, learning_rate=0.01)
    task = Task(evidence.texts(1500, seed=0), evidence.texts(150, seed=1), planted.LABELS)
    fitted = planted.train(settings, of=task)
    assert fitted.progress.best_score > 0.97  # one who has not learned the rules cannot be asked for them
    return Subject.of(fitted.saved)


def hits(subject: Subject, method: str) -> float:
    shown = explain(subject, [one.text for one in evidence.texts(300, seed=9)], method=method)
    top = [one.of(max(one.words, key=lambda word: word.score)) for one in shown]
    return sum(word in evidence.EVIDENCE for word in top) / len(top)


def test_the_top_word_is_evidence_in_nearly_every_text(subject: Subject) -> None:
    assert hits(subject, DEFAULT_METHOD) >= 0.95


def test_leaving_words_out_finds_it_too(subject: Subject) -> None:
    assert hits(subject, "leave-one-out") >= 0.95
