"""The port of the figures: /metrics, /healthz and /readyz."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

from aclbroker.broker.observability.http_listener import HttpListener, Page
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.scrapes import Scrapes
from aclbroker.broker.server.readiness import Readiness, alive

log = get_logger()

MakePage = Callable[[], Awaitable[Page]]


@contextmanager
def status_pages(
    host: str, port: int, scrapes: Scrapes, figures: MakePage, readiness: Readiness
) -> Iterator[None]:
    """Serve the pages inside the block, of which ``figures`` makes one, by ``scrapes``.

    Raises `OSError` if the address cannot be bound.
    """
    pages = {"/metrics": figures, "/healthz": alive, "/readyz": readiness.page}
    listener = HttpListener(host, port, pages)
    log.info("metrics", address=f"{host}:{listener.port}")
    try:
        yield
    finally:
        listener.close()
        scrapes.close()
