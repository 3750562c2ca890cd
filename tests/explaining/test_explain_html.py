"""An explanation as a page: the text as it is, and nothing that runs."""

import base64
import hashlib
from dataclasses import replace
from html.parser import HTMLParser

import pytest
from support import planted

from routepool.explaining import Subject, explain, render_page
from routepool.persistence import SavedModel

DOCUMENT = "A merry cup of tea. It rains on our table!  Some bread, by this window?"


@pytest.fixture(scope="module")
def sentences() -> SavedModel:
    return planted.train(planted.quick(epochs=3)).saved


@pytest.fixture(scope="module")
def documents() -> SavedModel:
    return planted.train(planted.quick(epochs=3, depth=2), of=planted.task(sentences=3)).saved


class _Page(HTMLParser):
    """Every tag with its attributes, and all text."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


EVIL = "<script>alert(1)</script> \" ' & <img src=x onerror=go()> \x00 ]]> {{ 7*7 }} merry"


@pytest.mark.parametrize("depth", [1, 2])
def test_the_page_holds_the_text_and_nothing_that_runs(
    depth: int, sentences: SavedModel, documents: SavedModel
) -> None:
    saved = replace(sentences if depth == 1 else documents, labels=("<b>glad", "sad"))
    shown = explain(Subject.of(saved), [EVIL, DOCUMENT], iterations=True)
    page = _Page()
    content = render_page(shown, title="<i>why")
    page.feed(content)
    tags = {tag for tag, _ in page.tags}
    assert not tags & {"script", "img", "link", "iframe", "b", "i", "object"}
    for _, attributes in page.tags:
        assert not any(name.startswith("on") or name in ("style", "src", "href") for name in attributes)
    policy = next(attributes["content"] for tag, attributes in page.tags if "http-equiv" in attributes)
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    for part in ("<script>alert(1)</script>", "{{ 7*7 }}", "A merry cup of tea", "<b>glad", "round 3"):
        assert part in page.text
    assert ("details" in tags) == (depth == 2)


def test_a_document_opens_at_the_sentence_that_counts_most(documents: SavedModel) -> None:
    (shown,) = explain(Subject.of(documents), [DOCUMENT])
    page = _Page()
    page.feed(render_page([shown]))
    opened = ["open" in attributes for tag, attributes in page.tags if tag == "details"]
    scores = [abs(sentence.score) for sentence in shown.sentences]
    assert opened == [score == max(scores) for score in scores]


def test_the_pages_policy_names_the_style_it_carries(sentences: SavedModel) -> None:
    content = render_page(explain(Subject.of(sentences), ["tea"]))
    style = content.split("<style>")[1].split("</style>")[0]
    assert base64.b64encode(hashlib.sha256(style.encode()).digest()).decode() in content.replace("&#43;", "+")
