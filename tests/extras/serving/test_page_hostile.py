"""Files that are dropped on the page, and strings that want to be markup: in text, labels, file and model names."""

import csv
import io
import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Route, expect
from support.browser import PLAIN, SKELETON, WORD, WORDS, drop, opened, read
from support.cli_runs import train_tiny
from support.serving import Running, serving

pytestmark = pytest.mark.system("chromium", "chromium")

_CALL = "window.hacked=1"
_TAGS = (
    "<script>{0}</script>", "<ScRiPt >{0}</sCrIpT>", "<img src=x onerror={0}>", "<img src=x onerror='{0}'//",
    "<IMG SRC=x OnErRoR=\"{0}\">", "<svg onload={0}>", "<svg/onload={0}>", "<svg><script>{0}</script></svg>",
    "<svg><animate onbegin={0} attributeName=x dur=1s>", "<body onload={0}>", "<iframe srcdoc='<script>{0}</script>'>",
    "<iframe src=javascript:{0}>", "<a href=javascript:{0}>go</a>", "<a href='java\tscript:{0}'>go</a>",
    "<a href='&#106;avascript:{0}'>go</a>", "<input autofocus onfocus={0}>", "<select autofocus onfocus={0}>",
    "<textarea autofocus onfocus={0}>", "<button onclick={0} autofocus>go</button>", "<details open ontoggle={0}>go",
    "<video><source onerror={0}></video>", "<audio src=x onerror={0}>", "<object data=javascript:{0}>",
    "<embed src=javascript:{0}>", "<marquee onstart={0}>go</marquee>", "<math><mi xlink:href=javascript:{0}>go",
    "<form action=javascript:{0}><button>go</button></form>", "<base href='//example.invalid/'>",
    "<link rel=stylesheet href='//example.invalid/a.css'>", "<meta http-equiv=refresh content='0;url=javascript:{0}'>",
    "<style>*{{display:none}}</style>", "<div style='position:fixed;inset:0'>over all</div>", "<p hidden>gone</p>",
    "<template><script>{0}</script></template>", "<noscript><p title='</noscript><img src=x onerror={0}>'>",
    "<!--><img src=x onerror={0}>-->", "<![CDATA[<img src=x onerror={0}>]]>", "<?xml?><img src=x onerror={0}>",
    "<b>bold</b>", "<h1>large</h1>", "<table><td>cell", "<option selected>mine</option>", "<dialog open>hello</dialog>",
    "<custom-part onclick={0}>go</custom-part>", "<img src='//example.invalid/pixel.png'>", "<br><hr><wbr>",
)  # fmt: skip
_BREAKS = (
    "\"><script>{0}</script>", "'><img src=x onerror={0}>", "</textarea><script>{0}</script>",
    "</title><script>{0}</script>",
    "</option></select><img src=x onerror={0}>", "</span></div><script>{0}</script>", "\" onmouseover=\"{0}",
    "' onfocus='{0}' autofocus='", "javascript:{0}", "${{{0}}}", "{{{{constructor.constructor('{0}')()}}}}",
    "&lt;script&gt;{0}&lt;/script&gt;", "\\u003cscript\\u003e{0}\\u003c/script\\u003e", "%3Cscript%3E{0}%3C/script%3E",
)  # fmt: skip
STRINGS = [form.format(_CALL) for form in (*_TAGS, *_BREAKS)]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(train_tiny(tmp_path_factory.mktemp("files")), "--max-characters", 400) as running:
        yield running


@pytest.fixture
def page(browser: Browser, server: Running) -> Iterator[Page]:
    with opened(browser, server.port) as shown:
        yield shown
        assert shown.evaluate("window.hacked") is None


def test_sixty_strings_of_which_most_would_be_seen_if_they_were_parsed(browser: Browser) -> None:
    assert len(set(STRINGS)) == 60
    page = browser.new_page()
    page.set_content("<p id=place></p>")
    plain = page.evaluate(SKELETON)
    parsed = "([text, skeleton]) => { document.getElementById('place').innerHTML = text; return eval(skeleton)(); }"
    seen = [string for string in STRINGS if page.evaluate(parsed, [string, SKELETON]) != plain]
    page.close()
    assert len(seen) >= 45


def _answer(status: int, values: Any, route: Route) -> None:
    route.fulfill(status=status, json=values)


