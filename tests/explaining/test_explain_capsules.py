"""The report of capsules: its nulls change what they say, its measures are right where the answer is known."""

from typing import Any

import numpy as np
import pytest
import torch
from support import planted

from routepool.errors import InputError
from routepool.explaining import CapsuleReport, Subject, report_capsules
from routepool.explaining.capsules import linear_cka, random_slices, redundancy_of
from routepool.explaining.couplings import Couplings, by_iterations, favourites, recoupled, shuffled, variance_of
from routepool.scoring.torch_backend import logits_of

EXAMPLES = planted.planted(60, seed=5)
TEXTS = [example.text for example in EXAMPLES]
WANTED = [(example.labels or ("",))[0] for example in EXAMPLES]


@pytest.fixture(scope="module", params=["routing", "reverse-routing"])
def subject(request: pytest.FixtureRequest) -> Subject:
    return Subject.of(planted.train(planted.quick(epochs=5, aggregator=request.param)).saved)


@pytest.fixture(scope="module")
def report(subject: Subject) -> CapsuleReport:
    return report_capsules(subject, TEXTS, WANTED, one_iteration=subject, projected_mean=subject)


def couplings(coupling: np.ndarray, ids: list[int], texts: list[int]) -> Couplings:
    places = np.arange(len(ids)) % 2
    return Couplings(coupling, np.array(ids), places, np.array(texts), np.array(texts))


def test_a_models_own_number_of_iterations_changes_nothing(subject: Subject, report: CapsuleReport) -> None:
    assert [one.name for one in report.by_iterations] == ["1", "2", "3", "4", "5", "6"]
    assert report.by_iterations[2].changed == 0
    assert report.by_iterations[2].accuracy == report.by_coupling[0].accuracy
    layer: Any = subject.levels[0].aggregator
    assert layer.iterations == report.iterations == 3


def test_its_own_couplings_give_its_own_logits(subject: Subject) -> None:
    encoded = subject.encode(TEXTS[:7])
    found = recoupled(subject, encoded, lambda ids, mask, coupling: coupling)
    np.testing.assert_allclose(found, logits_of(subject.model, encoded), atol=1e-4)


def test_couplings_all_alike_are_the_first_round(subject: Subject) -> None:
    encoded = subject.encode(TEXTS[:7])
    alike = recoupled(subject, encoded, lambda ids, mask, coupling: coupling * 0 + 1)
    layer: Any = subject.levels[0].aggregator
    layer.iterations = 1
    try:
        np.testing.assert_allclose(alike, logits_of(subject.model, encoded), atol=1e-4)
    finally:
        layer.iterations = 3


def test_every_null_is_there(report: CapsuleReport) -> None:
    names = [one.name for one in report.by_coupling]
    assert names == ["its own", "mean of the word", "of another word", "the same for all"]
    assert [one.name for one in report.redundancy][1:] == [
        "capsules of one iteration",
        "random slices of a projected mean",
    ]


def test_shares_sum_to_one_and_classes_of_two_are_opposite(report: CapsuleReport) -> None:
    assert sum(view.share for view in report.capsules) == pytest.approx(1)
    for view in report.capsules:
        assert view.classes["glad"] == pytest.approx(-view.classes["sad"], abs=1e-5)
        assert view.words
        assert [taken.coupling for taken in view.words] == sorted((t.coupling for t in view.words), reverse=True)


