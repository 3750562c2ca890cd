"""What a server is asked to do, and the table of those who can do it with an optional package."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from routepool.registry import Extra, Registry


def _limit(usual: float, flag: str, help: str, *, least: float = 1) -> Any:
    """A limit with its usual value, and the option of the command line that sets it."""
    metavar = "N" if isinstance(usual, int) else "S"
    return field(default=usual, metadata={"flag": f"--max-{flag}", "metavar": metavar, "help": help, "least": least})


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a client may ask for; more is refused before anything is computed.

    An explanation costs a hundred times as much as a prediction, or more: a prediction reads each word once,
    leave-one-out reads a text once for each of its words.
    """

    body_bytes: int = _limit(1_000_000, "body-bytes", "Of a request.")
    texts: int = _limit(256, "texts", "Of a request.")
    text_characters: int = _limit(20_000, "characters", "Of a text.")
    explained_texts: int = _limit(16, "explain-texts", "Of a request for explanations, which cost far more.")
    explained_characters: int = _limit(5_000, "explain-characters", "Of a text to explain.")
    explained_cost: int = _limit(
        1_000_000, "explain-cost", "Of a request for explanations, in words read; a prediction reads each once."
    )
    queue: int = _limit(1024, "queue", "Texts that may wait for the model; more are answered with 503.")
    connections: int = _limit(512, "connections", "Open at once.")
    request_seconds: float = _limit(
        30.0, "request-seconds", "For a request to arrive, and again for its answer (else 504).", least=0.1
    )
    header_seconds: float = _limit(
        10.0, "header-seconds", "For the header of a request; then the connection is closed.", least=0.1
    )


@dataclass(frozen=True, kw_only=True)
class Service:
    """A model to serve, where, and to whom.

    Args:
        run: the model folder.
        host: the address to listen on.
        port: 0 for any that is free.
        key: what clients must send; needed on every address that others can reach.
        threads: of the model's computations.
        limits: what a client may ask for.
    """

    run: str
    host: str = "127.0.0.1"
    port: int = 8000
    key: str | None = field(default=None, repr=False)
    threads: int = 1
    limits: Limits = Limits()


# Name -> what serves until a signal stops it, and calls back with its address as soon as it answers.
Server = Callable[[Service, Callable[[str], None]], None]
SERVERS: Registry[Server] = Registry("server", extras={"http": Extra("routepool.extras.serving", "serve")})
