"""What a client notices, and what it costs, while a fuzzer sends 100,000 unkind requests.

`python -m benchmarks.fuzz PLAINTEXT SASL_PLAINTEXT COUNT` is the fuzzer, on the addresses of the
two listeners. It checks each answer, and prints the size of the largest in bytes.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Final

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from benchmarks.attacks import SECTION
from benchmarks.results import Results
from benchmarks.rows import OURS, Row, Work
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, ours
from tests.fuzz.senders import batches, parties
from tests.fuzz.unkind import NAMES, requests
from tests.support.broker import Broker
from tests.support.client import request_frame
from tests.support.kafka import free_ports

COUNT: Final = 100_000
LARGE: Final = 0.0003
"""The share of requests with about 100,000 entries."""

SEED: Final = 1
NOTE: Final = (
    "Well-formed requests of every version of every key, from a super user, a user with some "
    "rights and one without any, on 16 connections; 30 have about 100,000 entries. The client asks "
    "every 5 ms until all are answered. Kafka is left out: the super user would take it apart."
)
TITLE: Final = f"while others send {COUNT:,} unkind requests"
_BETWEEN: Final = 0.005
_MIB: Final = 1 << 20
_SMALLEST: Final = request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
_LAG: Final = re.compile(r'aclbroker_event_loop_lag_seconds_bucket\{le="([^"]+)"\} (\S+)')

ROWS: Final = (
    Row(
        "attacked-by-fuzz",
        SECTION,
        f"ApiVersions of one client, longest wait, {TITLE}",
        "ms",
        note=NOTE,
    ),
    Row(
        "attacked-by-fuzz-lag",
        SECTION,
        f"lag of the event loop, at most, {TITLE}",
        "ms",
    ),
    Row("attacked-by-fuzz-before", SECTION, f"resident memory, before, {TITLE}", "MiB"),
    Row("attacked-by-fuzz-peak", SECTION, f"resident memory, peak, {TITLE}", "MiB"),
    Row("attacked-by-fuzz-after", SECTION, f"resident memory, after, {TITLE}", "MiB"),
    Row("attacked-by-fuzz-answer", SECTION, f"largest answer, {TITLE}", "MiB"),
)


def rows() -> Sequence[Row]:
    """Return all rows, in their order."""
    return ROWS


def measure(results: Results, options: Options) -> None:
    """Measure once, with a broker of its own, if that is wanted."""
    work = Work(ROWS, _fuzzed, sides=(OURS,))
    if options.quick or not options.wants(*ROWS):
        return
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        [port] = free_ports(1)
        server = ours(
            Path(directory),
            {
                "aclbroker.metrics.address": f"127.0.0.1:{port}",
                "aclbroker.audit.file": "audit.log",
                "aclbroker.catalog.topics": ",".join(f"{name}:1" for name in NAMES),
                "aclbroker.catalog.groups": ",".join(NAMES),
            },
        )
        server.start()
        try:
            play([work], {OURS: server}, results)
        finally:
            server.process.kill()
    tell([work], results)


def _fuzzed(server: Server) -> Sequence[float]:
    process = server.process
    if not isinstance(process, Broker):
        raise TypeError("only this product is fuzzed")
    listeners = [each.partition("://")[2] for each in process.properties["listeners"].split(",")]
    command = [sys.executable, "-m", "benchmarks.fuzz", *listeners, str(COUNT)]
    with server.connect() as client:
        longest, before = 0.0, process.resident_mib
        process.forget_peak()
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as fuzzer:
            while fuzzer.poll() is None:
                longest = max(longest, client.seconds(_SMALLEST))
                time.sleep(_BETWEEN)
            largest, _ = fuzzer.communicate()
        if fuzzer.returncode:
            raise RuntimeError("the fuzzer found an answer that is not right")
    lag = 1000 * _longest_lag(process.properties["aclbroker.metrics.address"])
    return (
        1000 * longest,
        lag,
        before,
        process.peak_mib,
        process.resident_mib,
        int(largest) / _MIB,
    )


def _longest_lag(address: str) -> float:
    """Return the bound, in seconds, of the last bucket of the loop's lag that anything is in."""
    with urllib.request.urlopen(f"http://{address}/metrics", timeout=20) as answer:
        counts = [(float(le), float(n)) for le, n in _LAG.findall(answer.read().decode())]
    return min(le for le, count in counts if count == counts[-1][1])


def fuzz(plaintext: str, sasl: str, count: int) -> int:
    """Send so many requests, and check their answers; return the size of the largest in bytes."""
    listeners = {"PLAINTEXT": plaintext, "SASL_PLAINTEXT": sasl}
    with parties(listeners) as everyone:
        waiting = batches(requests(Random(SEED), count, everyone.ids, most=LARGE))
        while everyone.tally.sent < count:
            everyone.exchange(waiting)
            everyone.forget()
        return everyone.tally.largest


if __name__ == "__main__":
    print(fuzz(sys.argv[1], sys.argv[2], int(sys.argv[3])))
