"""What others notice of an attack: how long they wait, and what memory it takes."""

from __future__ import annotations

import ssl
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from aclbroker.broker.client.blocking import BlockingClient, connect
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from benchmarks.servers import Server
from tests.support.accounts import PASSWORDS
from tests.support.client import request_frame

SASL, TLS, HTTP, API = "SASL_PLAINTEXT", "SSL", "HTTP", "API"
"""Names of a server's listeners: HTTP serves the metrics, API the HTTP API."""

IDENTITY: Final = "healthy.pem"
"""The file with the key and the certificate that the healthy client shows."""

NEVER: Final = 10_000.0
"""The milliseconds after which nobody waits any longer, which then is the figure."""

USER: Final = "bob"

LOGINS: Final = 10
"""How many logins and scrapes there are."""

_BETWEEN: Final = 0.005
_BETWEEN_LOGINS: Final = 0.2
_SMALLEST: Final = request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
_RESET_PEAK: Final = "5"


def healthy(server: Server, listener: str = SASL) -> BlockingClient:
    """Return a client that is logged in, where there is TLS by its certificate."""
    place = _place(server.listeners[listener])
    if listener == TLS:
        tls = shows(server.process.directory / IDENTITY)
        return BlockingClient(connect(*place, NEVER / 1000, tls), "healthy")
    client = BlockingClient(connect(*place, NEVER / 1000), "healthy")
    client.login(USER, PASSWORDS[USER])
    return client


def shows(identity: Path) -> ssl.SSLContext:
    """Return what a client needs that shows a certificate and trusts every broker."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.load_cert_chain(identity)
    return context


def longest_wait(client: BlockingClient, is_over: Callable[[], bool]) -> float:
    """Return the milliseconds of the slowest of its requests, one every 5 ms until it is over.

    It is `NEVER` if one is not answered in time, or the connection ends.
    """
    longest = 0.0
    while not is_over():
        longest = max(longest, _milliseconds(lambda: ask(client)))
        if longest >= NEVER:
            break
        time.sleep(_BETWEEN)
    return longest


def longest_login(server: Server) -> float:
    """Return the milliseconds of the slowest of some logins, from connecting on; or `NEVER`."""
    return _longest(lambda: healthy(server).close())


def longest_scrape(server: Server) -> float:
    """Return the milliseconds of the slowest of some scrapes of the figures; or `NEVER`."""
    return _longest(lambda: scrape(server))


def ask(client: BlockingClient) -> None:
    """Ask for what costs least. Raises OSError if there is no answer in time."""
    client.send(_SMALLEST)
    client.receive()


def scrape(server: Server) -> None:
    """Ask for the figures. Raises OSError if they do not come in time."""
    url = f"http://{server.listeners[HTTP]}/metrics"
    with closing(urllib.request.urlopen(url, timeout=NEVER / 1000)) as answer:
        answer.read()


def _longest(work: Callable[[], object]) -> float:
    longest = 0.0
    for _ in range(LOGINS):
        longest = max(longest, _milliseconds(work))
        if longest >= NEVER:
            break
        time.sleep(_BETWEEN_LOGINS)
    return longest


def _milliseconds(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    try:
        work()
    except OSError:
        return NEVER
    return min(NEVER, 1000 * (time.perf_counter() - begin))


class Memory:
    """The memory of a broker's process above what it has when this is made, in MiB."""

    def __init__(self, server: Server) -> None:
        self._process = Path(f"/proc/{server.pid}")
        self._before = self._status("VmRSS")

    def reset(self) -> None:
        """Forget the peak so far."""
        (self._process / "clear_refs").write_text(_RESET_PEAK)

    @property
    def peak(self) -> float:
        """The most that it had since; 0 if it never had more."""
        return max(0.0, self._status("VmHWM") - self._before)

    def _status(self, field: str) -> float:
        return status(self._process)[field] / 1024


def status(process: Path) -> dict[str, int]:
    """Return the numbers in a process's ``/proc/PID/status`` by their names; sizes are in KiB."""
    return dict(_numbers((process / "status").read_text()))


def _numbers(text: str) -> Iterator[tuple[str, int]]:
    for line in text.splitlines():
        name, _, value = line.partition(":")
        number = value.split()[:1]
        if number and number[0].isdecimal():
            yield name, int(number[0])


def _place(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)
