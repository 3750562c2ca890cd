"""The pictures of README.md, taken anew: python tests/programmes/pictures.py RUN [FOLDER]

RUN is a model of film reviews, such as `routepool train rotten-tomatoes --out RUN` makes. Server and browser are
real; both pages and what `routepool explain` draws go to FOLDER, by default docs/.
"""

import sys
from pathlib import Path

from playwright.sync_api import Browser, expect

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from support.browser import chromium, opened, read
from support.serving import Running, serving

from routepool import load
from routepool.extras.plot_explanation import draw_explanation

DOCS = Path(__file__).parents[2] / "docs"
MIXED = "The plot is thin, but the leads are a joy."
WARM, COLD = "A warm, funny film with two great leads.", "A cold, clumsy film with two great leads."


def one_text(browser: Browser, server: Running, folder: Path) -> None:
    """Where each word goes, in daylight."""
    with opened(browser, server.port, color_scheme="light") as page:
        read(page, MIXED)
        page.screenshot(path=folder / "page-light.png", full_page=True, animations="disabled")


def two_texts(browser: Browser, server: Running, folder: Path) -> None:
    """How much each word matters, at night."""
    with opened(browser, server.port, color_scheme="dark", viewport={"width": 1120, "height": 900}) as page:
        read(page, WARM)
        page.click("#tab-two")
        read(page, COLD, slot=1)
        page.click("text=How much each word matters")
        expect(page.locator("#meaning")).to_contain_text("How much a word matters")
        page.screenshot(path=folder / "page-dark.png", full_page=True, animations="disabled")


def main(run: Path, folder: Path = DOCS) -> None:
    (explanation,) = load(run).explain([MIXED])
    with (folder / "explanation.png").open("wb") as file:
        draw_explanation(file, explanation, form="png")
    with serving(run) as server, chromium() as browser:
        one_text(browser, server, folder)
        two_texts(browser, server, folder)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
