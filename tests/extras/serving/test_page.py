"""The page of `routepool serve`, in a real browser against a real server."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from support import own_aggregator, planted
from support.browser import PLAIN, drop, hues, opened, read, strengths
from support.cli_runs import sentences, succeed, train_tiny, write_csv
from support.serving import KEY, Running, serving

from routepool.persistence import save_model

pytestmark = pytest.mark.system("chromium", "chromium")

TEXT = "the film was a great story"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(train_tiny(tmp_path_factory.mktemp("words"))) as running:
        yield running


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    run = train_tiny(tmp_path_factory.mktemp("documents"), "--set", "depth=2")
    with serving(run, "--max-explain-characters", 200, "--max-characters", 300) as running:
        yield running


@pytest.fixture(scope="module")
def short(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server whose model reads six words of a text."""
    run = train_tiny(tmp_path_factory.mktemp("short"), "--set", "max_words=6")
    with serving(run, "--max-explain-characters", 200) as running:
        yield running


@pytest.fixture(scope="module")
def locked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server that wants a key, and whose model has no capsules."""
    folder = tmp_path_factory.mktemp("locked")
    (folder / "key").write_text(KEY)
    data = write_csv(folder / "reviews.csv", sentences(60))
    small = [part for name in ("hidden_size", "embedding_size", "epochs") for part in ("--set", f"{name}=4")]
    succeed("train", data, "--out", folder / "run", "--aggregator", "attention", "--vectors", "none", *small)
    with serving(folder / "run", "--api-key-file", folder / "key") as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    with opened(browser, server.port) as shown:
        yield shown


def test_typing_shows_bars_and_coloured_words(page: Page, server: Running) -> None:
    expect(page.locator("#evidence")).to_be_hidden()
    expect(page.locator(".bars[data-slot='0'] .empty")).to_be_visible()
    page.locator("#text-0").press_sequentially(TEXT)
    expect(page.locator(PLAIN)).to_have_text(TEXT.split())  # without any key or button
    (told,) = server.post("/predict", {"text": TEXT}).json["results"]
    rows = page.locator(".bars[data-slot='0'] li")
    shown = dict(zip(rows.locator(".name").all_inner_texts(), rows.locator(".share").all_inner_texts(), strict=True))
    assert shown == {label: f"{100 * share:.1f} %" for label, share in told["probabilities"].items()}
    assert rows.locator(".name").nth(1).inner_text() == "good"
    expect(page.locator("li.chosen .name")).to_have_text(told["labels"])
    assert max(strengths(page)) > 5
    expect(page.locator("#status")).to_contain_text(told["labels"][0])
    page.fill("#text-0", " ")
    expect(page.locator("#evidence")).to_be_hidden()


def test_words_are_painted_by_their_coupling_and_by_one_capsule(page: Page, server: Running) -> None:
    read(page, TEXT)
    (told,) = server.post("/explain", {"text": TEXT, "rounds": True}).json["results"]
    weights = [span["weights"] for span in told["levels"][0]["spans"]]
    colours = dict(enumerate(["#0072b2", "#e69f00"]))
    assert hues(page) == [colours[row.index(max(row))] for row in weights]
    page.locator("#parts span", has_text="2").click()
    assert set(hues(page)) == {colours[1]}
    painted = strengths(page)
    assert [strength > 0 for strength in painted] == [row[1] > 0.5005 for row in weights]
    expect(page.locator("#meaning")).to_contain_text("not how much it matters")


def test_lines_lead_from_the_words_to_the_capsules(page: Page, server: Running) -> None:
    read(page, TEXT)
    (told,) = server.post("/explain", {"text": TEXT}).json["results"]
    couplings = [weight for span in told["levels"][0]["spans"] for weight in span["weights"]]
    widths = page.locator(".routes path").evaluate_all("(all) => all.map((one) => parseFloat(one.style.strokeWidth))")
    assert widths == pytest.approx([weight * widths[0] / couplings[0] for weight in couplings], rel=1e-3)
    page.hover(f"{PLAIN} >> nth=4")
    assert page.locator(".routes path").evaluate_all("(all) => all.map((one) => one.matches('.own'))") == [
        8 <= line < 10 for line in range(12)
    ]
    page.set_viewport_size({"width": 360, "height": 700})
    expect(page.locator(".routes").first).to_be_hidden()  # words on several lines
    page.set_viewport_size({"width": 1200, "height": 700})
    expect(page.locator(".routes").first).to_be_visible()


def test_the_rounds_are_stepped_through(page: Page) -> None:
    read(page, TEXT)
    last = strengths(page)
    expect(page.locator("#round-name")).to_have_text("Round 3 of 3")
    page.click("#round-back")
    page.click("#round-back")
    expect(page.locator("#round-name")).to_have_text("Round 1 of 3")
    expect(page.locator("#round-back")).to_be_disabled()
    assert strengths(page) == [0.0] * 6  # in the first round all couplings are alike
    page.focus("#round")
    page.keyboard.press("ArrowRight")
    assert 0 < max(strengths(page)) < max(last)
    page.click("#round-play")
    expect(page.locator("#round-name")).to_have_text("Round 1 of 3")
    expect(page.locator("#round-play")).to_have_text("Play")  # by itself, at the end
    assert strengths(page) == last


def test_scores_say_what_speaks_for_which_label_by_which_method(page: Page, server: Running) -> None:
    read(page, TEXT)
    page.click("text=How much each word matters")
    expect(page.locator("#parts")).to_be_hidden()
    for label, method in (("good", "leave-one-out"), ("bad", "leave-one-out"), ("bad", "message")):
        page.select_option("#label", label=label)
        page.select_option("#method", method)
        (told,) = server.post("/explain", {"text": TEXT, "label": label, "method": method}).json["results"]
        expect(page.locator("#meaning")).to_contain_text(f"by {method}")
        scores = [span["score"] for span in told["levels"][0]["spans"]]
        expect(page.locator(PLAIN).nth(4)).to_have_attribute("aria-label", f"great, score {_signed(scores[4])}")
        assert hues(page) == [f"var(--{'against' if score < 0 else 'for'})" for score in scores]
        largest = max(map(abs, scores))
        assert strengths(page) == pytest.approx([50 * abs(score) / largest for score in scores], abs=0.06)


def test_pointing_at_a_word_shows_its_numbers(page: Page, server: Running) -> None:
    read(page, TEXT)
    expect(page.locator(".inspector[data-slot='0']")).to_contain_text("What each capsule receives of 6 words")
    page.hover(f"{PLAIN} >> nth=4")
    inspector = page.locator(".inspector[data-slot='0']")
    expect(inspector.locator("h3")).to_have_text("great")
    (told,) = server.post("/explain", {"text": TEXT}).json["results"]
    span = told["levels"][0]["spans"][4]
    expect(inspector.locator(".value")).to_have_text([f"{weight:.2f}" for weight in span["weights"]])
    expect(inspector.locator(".number")).to_have_text(_signed(span["score"]))
    expect(inspector.locator(".of-round")).to_have_count(3)
    page.click(f"{PLAIN} >> nth=4")
    page.hover("h1")
    expect(inspector.locator("h3")).to_have_text("great")  # it stays


@pytest.mark.parametrize("text", ["😀 great 👩‍👩‍👧 film, naïve 𝒢ood", "a  great\n\nfilm", "İstanbul'da e\u0301t\u00e9"])
def test_words_lie_where_the_server_says_whatever_the_characters(page: Page, server: Running, text: str) -> None:
    read(page, text)
    (told,) = server.post("/explain", {"text": text}).json["results"]
    parts = [text[span["start"] : span["end"]] for span in told["levels"][0]["spans"]]
    assert page.locator(PLAIN).evaluate_all("(words) => words.map((word) => word.textContent)") == parts
    assert page.locator(".reading[data-slot='0'] .words").evaluate("(place) => place.textContent") == text


def test_an_example_is_loaded(page: Page) -> None:
    page.click(".composer[data-slot='0'] >> text=Few words")
    expect(page.locator(PLAIN).first).to_have_text("Slow")


def test_two_texts_stand_side_by_side(page: Page) -> None:
    read(page, TEXT)
    page.click("#tab-two")
    assert page.input_value("#text-0") == TEXT
    read(page, "the film was an awful story", slot=1)
    expect(page.locator(".reading.second [role=button]")).to_have_count(6)
    before, after = (page.locator(f".bars[data-slot='{slot}'] .share").nth(0).inner_text() for slot in (0, 1))
    change = page.locator(".bars.second .change").nth(0).inner_text()
    assert re.fullmatch(r"\+\d+\.\d points", change)
    assert float(change[1:-7]) == pytest.approx(float(after[:-2]) - float(before[:-2]), abs=0.11)
    left, right = (page.locator(f".reading[data-slot='{slot}']").bounding_box() for slot in (0, 1))
    assert left is not None
    assert right is not None
    assert left["x"] + left["width"] <= right["x"] + 1
    page.click("text=How much each word matters")
    words = page.locator(".readings [role=button]")
    expect(words.nth(10)).to_have_attribute("aria-label", re.compile("^awful, score −"))  # both for the same label
    told = words.evaluate_all(
        "(all) => all.map((one) => [one.ariaLabel.split(' ').at(-1), one.style.getPropertyValue('--strength')])"
    )
    scores = [abs(float(score.replace("−", "-"))) for score, _ in told]
    painted = [float(strength.rstrip("%")) for _, strength in told]
    assert painted == pytest.approx([50 * score / max(scores) for score in scores], abs=1)  # on the same scale
    expect(page.locator(".inspector.second .of-word").first).to_contain_text("awful")


def test_sentences_of_a_document_open_to_their_words(browser: Browser, documents: Running) -> None:
    with opened(browser, documents.port) as page:
        read(page, "The film was great. A dull story.  Warm people!")
        expect(page.locator(".sentence summary .span")).to_have_text(
            ["The film was great.", "A dull story.", "Warm people!"]
        )
        second = page.locator(".sentence").nth(1)
        if second.get_attribute("open") is None:
            second.locator("summary").press("Enter")
        expect(second.locator("[role=button]")).to_have_text(["A", "dull", "story", "."])
        second.locator("summary").hover()
        expect(page.locator(".inspector[data-slot='0'] h3")).to_have_text("A dull story.")
        expect(page.locator("#meaning")).to_contain_text("Sentences have capsules of their own")
        page.fill("#text-0", "A great film. " * 16)  # 224 characters: predicted, not explained
        expect(page.locator(".bars[data-slot='0']")).to_contain_text("Words are shown of texts of up to 200 characters")
        expect(page.locator("#evidence")).to_be_hidden()
        page.fill("#text-0", "A great film. " * 22)
        expect(page.locator("#notice-text")).to_have_text("This text has 308 characters, and the server takes 300.")


def test_a_key_is_asked_for_and_a_model_without_capsules_has_weights(browser: Browser, locked: Running) -> None:
    with opened(browser, locked.port, refusals=True) as page:
        expect(page.locator("#key")).to_be_focused()
        for key, told in (("schlüssel", "visible ASCII"), ("a-wrong-key", "The API key is missing or wrong")):
            page.fill("#key", key)
            page.press("#key", "Enter")
            expect(page.locator("#notice-text")).to_contain_text(told)
        page.fill("#key", KEY)
        page.press("#key", "Enter")
        expect(page.locator("#key-form")).to_be_hidden()
        expect(page.locator("#facts")).to_contain_text("attention")
        read(page, TEXT)
        expect(page.locator("#where-name")).to_have_text("What weight each word gets")
        expect(page.locator("#parts")).to_be_hidden()
        expect(page.locator("#rounds")).to_be_hidden()
        (told,) = locked.post("/explain", {"text": TEXT}, X_API_Key=KEY).json["results"]
        weights = [span["weights"][0] for span in told["levels"][0]["spans"]]
        even = 1 / 6
        most = max(*weights, even + 0.1 * (1 - even))
        wanted = [max(0, 50 * (weight - even) / (most - even)) for weight in weights]
        assert strengths(page) == pytest.approx(wanted, abs=0.06)
        assert max(wanted) > 0


def test_the_parts_of_an_aggregator_unknown_to_the_page_are_named(browser: Browser, tmp_path: Path) -> None:
    save_model(tmp_path / "run", planted.train(planted.quick(epochs=1, aggregator="slots")).saved, card={})
    known = f"import sys; sys.path.insert(0, {str(Path(own_aggregator.__file__).parents[1])!r})"
    before = f"{known}; import support.own_aggregator"
    with serving(tmp_path / "run", before=before) as running, opened(browser, running.port) as page:
        expect(page.locator("#facts")).to_contain_text("slots, 3 slots")
        read(page, TEXT)
        expect(page.locator("#where-name")).to_have_text("Where each word goes")
        expect(page.locator("#rounds")).to_be_hidden()
        expect(page.locator("#parts legend")).to_have_text("Slot")
        assert page.locator("#parts input").evaluate_all("(all) => all.map((one) => one.ariaLabel)") == [
            "Every slot", "slot 1", "slot 2", "slot 3",
        ]  # fmt: skip
        expect(page.locator("#meaning")).to_contain_text("Each slot splits its attention between the words")
        expect(page.locator(PLAIN).nth(4)).to_have_attribute("aria-label", re.compile(r"^great, slot \d, weight 0\."))
        page.hover(f"{PLAIN} >> nth=4")
        expect(page.locator(".inspector[data-slot='0'] .title")).to_have_text("What slots gave this word")


def test_errors_are_sentences(browser: Browser, server: Running) -> None:
    with opened(browser, server.port, refusals=True) as page:
        read(page, TEXT)
        page.evaluate("""() => {
            document.getElementById("text-0").value = "half a \\ud83d pair";
            document.getElementById("text-0").dispatchEvent(new Event("input"));
        }""")
        expect(page.locator("#notice-text")).to_have_text(re.compile(r"^[A-Z].*\.$"))
        expect(page.locator("#notice")).to_have_attribute("role", "alert")
        expect(page.locator(".bars.waiting, .evidence.waiting")).to_have_count(2)  # they are of the text before
        page.route("**/explain", lambda route: route.abort())
        page.fill("#text-0", "great")
        expect(page.locator("#notice-text")).to_have_text("The server does not answer; check that it is still running.")
        page.unroute("**/explain")
        page.route("**/explain", lambda route: route.fulfill(status=500, body="<b>no</b>"))
        page.fill("#text-0", "greater")
        expect(page.locator("#notice-text")).to_have_text("The server answered 500 without a reason.")
        page.unroute("**/explain")
        read(page, "great film")
        expect(page.locator("#notice")).to_be_hidden()
        expect(page.locator(".waiting")).to_have_count(0)


def _signed(score: float) -> str:
    return f"{'−' if score < 0 else '+'}{abs(score):.2f}"


def test_what_the_model_did_not_read_or_know_is_told_beside_the_bars(browser: Browser, short: Running) -> None:
    bars = ".bars[data-slot='0'] .caution"
    with opened(browser, short.port) as page:
        read(page, "great " * 9)  # explained
        expect(page.locator(bars)).to_have_text(
            ["3 more words were not read: the text is longer than the model’s limit."]
        )
        read(page, "qqq zzz")
        expect(page.locator(bars)).to_have_text(
            ["The model knows no word of this text: its probabilities mean nothing."]
        )
        read(page, "great film")
        expect(page.locator(bars)).to_have_count(0)
        page.fill("#text-0", "great " * 40)  # predicted only
        expect(page.locator(bars)).to_have_text([re.compile("^34 more words were not read")])
        drop(page, "new.txt", ("great " * 9 + "\nqqq zzz\na great film\n").encode())
        page.click("#file-start")
        expect(page.locator("#file-save")).to_be_visible()
        expect(page.locator("tbody .caution")).to_have_text(["3 unread", "no known word"])


def test_a_text_without_a_known_word_is_told_to_screen_readers_too(browser: Browser, short: Running) -> None:
    with opened(browser, short.port) as page:
        read(page, "qqq zzz")
        expect(page.locator("#status")).to_contain_text("The model knows no word of this text")
