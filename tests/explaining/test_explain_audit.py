"""The audit: words are removed as it says, and its bounds are where they should be."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from support import planted

from routepool.errors import InputError, UnknownNameError
from routepool.explaining import Audit, Subject, audit
from routepool.explaining.audits import LEAVE_ONE_OUT, RANDOM, SEARCH, SHARES
from routepool.explaining.removal import by_rarity, by_score, by_search, logits_without, without_each
from routepool.scoring.torch_backend import logits_of
from routepool.text import UNKNOWN

TEXTS = [example.text for example in planted.planted(12, seed=5)]


@pytest.fixture(scope="module")
def subject() -> Subject:
    return Subject.of(planted.train(planted.quick(epochs=5)).saved)


@pytest.fixture(scope="module")
def documents() -> Subject:
    return Subject.of(planted.train(planted.quick(epochs=5, depth=2), of=planted.task(sentences=3)).saved)


@pytest.fixture(scope="module")
def found(subject: Subject) -> Audit:
    return audit(subject, TEXTS, random_orders=5)


def test_a_dropped_word_is_not_written(subject: Subject, documents: Subject) -> None:
    kept = np.array([True, False, True, True, False])
    (text,) = subject.encode(["a merry cup of tea"])
    expected = logits_of(subject.model, subject.encode(["a cup of"]))
    np.testing.assert_allclose(logits_without(subject, [(text, kept)], "drop"), expected, atol=1e-6)
    (text,) = documents.encode(["Merry tea. It rains."])
    kept = np.array([False, False, False, True, True, True])  # a sentence without words is none
    expected = logits_of(documents.model, documents.encode(["It rains."]))
    np.testing.assert_allclose(logits_without(documents, [(text, kept)], "drop"), expected, atol=1e-6)


def test_an_unknown_word_is_one_no_vocabulary_has(subject: Subject) -> None:
    (text,) = subject.encode(["a merry cup"])
    (other,) = subject.encode(["a zzyzx cup"])
    assert other.ids[1] == UNKNOWN
    found = logits_without(subject, [(text, np.array([True, False, True]))], "unknown")
    np.testing.assert_allclose(found, logits_of(subject.model, [other]), atol=1e-6)


def test_a_masked_word_is_read_but_not_aggregated(subject: Subject) -> None:
    (text,) = subject.encode(["a merry cup"])
    kept = np.array([[True, False, True]])
    level = subject.model.levels[0]
    with torch.no_grad():
        states = level.encoder(level.embedding(torch.tensor(text.ids[None]).long()))  # type: ignore[operator]
        real = torch.from_numpy(kept)
        expected = subject.model.head(None, real, level.aggregator(states, real)[0])  # type: ignore[operator]
    other = subject.encode(["a cup of bread and tea"])[0]  # of another length, in the same batch
    found = logits_without(subject, [(text, kept[0]), (other, np.ones(6, dtype=bool))], "masked")
    np.testing.assert_allclose(found[:1], expected.numpy(), atol=1e-5)
    np.testing.assert_allclose(found[1:], logits_of(subject.model, [other]), atol=1e-5)


def test_masked_documents_keep_their_rows(documents: Subject) -> None:
    texts = documents.encode(["Merry tea. It rains outside our window.", "A cup."])
    whole = [(one, np.ones(len(one.ids), dtype=bool)) for one in texts]
    np.testing.assert_allclose(logits_without(documents, whole, "masked"), logits_of(documents.model, texts), atol=1e-5)


def test_nothing_kept_is_an_empty_text(subject: Subject) -> None:
    (text,) = subject.encode(["a merry cup"])
    nothing = [(text, np.zeros(3, dtype=bool))]
    np.testing.assert_allclose(
        logits_without(subject, nothing, "drop"), logits_of(subject.model, subject.encode([""])), atol=1e-6
    )


def test_an_unknown_removal_is_refused(subject: Subject) -> None:
    with pytest.raises(UnknownNameError, match="unknown removal 'dropp', did you mean 'drop'"):
        logits_without(subject, [], "dropp")


def test_good_orders_lie_between_the_bounds(found: Audit) -> None:
    for removal in ("drop", "unknown"):
        floor, method, ceiling = (found.row(order, removal) for order in (RANDOM, "integrated-gradients", SEARCH))
        values = [row.normal_comprehensiveness.value for row in (floor, method, ceiling)]
        assert values[0] < values[1] <= values[2] + 0.02
        values = [row.normal_sufficiency.value for row in (floor, method, ceiling)]
        assert values[0] > values[1] >= values[2] - 0.02


def test_search_is_never_worse_than_leaving_one_out(subject: Subject) -> None:
    for text in TEXTS[:4]:
        (encoded,) = subject.encode([text])
        target = int(logits_of(subject.model, [encoded]).argmax())
        variants = list(without_each(encoded, np.arange(len(encoded.ids))))
        evidence = subject.evidence_of(logits_without(subject, variants, "drop"), np.full(len(variants), target))
        start = by_score(-evidence)
        sizes = [1, 2, len(start) // 2]
        orders = by_search(subject, encoded, target, start=start, removal="drop", keep=False, sizes=sizes)
        for size, order in zip(sizes, orders, strict=True):
            assert sorted(order.tolist()) == list(range(len(start)))
            kept = [np.ones(len(start), dtype=bool) for _ in range(2)]
            kept[0][order[:size]] = False
            kept[1][start[:size]] = False
            left = subject.evidence_of(
                logits_without(subject, [(encoded, one) for one in kept], "drop"), np.full(2, target)
            )
            assert left[0] <= left[1] + 1e-6


def test_measures_have_intervals_and_every_row_is_there(found: Audit) -> None:
    assert (found.texts, found.shares) == (12, SHARES)
    assert len({(row.order, row.removal) for row in found.rows}) == len(found.rows) == 9 * 3
    for row in found.rows:
        for measure in (*row.comprehensiveness, *row.flips, row.normal_sufficiency):
            assert measure.low <= measure.value + 1e-9
            assert measure.value <= measure.high + 1e-9
        assert all(0 <= flips.value <= 1 for flips in row.flips)


def test_the_same_audit_twice_is_the_same(subject: Subject) -> None:
    options = {"methods": ["gradient"], "removals": ["drop"], "random_orders": 2, "search": False}
    assert audit(subject, TEXTS[:3], **options) == audit(subject, TEXTS[:3], **options)  # type: ignore[arg-type]


def test_documents_can_be_audited(documents: Subject) -> None:
    texts = [example.text for example in planted.planted(3, seed=5, sentences=3)]
    found = audit(documents, texts, methods=["message"], removals=["drop", "masked"], random_orders=2)
    assert {row.order for row in found.rows} == {RANDOM, "message", "rare words first", LEAVE_ONE_OUT, SEARCH}


def test_rare_words_come_first(subject: Subject) -> None:
    (encoded,) = subject.encode(["the zzyzx"])
    assert by_rarity([encoded], subject.tokenizer)[0].tolist() == [1, 0]  # type: ignore[arg-type]


def test_nothing_to_audit_is_an_error(subject: Subject) -> None:
    with pytest.raises(InputError, match="at least two words"):
        audit(subject, ["tea", ""])


def test_a_shared_offset_of_the_logits_changes_no_evidence(subject: Subject) -> None:
    logits, targets = np.array([[1.0, 3.0]]), np.array([1])
    np.testing.assert_allclose(subject.evidence_of(logits, targets), subject.evidence_of(logits + 5, targets))
    warm = replace(subject, temperature=2.0)
    np.testing.assert_allclose(warm.evidence_of(logits, targets), [(3 - 1) / 2])