def test_a_text_stays_a_text(page: Page) -> None:
    read(page, "plain")
    page.click("text=How much each word matters")
    page.select_option("#method", "message")  # the quickest
    expect(page.locator("#meaning")).to_contain_text("by message")
    page.click("text=Where each word goes")
    plain = page.evaluate(SKELETON)
    for string in STRINGS:
        read(page, string)
        assert page.locator(".reading[data-slot='0'] .words").evaluate("(one) => one.textContent") == string
        assert page.evaluate(SKELETON) == plain
        assert set(page.evaluate(WORDS)) == {WORD}
    page.hover(f"{PLAIN} >> nth=1")
    assert page.locator(".inspector[data-slot='0'] h3").evaluate("(one) => one.children.length") == 0


def test_labels_stay_texts(browser: Browser, server: Running) -> None:
    def replace(names: list[str]) -> Any:
        def fulfil(route: Route) -> None:
            response = route.fetch()
            values = response.json()
            if "labels" in values:
                values["labels"] = names
            for result in values.get("results", ()):
                result |= {"predicted": [names[0]], "label": names[0], "labels": [names[0]]}
                result["probabilities"] = {name: 1 / len(names) for name in names}
            route.fulfill(response=response, json=values)

        return fulfil

    skeletons = []
    for names in ([f"label {number}" for number in range(60)], STRINGS):
        with opened(browser, server.port) as page:
            page.route("**/labels", replace(names))
            page.route("**/explain", replace(names))
            page.route("**/predict", replace(names))
            page.reload()
            read(page, "a great film")
            page.click("text=Show all 60 labels")
            expect(page.locator(".bars[data-slot='0'] .name")).to_have_count(60)
            assert page.locator(".bars[data-slot='0'] .name").all_text_contents() == names
            assert page.locator("#label option").all_text_contents()[1:] == names
            page.click("text=How much each word matters")
            page.hover(f"{PLAIN} >> nth=1")
            drop(page, "two.txt", b"great\nawful\n")
            page.click("#file-start")
            expect(page.locator(".of-label").first).to_have_text(names[0])
            skeletons.append(page.evaluate(SKELETON))
            assert page.evaluate("window.hacked") is None
    assert skeletons[0] == skeletons[1]


def test_a_model_name_stays_a_text(browser: Browser, server: Running) -> None:
    answer = server.get("/labels").json
    with opened(browser, server.port) as page:
        plain = page.evaluate(SKELETON)
        for start in range(0, 60, 4):  # four in a name: each costs a visit
            string = " ".join(STRINGS[start : start + 4])
            page.unroute("**/labels")
            page.route("**/labels", partial(_answer, 200, {**answer, "model": string}))
            page.reload()
            expect(page.locator("#facts .model")).to_have_count(1)
            assert page.locator("#facts .model").text_content() == string
            assert page.evaluate(SKELETON) == plain
        assert page.evaluate("window.hacked") is None


def test_file_names_and_what_files_hold_stay_texts(page: Page) -> None:
    drop(page, "plain.csv", b"plain,other\nplain,1\n")
    expect(page.locator("#file-name")).to_have_text("plain.csv")
    plain = page.evaluate(SKELETON)
    for string in STRINGS:
        cells = io.StringIO()
        csv.writer(cells).writerows([[string, "other"], [string + "!", "1"]])
        drop(page, f"{string}.csv", cells.getvalue().encode())
        expect(page.locator("tbody button")).to_have_count(1)
        page.wait_for_function(
            "(name) => document.getElementById('file-name').textContent === name", arg=f"{string}.csv"
        )
        assert page.locator("#column option").first.text_content() == string
        assert page.locator("tbody button").text_content() == string + "!"
        assert page.evaluate(SKELETON) == plain


def test_an_error_stays_a_text(browser: Browser, server: Running) -> None:
    with opened(browser, server.port, refusals=True) as page:
        for string in STRINGS[:10]:
            page.unroute("**/explain")
            page.route("**/explain", partial(_answer, 422, {"error": string}))
            page.fill("#text-0", string)
            page.press("#text-0", "Control+Enter")
            page.wait_for_function(
                "(text) => document.getElementById('notice-text').textContent.startsWith(text)", arg=string
            )
            assert page.locator("#notice-text *").count() == 0


