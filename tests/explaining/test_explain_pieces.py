"""Explanations of a model on a pre-trained encoder: of words, though it reads pieces of them."""

import pytest
from support import planted, tiny_encoder

from routepool.errors import InputError
from routepool.explaining import METHODS, Subject, audit, explain
from routepool.settings import Preset, TextConfig, change
from routepool.training import fit

TEXT = "A merry cup of tea. It rains on our table."


@pytest.fixture(scope="module", params=[1, 2])
def subject(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Subject:
    folder = tiny_encoder.write_encoder(tmp_path_factory.mktemp("encoder"))
    preset = planted.tiny(encoder=f"hf:{folder}", depth=request.param, epochs=1)
    model = change(preset.model, encoder_options={"frozen": False})
    settings = Preset(model, preset.training, TextConfig(max_words=0, max_sentences=0))
    return Subject.of(fit(planted.task(train=16, dev=8), settings).saved)


@pytest.mark.parametrize("method", ["message", "capsule", "gradient-message", "leave-one-out", None])
def test_units_are_words_whose_couplings_sum_to_one(subject: Subject, method: str | None) -> None:
    (shown,) = explain(subject, [TEXT], method=method, iterations=True)
    assert shown.method == (method or "leave-one-out")
    words = [shown.of(word) for word in shown.words]
    assert [word for word in words if word != "."] == TEXT.replace(".", "").split()
    assert [sum(word.weights) for word in shown.words] == pytest.approx([1.0] * len(words))
    assert len(shown.levels) == subject.depth


def test_methods_that_need_word_vectors_say_so(subject: Subject) -> None:
    for method in ("gradient", "integrated-gradients"):
        assert method in METHODS.names()
        with pytest.raises(InputError, match="not to be had from a pre-trained encoder; use gradient-message"):
            explain(subject, [TEXT], method=method)


def test_it_can_be_audited(subject: Subject) -> None:
    found = audit(subject, [TEXT], methods=["leave-one-out", "message"], random_orders=2)
    assert {row.order for row in found.rows} == {"random", "message", "leave-one-out", "search"}
