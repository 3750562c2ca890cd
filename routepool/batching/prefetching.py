"""Batches prepared in the background, so that a training step never waits for its data."""

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from time import perf_counter
from typing import Generic, Self, TypeVar, cast

from routepool.errors import InputError

T = TypeVar("T")
_END = object()


class Prefetched(Iterator[T], Generic[T]):
    """An iterator that is read in a thread, up to `depth` items ahead of the consumer.

    The items, their order and an exception on the way are those of the iterator; only its time is spent elsewhere. The
    thread ends with it: at the end, on an error, when closed or dropped. Closing waits for the item in preparation, so
    the iterator must not block for ever: no standard input.

    Args:
        batches: read in the thread only.
        depth: items prepared ahead; 0 prepares each when it is asked for.

    Attributes:
        waited: seconds the consumer spent waiting so far.

    >>> with Prefetched(iter("ab")) as letters:
    ...     list(letters)
    ['a', 'b']
    >>> letters.waited < 60
    True
    """

    def __init__(self, batches: Iterable[T], depth: int = 2) -> None:
        if depth < 0:
            raise InputError(f"depth of prefetching must be at least 0, got {depth!r}")
        self.waited = 0.0
        self._batches = iter(batches)
        self._closed = False
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="prefetch")
        self._pending: deque[Future[object]] = deque()
        for _ in range(depth):
            self._ask()

    def __next__(self) -> T:
        if self._closed:
            raise StopIteration
        start = perf_counter()
        try:
            self._ask()
            item = self._pending.popleft().result()
        except BaseException:  # an interrupt while waiting, too
            self.close()
            raise
        finally:
            self.waited += perf_counter() - start
        if item is _END:
            self.close()
            raise StopIteration
        return cast("T", item)

    def close(self) -> None:
        """End the thread; what it prepared is dropped."""
        self._closed = True
        self._pending.clear()
        self._executor.shutdown(cancel_futures=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _ask(self) -> None:
        # The thread is given the iterator and not this object, which can therefore be dropped while it works.
        self._pending.append(self._executor.submit(next, self._batches, _END))