def test_a_file_of_lines_becomes_a_table_that_can_be_downloaded(page: Page, server: Running, tmp_path: Path) -> None:
    texts = [
        "a great film",
        '=HYPERLINK("x")',
        "+1 awful",
        "-1 dull",
        "@SUM(A1)",
        '\tcold "people", grim',
        " =1+1",
        "w" * 401,
    ]
    drop(page, "films.txt", ("\r\n".join(texts) + "\n\n").encode("utf-8-sig"))
    expect(page.locator("#file-facts")).to_have_text("8 texts")
    page.click("#file-start")
    expect(page.locator("#file-facts")).to_have_text("7 of 8 texts classified")
    expect(page.locator("tbody tr").last.locator(".of-label")).to_have_text("over 400 characters")
    with page.expect_download() as loading:
        page.click("#file-save")
    assert loading.value.suggested_filename == "films-predictions.csv"
    loading.value.save_as(tmp_path / "saved.csv")
    rows = list(csv.DictReader((tmp_path / "saved.csv").read_text("utf-8-sig").splitlines()))
    guarded = [text if text[0] in "aw" else f"'{text}" for text in texts]
    assert [row["text"] for row in rows] == guarded
    told = server.post("/predict", {"texts": texts[:7]}).json["results"]
    for row, result in zip(rows, told, strict=False):
        assert row["label"] == result["labels"][0]
        shares = {label: float(row[f"probability of {label}"]) for label in result["probabilities"]}
        assert shares == pytest.approx(result["probabilities"], abs=1e-5)
        assert float(row["probability"]) == max(shares.values())
    assert (rows[7]["row"], rows[7]["label"], rows[7]["probability"]) == ("8", "", "")
    page.click("tbody button >> nth=0")
    expect(page.locator(PLAIN)).to_have_text(["a", "great", "film"])


def test_a_column_of_a_csv_file_is_picked(page: Page) -> None:
    content = 'id;long;Text\r\n1;"a much longer; ""column""";great\r\n2;"of\nnotes, and of more";\r\n'
    drop(page, "notes.CSV", content.encode())
    cells = page.locator("tbody button")
    expect(cells).to_have_text(["great", ""])  # the column that says so
    page.select_option("#column", label="long")
    expect(cells).to_have_text(['a much longer; "column"', "of notes, and of more"])
    page.select_option("#column", label="Text")
    page.click("#file-start")
    expect(page.locator("#file-facts")).to_have_text("1 of 2 texts classified")
    expect(page.locator(".of-label")).to_have_text(["good", "blank"])
    page.click("#file-close")
    page.set_input_files("#file-input", {"name": "plain.csv", "mimeType": "", "buffer": b"a,b\nx,a longer one\n"})
    # A list waits; a lone text fails at once while the two cells of the file before are there.
    expect(cells).to_have_text(["a longer one"])


def test_a_long_file_is_sent_in_parts_and_shown_in_parts(page: Page) -> None:
    bodies: list[int] = []
    page.on(
        "request",
        lambda asked: bodies.append(len(json.loads(asked.post_data or ""))) if "predict" in asked.url else None,
    )
    drop(page, "long.txt", b"a great film\nan awful film\n" * 125)
    page.click("#file-start")
    expect(page.locator("#file-facts")).to_have_text("250 of 250 texts classified")
    assert len(bodies) == 4
    expect(page.locator("tbody tr")).to_have_count(100)
    page.click("#file-more")
    expect(page.locator("tbody tr")).to_have_count(200)
    expect(page.locator("#file-more")).to_have_text("Show more: 50 left")


@pytest.mark.parametrize(
    ("name", "content", "told"),
    [
        ("report.pdf", b"%PDF-1.7", "A .txt file (one text a line) or a .csv file (with a header) is wanted."),
        ("a.csv", b"text,label\nfine,1\ntoo,many,cells\n", "Row 2 has 3 cells, and the header has 2."),
        ("a.csv", b'text\n"never closed\n', "A quote is opened in the file and never closed."),
        ("a.csv", b'text\n"closed" too soon\n', "Row 1 has characters after a closing quote."),
        ("a.csv", b"", "The file is empty."),
        ("a.csv", b"text\n", "There is no text in the file."),
        ("a.txt", b" \n\n", "There is no text in the file."),
        ("a.txt", "tr\xe8s bien".encode("latin-1"), "The file is not UTF-8 text; save it as UTF-8."),
    ],
)
def test_a_file_that_cannot_be_read_is_told_in_a_sentence(page: Page, name: str, content: bytes, told: str) -> None:
    drop(page, name, content)
    expect(page.locator("#notice-text")).to_have_text(told)
    expect(page.locator("#job")).to_be_hidden()