def test_a_coupling_that_is_the_words_has_no_context() -> None:
    random = np.random.default_rng(0)
    ids = random.integers(10, size=4000)
    of_word = random.random((10, 3))
    texts = (np.arange(4000) // 10).tolist()
    assert variance_of(couplings(of_word[ids], ids.tolist(), texts)).by_word > 0.99
    noise = variance_of(couplings(random.random((4000, 3)), ids.tolist(), texts))
    assert noise.context > 0.98


def test_a_word_seen_once_explains_nothing() -> None:
    """Its own mean would explain it wholly."""
    coupling = np.random.default_rng(0).random((400, 3))
    found = variance_of(couplings(coupling, list(range(400)), (np.arange(400) // 10).tolist()))
    assert found.by_word < 0.01


def test_shuffled_couplings_are_those_of_the_same_rows_real_words() -> None:
    mask = torch.tensor([[True, True, True, False], [True, False, True, True]])
    coupling = torch.arange(8.0).reshape(2, 4, 1)
    found = shuffled(0)(mask.long(), mask, coupling)
    for row in range(2):
        assert sorted(found[row][mask[row]].flatten().tolist()) == coupling[row][mask[row]].flatten().tolist()
    longer, own = torch.ones(1, 50, dtype=torch.bool), torch.rand(1, 50, 2)
    assert not torch.equal(shuffled(0)(longer, longer, own), own)


def test_word_and_place_add_up() -> None:
    random = np.random.default_rng(0)
    ids = random.integers(10, size=4000)
    place = np.arange(4000) % 2
    found = variance_of(
        couplings(random.random((10, 3))[ids] + place[:, None], ids.tolist(), (np.arange(4000) // 10).tolist())
    )
    assert found.by_both > 0.98
    assert 0.05 < found.by_word < 0.95
    assert found.by_word + found.by_position == pytest.approx(found.by_both, abs=0.02)


def test_a_capsule_lists_the_word_it_takes() -> None:
    coupling = np.array([[0.9, 0.1], [0.2, 0.8]] * 6)
    found = favourites(couplings(coupling, [0, 1] * 6, [0] * 12), ["tea", "bread"])
    assert [words[0].words for words, _ in found] == ["tea", "bread"]
    first = found[0][0][0]
    assert first.count == 6
    assert first.coupling == pytest.approx(0.9)
    assert first.times_share == pytest.approx(0.9 / 0.55)


def test_cka_knows_the_same_and_the_unrelated() -> None:
    random = np.random.default_rng(0)
    one, other = random.normal(size=(500, 4)), random.normal(size=(500, 4))
    turned = one @ np.linalg.qr(random.normal(size=(4, 4)))[0] * 3
    assert linear_cka(one, turned) == pytest.approx(1)
    assert linear_cka(one, other) < 0.05


def test_probes_see_which_part_holds_the_label() -> None:
    random = np.random.default_rng(0)
    truth = np.arange(100) % 2
    capsules = random.normal(size=(100, 2, 3))
    capsules[:, 1, 0] += 6 * truth
    found = redundancy_of("", capsules, truth)
    assert found.whole > 0.95
    assert found.alone[0] < 0.75 < found.alone[1]
    assert found.without[1] < 0.75


def test_random_slices_deal_every_feature_out_once() -> None:
    vectors = np.arange(24.0).reshape(2, 1, 12)
    slices = random_slices(vectors, 5)
    assert slices.shape == (2, 5, 2)
    assert len(set(slices[0].ravel().tolist())) == 10


def test_documents_have_capsules_of_words_and_of_sentences() -> None:
    saved = planted.train(planted.quick(epochs=2, depth=2), of=planted.task(sentences=3)).saved
    examples = planted.planted(20, seed=5, sentences=3)
    found = report_capsules(
        Subject.of(saved), [one.text for one in examples], [(one.labels or ("",))[0] for one in examples]
    )
    assert [(view.level, view.number) for view in found.capsules] == [
        ("words", 1), ("words", 2), ("sentences", 1), ("sentences", 2),
    ]  # fmt: skip


def test_what_has_no_capsules_is_refused(subject: Subject) -> None:
    pooled = Subject.of(planted.train(planted.quick(epochs=1, aggregator="mean")).saved)
    with pytest.raises(InputError, match="only routing has capsules"):
        report_capsules(pooled, TEXTS, WANTED)
    with pytest.raises(InputError, match="5 texts of at least two labels"):
        report_capsules(subject, TEXTS[:4], WANTED[:4])
    assert len(by_iterations(subject, subject.encode(TEXTS[:2]), np.zeros(2, dtype=np.int64))) == 6
