"""The page in Debian's Chromium, watched: nothing fetched from elsewhere, no error in its console."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright

PLAIN = ".reading[data-slot='0'] [role=button]"  # the words of the first text

# Tags and attribute names of the whole page, but for the words, their lines and what is said of words not read, whose
# number depends on the text, and for what is set and taken away by scripts.
SKELETON = """() => [...document.querySelectorAll("*")].filter((one) => !one.closest(".words, .routes, .caution"))
    .map((one) => [one.localName, ...[...one.attributes].map((each) => each.name).sort()
        .filter((name) => !["class", "style", "disabled"].includes(name))].join(" "))"""
WORDS = """() => [...document.querySelectorAll(".words *")]
    .map((one) => [one.localName, ...[...one.attributes].map((each) => each.name).sort()].join(" "))"""
WORD = "span aria-label aria-pressed class data-part role style tabindex"


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser process; without a sandbox, which root and containers do not have."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def opened(browser: Browser, port: int, *, refusals: bool = False, **options: Any) -> Iterator[Page]:
    """The page, freshly opened.

    Args:
        browser: from `chromium`.
        port: of the server.
        refusals: whether the server may refuse something, which a browser's console tells.
        options: of the browser's context, such as its size or colours.
    """
    address, troubles = f"http://127.0.0.1:{port}/", list[str]()
    context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
    context.set_default_timeout(20_000)
    expect.set_options(timeout=20_000)
    page = context.new_page()
    page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
    page.on("console", lambda said: troubles.append(f"console: {said.text}"))
    page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}"))
    page.on("request", lambda asked: troubles.extend(_from_elsewhere(asked.url, address)))
    try:
        page.goto(address)
        expect(page.locator("#facts .model, #key-form:not([hidden])").first).to_be_visible()
        yield page
    finally:
        context.close()
    if refusals:
        troubles = [trouble for trouble in troubles if "Failed to load resource" not in trouble]
    assert not troubles, troubles


def _from_elsewhere(url: str, address: str) -> list[str]:
    return [] if url.startswith((address, "data:", "blob:")) else [f"request: {url}"]


def read(page: Page, text: str, slot: int = 0) -> None:
    """Have a text classified, and wait until it is shown."""
    page.fill(f"#text-{slot}", text)
    with page.expect_response("**/explain"):
        page.press(f"#text-{slot}", "Control+Enter")
    expect(page.locator(f".bars[data-slot='{slot}']:not(.waiting) li").first).to_be_visible()


def drop(page: Page, name: str, content: bytes) -> None:
    """Let a file fall on the page, as from a folder of the desktop."""
    transfer = page.evaluate_handle(
        """([name, bytes]) => {
            const transfer = new DataTransfer();
            transfer.items.add(new File([new Uint8Array(bytes)], name));
            return transfer;
        }""",
        [name, list(content)],
    )
    page.dispatch_event("main", "drop", {"dataTransfer": transfer})


def strengths(page: Page) -> list[float]:
    """How strongly each word is painted, in per cent."""
    return [float(value.rstrip("%")) for value in _variables(page, "strength")]


def hues(page: Page) -> list[str]:
    """The colour of each word."""
    return _variables(page, "hue")


def _variables(page: Page, name: str) -> list[str]:
    found = page.locator(PLAIN).evaluate_all(
        "(words, name) => words.map((word) => word.style.getPropertyValue(name))", f"--{name}"
    )
    return [str(value) for value in found]
