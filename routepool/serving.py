"""What a server is asked to do, and the table of those who can do it with an optional package."""

from collections.abc import Callable
from dataclasses import dataclass, field

from routepool.registry import Extra, Registry


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a client may ask for; more is refused before anything is computed.

    Args:
        body_bytes: of a request.
        texts: of a request.
        text_characters: of each text.
        explained_texts: of a request for explanations, which cost a hundred times what a prediction costs.
        explained_characters: of each text to explain.
        explained_cost: of a request for explanations, in words read: a prediction reads each word once, leaving
            one out reads a text once for each of its words.
        queue: texts that may wait for the model, of all clients; for explanations fewer, as a request has fewer.
        connections: open at once.
        request_seconds: until a request has arrived whole, and from then until it is answered.
        header_seconds: until the header of a request has arrived.
    """

    body_bytes: int = 1_000_000
    texts: int = 256
    text_characters: int = 20_000
    explained_texts: int = 16
    explained_characters: int = 5_000
    explained_cost: int = 1_000_000
    queue: int = 1024
    connections: int = 512
    request_seconds: float = 30.0
    header_seconds: float = 10.0


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


# Name -> what serves until it is told to stop, and calls back with its address as soon as it answers.
Server = Callable[[Service, Callable[[str], None]], None]
SERVERS: Registry[Server] = Registry("server", extras={"http": Extra("routepool.extras.serving", "serve")})
