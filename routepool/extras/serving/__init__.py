"""The server of `routepool serve`: JSON over HTTP, and a page in the browser.

    connection -> server -> guard -> application -> lane -> model

`server` listens, closes slow connections, drains and reloads; `guard` refuses what is too large, too many or without
the key; `application` knows the addresses and the bodies; and a `lane` is the one thread that computes with a model,
for many clients at once.
"""

from routepool.extras.serving.server import serve

__all__ = ["serve"]
