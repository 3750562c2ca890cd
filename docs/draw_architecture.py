"""The picture of docs/architecture.md: the flow of a text, and the rooms, each above those it may import.

python docs/draw_architecture.py     writes docs/architecture.svg

The rooms are read from the import-linter contract in pyproject.toml, so the picture shows what is enforced.
"""

import tomllib
from pathlib import Path

DOCS = Path(__file__).parent
FLOW = (
    ("text", "a string", "datasets"),
    ("sentences", "where they end", "text"),
    ("tokens", "ids and their places", "text"),
    ("vectors", "a row of a table each", "layers/blocks"),
    ("encoding", "vectors in context", "layers/encoders"),
    ("aggregation", "one vector, and who went where", "layers/aggregation"),
    ("prediction", "logits, probabilities, labels", "layers/blocks, scoring"),
)
PAPER, INK, QUIET, LINE = "#ffffff", "#26282e", "#6f7480", "#d5d7de"
PURPLE, BLUE, ORANGE = "#6b4fd0", "#2f7bd8", "#e0762b"
WIDTH, ROW, TOP, LEFT, MIDDLE = 920, 34, 64, 30, 470
FONT = "font-family='Helvetica, Arial, sans-serif'"


def rooms() -> list[list[str]]:
    """The layers of the package, the highest first; rooms of one layer do not know each other."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (flow,) = (contract for contract in settings["contracts"] if contract.get("containers") == ["routepool"])
    return [layer.split(" | ") for layer in flow["layers"]]


def text(x: float, y: float, words: str, *, size: int = 14, colour: str = INK, weight: str = "normal") -> str:
    """One line of text."""
    return f"<text x='{x}' y='{y}' {FONT} font-size='{size}' fill='{colour}' font-weight='{weight}'>{words}</text>"


def box(x: float, y: float, width: float, colour: str) -> str:
    """A rounded frame, tinted."""
    return (
        f"<rect x='{x}' y='{y}' width='{width}' height='{ROW - 8}' rx='6' fill='{colour}' fill-opacity='0.12' "
        f"stroke='{colour}'/>"
    )


def flow() -> list[str]:
    """From a string to labels, with the room of each step."""
    drawn = [text(LEFT, 36, "The flow of a text", size=17, weight="bold")]
    for place, (name, what, room) in enumerate(FLOW):
        y = TOP + place * 62
        colour = PURPLE if name == "aggregation" else BLUE
        drawn += [box(LEFT, y, 130, colour), text(LEFT + 12, y + 18, name, weight="bold")]
        drawn += [text(LEFT + 146, y + 12, what), text(LEFT + 146, y + 29, room, size=12, colour=QUIET)]
        if place:
            x = LEFT + 65
            drawn.append(f"<path d='M{x} {y - 35} V{y - 6}' stroke='{QUIET}' fill='none' marker-end='url(#arrow)'/>")
    return drawn


def layers() -> list[str]:
    """The rooms, one layer above the other."""
    drawn = [text(MIDDLE, 36, "The rooms, each above those it may import", size=17, weight="bold")]
    for place, names in enumerate(rooms()):
        y, width = TOP + place * ROW, 420 / len(names)
        for column, name in enumerate(names):
            colour = ORANGE if name in ("__main__", "cli", "extras") else BLUE
            x = MIDDLE + column * width
            drawn += [box(x, y, width - 6, colour), text(x + 12, y + 18, name)]
    return drawn


def draw() -> str:
    """The whole picture."""
    height = TOP + max(len(rooms()) * ROW, len(FLOW) * 62) + 10
    arrow = (
        f"<defs><marker id='arrow' viewBox='0 0 8 8' refX='4' refY='4' markerWidth='8' markerHeight='8' orient='auto'>"
        f"<path d='M0 0 L8 4 L0 8 Z' fill='{QUIET}'/></marker></defs>"
    )
    frame = f"<rect width='{WIDTH}' height='{height}' fill='{PAPER}' stroke='{LINE}'/>"
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height}' role='img'>"
    title = "<title>The flow of a text through routepool, and the rooms of the package</title>"
    return "\n".join([head, title, arrow, frame, *flow(), *layers(), "</svg>", ""])


if __name__ == "__main__":
    (DOCS / "architecture.svg").write_text(draw(), "utf-8")
