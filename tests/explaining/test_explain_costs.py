"""What an explanation costs is known before it is begun, and is what is then read."""

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from support import planted
from torch import Tensor, nn

from routepool.errors import UnknownNameError
from routepool.explaining import METHODS, Subject, costs_of, explain
from routepool.explaining.methods import COSTS, STEPS
from routepool.model import Level

SENTENCE = "a merry cup of tea on the table ."
TEXTS = [SENTENCE, " ".join([SENTENCE] * 4), " ".join([SENTENCE] * 12)]


@pytest.fixture(scope="module", params=[1, 2])
def subject(request: pytest.FixtureRequest) -> Subject:
    of = planted.task(sentences=request.param)
    return Subject.of(planted.train(planted.quick(epochs=1, depth=request.param), of=of).saved)


@contextmanager
def counting(subject: Subject) -> Iterator[list[int]]:
    """The words that the model's encoder of words reads meanwhile, once for every batch."""
    read: list[int] = []

    def count(_: nn.Module, inputs: tuple[Tensor, Tensor]) -> None:
        read.append(int(inputs[1].sum()))

    level = subject.model.levels[0]
    assert isinstance(level, Level)
    handle = level.encoder.register_forward_pre_hook(count)
    try:
        yield read
    finally:
        handle.remove()


def test_every_method_has_a_cost() -> None:
    assert set(COSTS) == set(METHODS.names())


@pytest.mark.parametrize("method", METHODS.names())
def test_no_more_is_read_than_the_cost_says(subject: Subject, method: str) -> None:
    for text, cost in zip(TEXTS, costs_of(subject, TEXTS, method=method), strict=True):
        with counting(subject) as read:
            explain(subject, [text], method=method)
        assert 0 < sum(read) <= cost


def test_leaving_a_word_out_of_a_document_reads_its_sentence_and_not_the_others() -> None:
    subject = Subject.of(planted.train(planted.quick(epochs=1, depth=2), of=planted.task(sentences=3)).saved)
    text = " ".join(f"{word} cup of tea rains here ." for word in ("Merry", "Grim", "Warm", "Cold", "Dull", "Great"))
    (encoded,) = subject.encode([text])
    words, sentences = len(encoded.ids), len(encoded.lengths)
    assert sentences == 6
    with counting(subject) as read:
        explain(subject, [text], method="leave-one-out")
    # The whole text twice, and each of its sentences without each of its words.
    assert sum(read) <= 2 * words + sum(length * (length - 1) for length in encoded.lengths.tolist())


def test_costs_grow_as_the_methods_do(subject: Subject) -> None:
    words = [len(one.ids) for one in subject.encode(TEXTS)]
    assert costs_of(subject, TEXTS, method="gradient") == [4 * number for number in words]
    assert costs_of(subject, TEXTS, method="integrated-gradients") == [(1 + 3 * STEPS) * number for number in words]
    if subject.depth == 1:
        assert costs_of(subject, TEXTS, method="leave-one-out") == [number + number**2 for number in words]
    assert costs_of(subject, TEXTS) == costs_of(subject, TEXTS, method="integrated-gradients")
    assert costs_of(subject, ["", " "], method="leave-one-out") == [0, 0]


def test_an_unknown_method_has_no_cost(subject: Subject) -> None:
    with pytest.raises(UnknownNameError, match="unknown method 'gradeint', did you mean 'gradient'"):
        costs_of(subject, TEXTS, method="gradeint")
