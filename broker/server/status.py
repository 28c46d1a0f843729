"""The port of the figures: /metrics, /healthz and /readyz."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from aclbroker.broker.observability.http_listener import HttpListener
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.scrapes import Scrapes
from aclbroker.broker.server.readiness import Readiness, alive

log = get_logger()


@contextmanager
def status_pages(host: str, port: int, metrics: Metrics, readiness: Readiness) -> Iterator[None]:
    """Serve the pages inside the block. Raises `OSError` if the address cannot be bound."""
    scrapes = Scrapes(metrics)
    pages = {"/metrics": scrapes.page, "/healthz": alive, "/readyz": readiness.page}
    listener = HttpListener(host, port, pages)
    log.info("metrics", address=f"{host}:{listener.port}")
    try:
        yield
    finally:
        listener.close()
        scrapes.close()
