"""What a client notices while others fail to log in, send garbage, or open connections and wait."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial
from typing import Final

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from benchmarks import requests
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, Row, Work, one
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, prepared
from benchmarks.unkind import UNKIND
from tests.support.client import request_frame

SECTION: Final = "Under attack"
TITLE: Final = "Metadata of one topic, one client, p99, while"
NOTE: Final = "100 connections at a time with wrong passwords or random bytes; 2,000 silent ones."
KINDS: Final = {
    "": "nobody else is there",
    "logins": "others send wrong passwords",
    "garbage": "others send random bytes",
    "silence": "others open connections and are silent",
}
SECONDS: Final = 3.0
WARM_UP: Final = 1.0
NOTE_OF_WAITS: Final = (
    "The attacker sends its request over and over from a process of its own, which shares the two "
    "cores; the client asks every 5 ms for 3 s."
)
_BETWEEN: Final = 0.005
_SMALLEST: Final = request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
_SMALL: Final = request_frame(ApiKey.METADATA, requests.METADATA_VERSION, requests.SMALL_METADATA)


def works() -> list[Work[Server]]:
    """Return what is measured."""
    quantiles = [
        one(
            Row(
                f"attacked-{kind or 'not'}",
                SECTION,
                f"{TITLE} {meanwhile}",
                "ms",
                target=50,
                note=NOTE if kind == "logins" else "",
            ),
            partial(_p99, kind=kind),
            sides=(OURS, KAFKA),
        )
        for kind, meanwhile in KINDS.items()
    ]
    longest = [
        one(
            Row(
                f"attacked-by-{kind}",
                SECTION,
                f"ApiVersions of one client, longest wait, while {unkind.title}",
                "ms",
                note=NOTE_OF_WAITS if kind == "tags" else "",
            ),
            partial(_longest_wait, kind=kind),
            sides=(OURS, KAFKA),
        )
        for kind, unkind in UNKIND.items()
    ]
    return quantiles + longest


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for work in works() for row in work.rows]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted."""
    wanted = [work for work in works() if options.wants(*work.rows)]
    if options.quick or not wanted:
        return
    with prepared(tuple(peer for peer in options.peers if peer == KAFKA)) as servers:
        for server in servers.values():
            server.start()
        for work in wanted:
            for _ in range(options.rounds):
                play([work], servers, results)
            tell([work], results)


def _p99(server: Server, kind: str) -> float:
    """Return the milliseconds within which 99 of 100 requests of a client are answered."""
    with server.connect() as client, _attacked(server, kind):
        for seconds in (WARM_UP, SECONDS):
            taken, end = [], time.perf_counter() + seconds
            while time.perf_counter() < end:
                taken.append(client.seconds(_SMALL))
        return 1000 * statistics.quantiles(taken, n=100)[-1]


def _longest_wait(server: Server, kind: str) -> float:
    """Return the milliseconds that the slowest of a client's requests waited for its answer."""
    with server.connect() as client, _attacked(server, kind):
        longest = 0.0
        for seconds in (WARM_UP, SECONDS):
            longest, end = 0.0, time.perf_counter() + seconds
            while time.perf_counter() < end:
                longest = max(longest, client.seconds(_SMALLEST))
                time.sleep(_BETWEEN)
        return 1000 * longest


@contextlib.contextmanager
def _attacked(server: Server, kind: str) -> Iterator[None]:
    if not kind:
        yield
        return
    command = [sys.executable, "-m", "benchmarks.intruder", kind, server.address]
    with subprocess.Popen(command) as intruder:
        try:
            yield
        finally:
            intruder.kill()
