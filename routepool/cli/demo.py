"""`routepool demo`: routing and its baselines on real sentences, in minutes, and which word went where."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from routepool.cli import screen
from routepool.cli.options import Force

if TYPE_CHECKING:
    from routepool.runs.comparison import Trained

SENTENCES = (
    "The plot is thin, but the two leads are a joy to watch.",
    "I wanted to like it; after an hour I only wanted to leave.",
    "Slow, quiet and never dull.",
)


def demo(
    out: Annotated[str, typer.Option(metavar="RUN", help="The folder of the routing model.")] = "runs/demo",
    epochs: Annotated[int, typer.Option(metavar="N", min=1, help="Passes over the training set.")] = 4,
    force: Force = False,
) -> None:
    """Train routing and three baselines on 6,909 film review sentences, compare them, and look inside.

    `routepool demo`

    Needs the packages of `pip install "routepool[demo]"`; nothing else is downloaded. Takes a few minutes on two cores.
    """
    # Here and not above: what trains needs torch.
    from routepool.cli.painting import paint  # noqa: PLC0415
    from routepool.cli.progress import ScreenReporter  # noqa: PLC0415
    from routepool.datasets import load_named  # noqa: PLC0415
    from routepool.explaining import Subject, explain  # noqa: PLC0415
    from routepool.persistence import check_free, save_model  # noqa: PLC0415
    from routepool.runs.comparison import DATA, VECTORS, train_side_by_side  # noqa: PLC0415

    run = Path(out)
    check_free(run, force=force)
    parts = load_named(DATA)
    screen.say(f"{DATA}: {len(parts.train.examples)} sentences to learn from, {len(parts.dev.examples)} to stop by, "
               f"{len(parts.test.examples)} to score; word vectors: {VECTORS}; {epochs} epochs each")  # fmt: skip
    results = train_side_by_side(epochs, ScreenReporter())
    _show(results)
    saved, scores, _ = results["routing"]
    for sentence in SENTENCES:
        screen.say("")
        screen.say(sentence)
        paint(explain(Subject.of(saved), [sentence])[0])
    accuracy = {"value": scores.accuracy, "low": scores.accuracy_low, "high": scores.accuracy_high}
    card = {
        "title": "Text classifier of the demonstration",
        "scores": [{"set": "test", "score": "accuracy", **accuracy}],
    }
    save_model(run, saved, card=card, force=force)
    screen.say(f"saved in {run}. Next:")
    screen.say(f'  echo "A film to see twice." | routepool predict {run} -')


def _show(results: "dict[str, Trained]") -> None:
    from routepool.runs.comparison import AGGREGATORS, differences, verdict  # noqa: PLC0415

    gaps = differences(results)
    rows = []
    for name, (_, scores, _) in results.items():
        interval = f"{100 * scores.accuracy_low:.1f} to {100 * scores.accuracy_high:.1f}"
        gap = gaps.get(name)
        less = "" if gap is None else f"{100 * gap.value:+.1f} ({100 * gap.low:+.1f} to {100 * gap.high:+.1f})"
        rows.append((AGGREGATORS[name], f"{100 * scores.accuracy:.1f}", interval, less))
    columns = ("aggregator", "accuracy", "95 % interval", "less routing, same texts")
    screen.table("accuracy on the test part, in %", columns, rows)
    screen.say(verdict(gaps))
