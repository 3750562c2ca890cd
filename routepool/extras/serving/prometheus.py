"""What is counted, in the form that Prometheus reads. Never a text, never a label of a text."""

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

CONTENT_TYPE = CONTENT_TYPE_LATEST
_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_TEXTS = (1, 2, 4, 8, 16, 32, 64, 128, 256)


class Metrics:
    """The counters of one server.

    >>> metrics = Metrics()
    >>> metrics.requests.labels("/predict", "200").inc()
    >>> b'routepool_requests_total{path="/predict",status="200"} 1.0' in metrics.render()
    True
    """

    def __init__(self) -> None:
        own = self._registry = CollectorRegistry()
        self.requests = Counter("routepool_requests", "Requests answered.", ["path", "status"], registry=own)
        self.seconds = Histogram(
            "routepool_request_seconds", "From header to answer.", ["path"], buckets=_SECONDS, registry=own
        )
        self.batches = Histogram(
            "routepool_batch_texts", "Texts that the model read together.", ["lane"], buckets=_TEXTS, registry=own
        )
        self.waiting = Gauge("routepool_waiting_texts", "Texts that wait for the model.", ["lane"], registry=own)
        self.connections = Gauge("routepool_connections", "Open connections.", registry=own)
        self.reloads = Counter("routepool_reloads", "Attempts to load the model again.", ["outcome"], registry=own)
        for outcome in ("loaded", "kept"):
            self.reloads.labels(outcome)

    def render(self) -> bytes:
        """The whole table."""
        return generate_latest(self._registry)
