"""An aggregator that nothing here knows is explained and drawn by what it says of itself."""

import io
import json
from pathlib import Path

import numpy as np
import pytest
import torch
from rich.console import Console
from support import own_aggregator, planted

from routepool.batching import pad
from routepool.cli import screen
from routepool.cli.painting import paint
from routepool.explaining import Explanation, Subject, explain, render_page
from routepool.explaining.outputs import PICTURES
from routepool.persistence import SavedModel, save_model

TEXT = "A merry cup of tea"


@pytest.fixture(scope="module")
def saved() -> SavedModel:
    return planted.train(planted.quick(epochs=1, aggregator="slots")).saved


@pytest.fixture(scope="module")
def shown(saved: SavedModel) -> Explanation:
    (one,) = explain(Subject.of(saved), [TEXT], method="message")
    return one


def test_its_parts_and_weights_are_in_the_json(saved: SavedModel, shown: Explanation) -> None:
    values = json.loads(shown.to_json())
    assert (values["aggregator"], values["part"], values["share_of"]) == ("slots", "slot", "text")
    weights = np.array([word["weights"] for word in values["levels"][0]["spans"]])
    assert weights.shape == (5, 3)
    assert weights.sum(0) == pytest.approx(1)


def test_its_words_are_scored_by_its_own_terms(saved: SavedModel, shown: Explanation) -> None:
    ids, mask = map(torch.from_numpy, pad(saved.tokenizer.encode([TEXT], 1), 1))
    layer = saved.classifier.levels[-1].aggregator
    assert isinstance(layer, own_aggregator.Slots)
    with torch.no_grad():
        states = saved.classifier.levels[-1].encoder(saved.classifier.levels[-1].embedding(ids), mask)  # type: ignore[operator]
        sizes = states[0].tanh().norm(dim=-1)[:, None] * layer(states, mask)[1][0]
    assert [word.score for word in shown.words] == pytest.approx(sizes.sum(1).tolist(), rel=1e-4)


def test_terminal_page_and_picture_name_its_parts(shown: Explanation, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib", reason='needs pip install "routepool[plot]"')
    terminal = io.StringIO()
    monkeypatch.setattr(screen, "out", Console(file=terminal, width=200, soft_wrap=True))
    paint(shown)
    lines = terminal.getvalue().splitlines()[3:]
    assert [line[:8] for line in lines] == ["  slot 1", "  slot 2", "  slot 3"]
    assert f"merry {100 * shown.words[1].weights[0]:.0f}" in lines[0]
    page = render_page([shown])
    assert all(f"<dt>slot {number}</dt>" in page for number in (1, 2, 3))
    assert "Where each word went" in page
    strongest = max(max(word.weights) for word in shown.words)
    assert f'class="c10" title="{strongest:.3f}"' in page  # a share of the text: the largest is full
    picture = io.BytesIO()
    PICTURES["explanation"](picture, shown, form="svg")
    assert b"<!-- slot -->" in picture.getvalue()  # the label of the axis


def test_the_server_says_what_its_parts_are(saved: SavedModel, tmp_path: Path) -> None:
    pytest.importorskip("fastapi", reason='needs pip install "routepool[serve]"')
    from routepool.extras.serving.models import load_model

    save_model(tmp_path / "run", saved, card={})
    told = load_model(str(tmp_path / "run")).description
    assert (told["aggregator"], told["part"], told["share_of"]) == ("slots", "slot", "text")
    assert (told["capsules"], told["iterations"]) == (3, 1)
