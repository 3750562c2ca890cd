"""What readers of a model card rely on: it says what is known, and no text of a user can break its page."""

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from markdown_it.token import Token
from support.cards import CARD, HOSTILE
from support.model_folders import tiny_model

from routepool.errors import UnknownNameError
from routepool.persistence.card import render


def parsed(card: str) -> list[Token]:
    front, body = card.removeprefix("---\n").split("\n---\n", 1)
    assert front.splitlines()[:2] == ["library_name: routepool", "pipeline_tag: text-classification"]
    return MarkdownIt("commonmark").enable("table").parse(body.encode("utf-8", "replace").decode())


def texts(tokens: list[Token], kind: str) -> list[str]:
    """What a reader sees in the blocks of one kind."""
    inside = [tokens[place + 1] for place, token in enumerate(tokens) if token.type == f"{kind}_open"]
    return ["".join(child.content for child in token.children or []) for token in inside]


def shape(tokens: list[Token]) -> list[str]:
    return [token.type for token in tokens]


def test_the_card_says_all_that_is_known() -> None:
    tokens = parsed(render(tiny_model(), CARD))
    wanted = "Soups, Use, Labels, Data, Scores, Calibration, Confusion, Known limits, Settings, Versions"
    assert texts(tokens, "heading") == wanted.split(", ")
    cells = texts(tokens, "td")
    for value in ("cold", "warm", "soups.csv", "ab" * 32, "0.8 to 0.875", "0.8422", "0.031", "14", "2.13.0"):
        assert value in cells
    for value in ("embedding_size", "capsules 2, capsule_size 2", "epochs", "max_words"):
        assert value in cells
    page = render(tiny_model(), CARD)
    assert "- Trained on soups." in page
    assert "routepool predict . " in page
    assert "divided by a temperature of 1.25" in page


def test_what_is_not_known_is_left_out() -> None:
    headings = texts(parsed(render(tiny_model(training=None), {})), "heading")
    assert headings == ["Text classifier", "Use", "Labels", "Calibration", "Known limits", "Settings"]


def test_a_mistyped_field_suggests_the_right_one() -> None:
    with pytest.raises(UnknownNameError, match="unknown field of the card 'score', did you mean 'scores'"):
        render(tiny_model(), {"score": []})


def test_many_labels_keep_the_page_short() -> None:
    labels = tuple(f"label {number}" for number in range(5000))
    page = render(tiny_model(labels=labels), {**CARD, "confusion": [[0] * 5000] * 5000})
    assert "And 4900 more" in page
    assert "## Confusion" not in page
    assert len(page) < 10_000


def seen(value: str) -> str:
    line = " ".join(value.split())
    return "".join(letter if letter.isprintable() or letter in "\u200c\u200d" else "\ufffd" for letter in line)


@given(HOSTILE, HOSTILE, HOSTILE, HOSTILE)
def test_no_text_of_a_user_can_break_the_page(label: str, title: str, fact: str, limit: str) -> None:
    saved = tiny_model(labels=(label + "x", label))
    card = {**CARD, "title": f"T{title}", "data": {fact: {fact: fact}}, "limits": [limit or "x"]}
    tokens = parsed(render(saved, card))
    plain = {**card, "title": "T", "data": {"f": {"f": "f"}}, "limits": ["x" if seen(limit or "x") else ""]}
    assert shape(tokens) == shape(parsed(render(tiny_model(labels=("a", "b")), plain)))
    assert texts(tokens, "heading")[0] == seen(f"T{title}")
    cells = texts(tokens, "td")
    assert cells[1] == seen(label + "x")
    assert cells[3] == seen(label)
    assert texts(tokens, "th")[3] == seen(fact)
