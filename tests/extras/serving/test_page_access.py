"""The page for everyone: by keyboard, on a phone, in the dark, readable, and still for those who ask."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from support.browser import PLAIN, hues, opened, read
from support.cli_runs import train_tiny
from support.serving import Running, serving

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


@pytest.fixture
def still(browser: Browser, server: Running) -> Iterator[Page]:
    """The page without its transitions, so that a colour is there at once."""
    with opened(browser, server.port, reduced_motion="reduce") as shown:
        yield shown


def test_everything_is_done_with_the_keyboard(still: Page) -> None:
    page = still

    def tab_to(selector: str) -> None:
        for _ in range(30):
            page.keyboard.press("Tab")
            seen = page.evaluate("""() => {
                const one = document.activeElement, face = one.matches("[type=radio]") ? one.nextElementSibling : one;
                const border = (part) => getComputedStyle(part).borderColor, card = one.closest(".composer");
                return getComputedStyle(face).outlineStyle !== "none" ||
                    one.matches("textarea") && border(card) !== border(document.querySelector(".bars"));
            }""")
            assert seen, page.evaluate("document.activeElement.outerHTML")
            if page.locator(selector).evaluate("(one) => one === document.activeElement"):
                return
        raise AssertionError(f"{selector} is not in the order of focus")

    tab_to("#theme")
    tab_to("#tab-one")
    tab_to("#text-0")
    page.keyboard.type(TEXT)
    page.keyboard.press("Control+Enter")
    expect(page.locator(PLAIN)).to_have_count(6)
    tab_to("[name=view][value=where]")
    tab_to("[name=part] >> nth=0")
    page.keyboard.press("ArrowRight")
    assert set(hues(page)) == {"#0072b2"}
    tab_to("#round-back")
    page.keyboard.press("Enter")
    expect(page.locator("#round-name")).to_have_text("Round 2 of 3")
    tab_to(f"{PLAIN} >> nth=0")
    for _ in range(4):
        page.keyboard.press("ArrowRight")
    expect(page.locator(f"{PLAIN} >> nth=4")).to_be_focused()
    expect(page.locator(".inspector[data-slot='0'] h3")).to_have_text("great")
    page.keyboard.press("Enter")
    expect(page.locator(f"{PLAIN} >> nth=4")).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("End")
    expect(page.locator(f"{PLAIN} >> nth=5")).to_be_focused()
    page.focus("#tab-one")
    page.keyboard.press("ArrowLeft")
    expect(page.locator("#tab-file")).to_be_focused()
    expect(page.locator("#drop")).to_be_visible()


def test_a_phone_never_scrolls_sideways(browser: Browser, documents: Running, server: Running) -> None:
    fits = "() => document.documentElement.scrollWidth <= 360"
    size = {"width": 360, "height": 740}
    for running in (server, documents):
        with opened(browser, running.port, viewport=size, has_touch=True) as page:
            assert page.evaluate(fits)
            read(page, "great " * 10 + "w" * 90)
            assert page.evaluate(fits)
            page.click("text=How much each word matters")
            assert page.evaluate(fits)
            page.click("#tab-two")
            read(page, "m" * 150, slot=1)
            expect(page.locator(".reading.second .span").first).to_be_visible()
            assert page.evaluate(fits)
            page.click("#tab-file")
            assert page.evaluate(fits)
            content = f"text\n{'great ' * 15}\n{'w' * 120}\n".encode()
            page.set_input_files("#file-input", {"name": "n" * 80 + ".csv", "mimeType": "text/csv", "buffer": content})
            page.click("#file-start")
            expect(page.locator(".of-share .track")).to_have_count(2)
            assert page.evaluate(fits)


def test_dark_is_the_systems_or_the_switchs(browser: Browser, server: Running) -> None:
    back = "() => getComputedStyle(document.body).backgroundColor"
    with opened(browser, server.port, color_scheme="dark") as page:
        dark = page.evaluate(back)
        page.click("#theme")
        assert page.evaluate(back) != dark
        page.reload()
        expect(page.locator("#theme")).to_have_text("Light")  # remembered
        page.click("#theme")
        assert page.evaluate(back) == dark
    with opened(browser, server.port, color_scheme="light") as page:
        assert page.evaluate(back) != dark


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_are_readable_on_the_strongest_tints(browser: Browser, server: Running, scheme: str) -> None:
    with opened(browser, server.port, color_scheme=scheme, reduced_motion="reduce") as page:
        read(page, TEXT)
        ratios = page.evaluate(CONTRASTS)
        assert len(ratios) == 10
        assert min(ratios.values()) >= 4.5, ratios


def test_nothing_moves_for_those_who_ask(browser: Browser, server: Running) -> None:
    duration = "() => getComputedStyle(document.querySelector('.span')).transitionDuration"
    for motion, wanted in (("reduce", "0s"), ("no-preference", "0.26s")):
        with opened(browser, server.port, reduced_motion=motion) as page:
            read(page, TEXT)
            assert page.evaluate(duration) == wanted


# WCAG's contrast of the ink on each tint over the card, drawn on a canvas, which knows every notation of a colour.
CONTRASTS = """async () => {
    const { partColour, strength } = await import("/assets/colours.js");
    const word = document.querySelector(".span");
    const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
    const light = (...colours) => {
        for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
        const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((part) => part / 255)
            .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const style = getComputedStyle(word), card = getComputedStyle(document.querySelector(".card")).backgroundColor;
    const names = [...Array(8).keys()].map(partColour).concat("var(--for)", "var(--against)");
    return Object.fromEntries(names.map((name) => {
        word.style.setProperty("--hue", name);
        word.style.setProperty("--strength", strength(1));
        const both = [light(style.color), light(card, style.backgroundColor)].sort((one, other) => other - one);
        return [name, (both[0] + 0.05) / (both[1] + 0.05)];
    }));
}"""
