"""Explanations: what is shown is what the model computed, in the characters of the text, and survives JSON."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from support import planted

from routepool.errors import InputError, UnknownNameError
from routepool.explaining import METHODS, Explanation, Subject, explain, render_page
from routepool.explaining.subject import slope_of, watch
from routepool.layers import Aggregator, Parts, StandardRouting
from routepool.persistence import SavedModel
from routepool.scoring.predictor import of_saved
from routepool.settings import AGGREGATORS
from routepool.training import Task

AGGREGATOR_NAMES = ("max", "mean", "attention", "structured-attention", "multi-hop", "routing", "reverse-routing")
SENTENCE = "A merry cup of <b>tea</b>  & bread; naïve 🫖 it rains."
DOCUMENT = "A merry cup of tea. It rains on our table!  Some bread, by this window?"


@pytest.fixture(scope="module")
def sentences() -> SavedModel:
    return planted.train(planted.quick(epochs=3)).saved


@pytest.fixture(scope="module")
def documents() -> SavedModel:
    return planted.train(planted.quick(epochs=3, depth=2), of=planted.task(sentences=3)).saved


def untrained(aggregator: str, depth: int = 1, **options: Any) -> SavedModel:
    settings = planted.quick(aggregator=aggregator, depth=depth, epochs=1, **options)
    return planted.train(settings, of=planted.task(train=16, dev=8, sentences=2)).saved


def test_prediction_is_the_predictors(sentences: SavedModel) -> None:
    model = of_saved(replace(sentences, temperature=1.7))
    (shown,) = model.explain([SENTENCE])
    assert [shown.probabilities[label] for label in model.labels] == pytest.approx(
        model.predict_proba([SENTENCE])[0].tolist(), abs=1e-5
    )
    assert [*shown.predicted] == model.predict([SENTENCE]) == [shown.label]


def test_spans_are_the_words_of_the_original_text(sentences: SavedModel, documents: SavedModel) -> None:
    (encoded,) = sentences.tokenizer.encode([SENTENCE])
    (shown,) = explain(Subject.of(sentences), [SENTENCE])
    assert [(word.start, word.end) for word in shown.words] == list(map(tuple, encoded.spans.tolist()))
    assert {"🫖", "naïve", "<b>"} <= {shown.of(word) for word in shown.words}
    (shown,) = explain(Subject.of(documents), [DOCUMENT])
    assert [shown.of(one) for one in shown.sentences] == [
        "A merry cup of tea.",
        "It rains on our table!",
        "Some bread, by this window?",
    ]
    for place, sentence in enumerate(shown.sentences):
        assert all(sentence.start <= word.start < word.end <= sentence.end for word in shown.words_of(place))


@pytest.mark.parametrize("depth", [1, 2])
def test_weights_and_rounds_are_those_of_the_layer(depth: int, sentences: SavedModel, documents: SavedModel) -> None:
    saved = sentences if depth == 1 else documents
    (shown,) = explain(Subject.of(saved), [DOCUMENT], iterations=True)
    ids, mask = _padded(saved, DOCUMENT)
    traced = saved.classifier.trace(ids, mask).weights
    for level, weights in zip(reversed(shown.levels), traced, strict=True):
        real = weights[weights.sum(-1) > 0]
        np.testing.assert_allclose([span.weights for span in level.spans], real.detach().numpy(), atol=1e-6)
        assert all(span.rounds[-1] == span.weights and len(span.rounds) == 3 for span in level.spans)
        assert all(span.rounds[0] == pytest.approx((0.5, 0.5)) for span in level.spans)


def test_couplings_of_a_word_sum_to_one_and_so_cannot_rank_words(sentences: SavedModel) -> None:
    (shown,) = explain(Subject.of(sentences), [SENTENCE])
    assert [sum(word.weights) for word in shown.words] == pytest.approx([1.0] * len(shown.words))


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("aggregator", AGGREGATOR_NAMES)
def test_every_method_scores_every_aggregator(aggregator: str, depth: int) -> None:
    subject = Subject.of(untrained(aggregator, depth))
    texts = [DOCUMENT, "", "tea", "A cup. Some merry bread."]
    for method in METHODS.names():
        for text, shown in zip(texts, explain(subject, texts, method=method), strict=True):
            assert (shown.text, shown.method, shown.aggregator) == (text, method, aggregator)
            assert len(shown.levels) == depth
            assert np.isfinite([span.score for level in shown.levels for span in level.spans]).all()
        together = explain(subject, texts, method=method)[3]
        (alone,) = explain(subject, texts[3:], method=method)
        scores, expected = ([word.score for word in one.words] for one in (together, alone))
        np.testing.assert_allclose(scores, expected, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("aggregator", "options"),
    [(name, {}) for name in AGGREGATOR_NAMES]
    + [
        ("routing", {"average": True}),
        ("routing", {"learned_length": True}),
        ("reverse-routing", {"messages": "tanh"}),
        ("attention", {"form": "released"}),
    ],
)
def test_parts_of_the_tokens_sum_to_the_vector(aggregator: str, options: dict[str, Any]) -> None:
    torch.manual_seed(0)
    layer: Any = AGGREGATORS[aggregator](6, **options)
    states, mask = torch.randn(3, 5, 6), torch.arange(5) < torch.tensor([[5], [2], [0]])
    vector, weights = layer(states, mask)
    found = layer.terms(states, mask, weights)
    torch.testing.assert_close(layer.vector_of(found.sum(1)), vector, atol=1e-5, rtol=1e-4)
    assert (found[~mask] == 0).all()


def test_the_slope_of_what_was_received_is_autograds() -> None:
    layer = StandardRouting(4)
    received = torch.randn(2, 5, 3, requires_grad=True)
    slope = torch.randn(2, 15)
    (expected,) = torch.autograd.grad(layer.vector_of(received), received, slope)
    torch.testing.assert_close(slope_of(layer, received.detach(), slope), expected)


def test_integrated_gradients_sum_to_what_the_text_adds_to_the_baseline(sentences: SavedModel) -> None:
    subject = Subject.of(sentences)
    text = "A merry cup of tea by this window"
    (shown,) = explain(subject, [text], method="integrated-gradients")
    ids, mask = _padded(sentences, text)
    with torch.no_grad():
        logits = [sentences.classifier(some, mask) for some in (ids, torch.where(mask, 1, 0))]
        target = torch.tensor([subject.place(shown.label)])
        whole, baseline = (float(subject.evidence(one, target)) for one in logits)
    assert sum(word.score for word in shown.words) == pytest.approx(whole - baseline, abs=0.02 * abs(whole - baseline))


def test_gradient_times_input_is_the_derivative_of_scaling_a_word(sentences: SavedModel) -> None:
    subject, text = Subject.of(sentences), "A merry cup of tea"
    (shown,) = explain(subject, [text], method="gradient")
    ids, mask = _padded(sentences, text)
    target = torch.tensor([subject.place(shown.label)])

    def scaled(factor: float) -> float:
        grow = torch.ones(1, 5, 1)
        grow[0, 1] = factor
        with torch.no_grad():
            return float(
                subject.evidence(watch(sentences.classifier, ids, mask, embedded=lambda x: x * grow).logits, target)
            )

    assert shown.words[1].score == pytest.approx((scaled(1.01) - scaled(0.99)) / 0.02, rel=0.05)


def test_leaving_a_word_out_is_the_text_without_it(sentences: SavedModel) -> None:
    model = of_saved(sentences)
    (shown,) = model.explain(["A merry cup of tea"], method="leave-one-out", label="glad")
    shares = model.predict_proba(["A merry cup of tea", "A cup of tea"])[:, 0]
    odds = np.log(shares / (1 - shares))
    assert shown.words[1].score == pytest.approx(float(odds[0] - odds[1]), abs=1e-4)


def test_words_of_a_document_share_their_sentences_score_by_message(documents: SavedModel) -> None:
    (shown,) = explain(Subject.of(documents), [DOCUMENT], method="message")
    for place, sentence in enumerate(shown.sentences):
        assert sum(word.score for word in shown.words_of(place)) == pytest.approx(sentence.score, rel=1e-5)


def test_a_capsules_score_is_what_its_removal_costs(sentences: SavedModel) -> None:
    subject, text = Subject.of(sentences), "A merry cup of tea"
    (shown,) = explain(subject, [text], method="capsule")
    ids, mask = _padded(sentences, text)
    target = torch.tensor([subject.place(shown.label)])
    with torch.no_grad():
        trace = sentences.classifier.trace(ids, mask)
        lost = []
        for capsule in (slice(0, 8), slice(8, 16)):
            vector = trace.vector.clone()
            vector[:, capsule] = 0
            change = subject.evidence(trace.logits, target) - subject.evidence(
                sentences.classifier.head(None, mask, vector), target
            )
            lost.append(float(change))
    for word in shown.words:
        assert word.score == pytest.approx(float(np.dot(word.weights, lost)), abs=1e-5)


def test_another_label_has_the_opposite_evidence_of_two(sentences: SavedModel) -> None:
    one, other = (
        explain(Subject.of(sentences), [SENTENCE], method="gradient", label=label)[0] for label in planted.LABELS
    )
    assert [word.score for word in one.words] == pytest.approx([-word.score for word in other.words], abs=1e-6)


def test_several_labels_are_explained_by_their_own_logit() -> None:
    task = Task(planted.several(40), planted.several(20, seed=1), planted.LABELS, multi_label=True)
    saved = planted.train(planted.quick(epochs=2), of=task).saved
    for shown in of_saved(saved).explain(["a merry gloomy table", ""]):
        assert set(shown.predicted) <= set(planted.LABELS)
        assert shown.label in planted.LABELS


def test_json_gives_the_same_explanation_back(documents: SavedModel) -> None:
    (shown,) = explain(Subject.of(documents), [DOCUMENT + "\ud800"], iterations=True)
    assert Explanation.from_json(shown.to_json()) == shown
    assert json.loads(shown.to_json())["format_version"] == 2


@pytest.mark.parametrize("aggregator", [*AGGREGATOR_NAMES, "somebodys"])
def test_version_1_is_read(aggregator: str) -> None:
    word = {"start": 0, "end": 3, "weights": [0.25, 0.75], "score": 1.5, "parent": None, "rounds": []}
    shown = Explanation.from_json(
        json.dumps({
            "format_version": 1, "text": "tea", "predicted": ["glad"], "probabilities": {"glad": 1.0}, "label": "glad",
            "method": "message", "aggregator": aggregator, "levels": [{"name": "words", "units": [word]}],
            "unread": 0, "known": 1,
        })
    )  # fmt: skip
    layer: Any = AGGREGATORS[aggregator] if aggregator in AGGREGATORS.names() else None
    own = layer(4).parts if layer else Parts()
    assert (shown.part, shown.share_of) == (own.name, own.share_of)
    assert (shown.words[0].weights, shown.of(shown.words[0])) == ((0.25, 0.75), "tea")
    assert Explanation.from_json(shown.to_json()) == shown


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("[]", "wanted the JSON of an explanation"),
        ("{", "wanted the JSON of an explanation"),
        ('{"format_version": 3}', "format version 1 to 2, got 3"),
        ('{"format_version": 1, "text": ""}', "wanted the JSON of an explanation"),
        ('{"format_version": 2, "text": ""}', "wanted the JSON of an explanation"),
    ],
)
def test_other_json_is_refused(content: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Explanation.from_json(content)


def test_a_span_outside_the_text_is_refused(sentences: SavedModel) -> None:
    values = explain(Subject.of(sentences), ["tea"])[0].to_dict()
    values["levels"][0]["spans"][0]["end"] = 9
    with pytest.raises(InputError, match="must lie in the text's 3 characters, got 0 to 9"):
        Explanation.from_json(json.dumps(values))


def test_bad_questions_are_refused_in_a_sentence(sentences: SavedModel) -> None:
    subject = Subject.of(sentences)
    with pytest.raises(UnknownNameError, match="unknown method 'gradients', did you mean 'gradient'"):
        explain(subject, ["tea"], method="gradients")
    with pytest.raises(UnknownNameError, match="unknown label 'gladd', did you mean 'glad'"):
        explain(subject, ["tea"], label="gladd")
    with pytest.raises(InputError, match="there are no rounds to show: this model aggregates by 'mean'"):
        explain(Subject.of(untrained("mean")), ["tea"], iterations=True)
    with pytest.raises(InputError, match="put it in a list"):
        of_saved(sentences).explain("tea")


def test_what_was_not_read_is_said() -> None:
    settings = planted.quick(epochs=1)
    saved = planted.train(replace(settings, text=replace(settings.text, max_words=2))).saved
    (shown,) = explain(Subject.of(saved), ["a cup of tea"])
    assert (len(shown.words), shown.unread) == (2, 2)
    assert "2 words behind these were not read" in render_page([shown])


def test_explaining_leaves_the_model_as_it_was(sentences: SavedModel) -> None:
    before = planted.weights(sentences)
    sentences.classifier.train()
    try:
        first, second = (explain(Subject.of(sentences), [SENTENCE])[0] for _ in range(2))
        assert first == second
        assert sentences.classifier.training
    finally:
        sentences.classifier.eval()
    assert all(torch.equal(before[name], tensor) for name, tensor in planted.weights(sentences).items())
    assert all(parameter.grad is None for parameter in sentences.classifier.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in sentences.classifier.modules())  # noqa: SLF001


def _padded(saved: SavedModel, text: str) -> tuple[torch.Tensor, torch.Tensor]:
    from routepool.batching import pad

    depth = len(saved.classifier.levels)
    ids, mask = pad(saved.tokenizer.encode([text], depth), depth)
    return torch.from_numpy(ids), torch.from_numpy(mask)


def test_every_registered_aggregator_is_tried_here() -> None:
    assert set(AGGREGATOR_NAMES) <= set(AGGREGATORS.names())
    assert all(issubclass(AGGREGATORS[name], Aggregator) for name in AGGREGATOR_NAMES)
