"""`routepool demo`: routing and its baselines on real sentences, in minutes, and which word went where."""

from typing import Annotated

import typer

from routepool.cli.options import Force


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
    from routepool.cli.demonstration import demonstrate  # noqa: PLC0415

    demonstrate(out, epochs=epochs, force=force)
