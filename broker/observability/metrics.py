"""Figures of the running broker for Prometheus: counted in the event loop, served by a thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from prometheus_client import Metric

Labels = tuple[str, ...]


class _Declared(NamedTuple):
    help: str
    labels: Labels
    is_gauge: bool = False


_DECLARED: Final[Mapping[str, _Declared]] = {
    "aclbroker_authentications": _Declared(
        "Authentications by outcome: succeeded, renewed (KIP-368) or failed.",
        ("listener", "mechanism", "outcome"),
    ),
    "aclbroker_connections": _Declared("Connections that are open.", ("listener",), is_gauge=True),
    "aclbroker_expired_sessions": _Declared(
        "Connections closed because their session ended and was not renewed.", ("listener",)
    ),
}


class Metrics:
    """Figures by name and labels."""

    def __init__(self) -> None:
        self._values: Counter[tuple[str, Labels]] = Counter()
        self._close: Callable[[], None] | None = None

    def add(self, name: str, *labels: str, amount: int = 1) -> None:
        """Add to a figure; the labels are in the order of its declaration."""
        self._values[name, labels] += amount

    def serve(self, host: str, port: int) -> int:
        """Serve all figures over HTTP from a thread; return the port. Raises `OSError`."""
        from prometheus_client import CollectorRegistry, ProcessCollector, start_http_server

        registry = CollectorRegistry()
        ProcessCollector(registry=registry)
        registry.register(self)
        server, thread = start_http_server(port, host, registry)

        def close() -> None:
            server.shutdown()
            server.server_close()
            thread.join()

        self._close = close
        return int(server.server_port)

    def close(self) -> None:
        """Stop serving."""
        if self._close is not None:
            self._close()

    def collect(self) -> Iterator[Metric]:
        """Return the figures as prometheus_client has them; called in its thread."""
        from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

        values = self._values.copy()
        for name, declared in _DECLARED.items():
            family = GaugeMetricFamily if declared.is_gauge else CounterMetricFamily
            metric = family(name, declared.help, labels=declared.labels)
            for labels, value in _of(values, name):
                metric.add_metric(labels, value)
            yield metric


def _of(values: Mapping[tuple[str, Labels], int], name: str) -> Iterable[tuple[Labels, int]]:
    return ((labels, value) for (each, labels), value in values.items() if each == name)
