"""What a client notices while others do their worst: the rows, and the work behind them."""

from __future__ import annotations

import asyncio
import contextlib
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.protocol.messages import ApiKey
from benchmarks import requests
from benchmarks.attacked import (
    ACLS,
    AUDITED,
    FEW_PLACES,
    MANY_ACLS,
    OPEN,
    UNREAD_LOG,
    SetUp,
    attacked,
    fill,
)
from benchmarks.bystander import (
    API,
    HTTP,
    NEVER,
    SASL,
    Memory,
    healthy,
    longest_login,
    longest_scrape,
    longest_wait,
    status,
)
from benchmarks.http_attacks import HTTP_ATTACKS
from benchmarks.intruder import KINDS, Bounds, attack
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, Row, Work, one
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server
from benchmarks.unkind import UNKIND
from tests.support.client import request_frame

SECTION: Final = "Under attack"
SECTION_OF_CALLS: Final = "Under attack over HTTP"
TITLE: Final = "Metadata of one topic, one client, p99, while"
NOTE: Final = "100 connections at a time with wrong passwords or random bytes; 2,000 silent ones."
QUANTILES: Final = {
    "": "nobody else is there",
    **{kind: KINDS[kind].title for kind in ("logins", "garbage", "silence")},
}
SECONDS: Final = 3.0
WARM_UP: Final = 1.0
ONCE_WITHIN: Final = 60.0
ROUNDS: Final = 2
STOPS_WITHIN: Final = 10.0

NOTE_OF_WAITS: Final = (
    "The attacker sends its request over and over from a process of its own, which shares the two "
    "cores; the client, which is logged in, asks every 5 ms for 3 s. 10,000 ms stand for no answer "
    "within that time. Memory is the process's peak above what it has when it has just started."
)
NOTE_OF_HTTP: Final = "Not asked of Kafka, which has no such port."
NOTE_OF_LOG: Final = (
    "What a request leaves in the log of denials, which both write to a file, ours by its defaults."
)
NOTE_OF_DELETION: Final = "Kafka refuses to delete more than 10,000 ACLs with a request."
NOTE_OF_STOP: Final = "Then it is killed."

_SMALL: Final = request_frame(ApiKey.METADATA, requests.METADATA_VERSION, requests.SMALL_METADATA)

_MEMORY, _LOG_OF_ONE = "peak memory", "log of one request"
_LOG_RATE, _LINE_RATE = "log a second", "lines of log a second"

_OF_SEARCHES: Final = ("api-search",)
_OF_CALLS: Final = tuple(kind for kind in HTTP_ATTACKS if kind not in _OF_SEARCHES)
_OF_MANY_ACLS: Final = ("producer-ids", "unread", "delete-acls")
_OF_DENIALS: Final = tuple(kind for kind in UNKIND if kind.endswith("-20mb"))
_OF_LOGS: Final = ("malformed", "logins")
_OF_WAITS: Final = (
    *(kind for kind in UNKIND if kind not in (*_OF_MANY_ACLS, *_OF_DENIALS)),
    "oauthbearer",
    "certificate",
)


class Scene(NamedTuple):
    """What is measured with brokers that are set up in one way."""

    set_up: SetUp
    works: Sequence[Work[Server]]


def scenes() -> list[Scene]:
    """Return all that is measured."""
    return [
        Scene(
            OPEN,
            [
                *(_quantile(kind, meanwhile) for kind, meanwhile in QUANTILES.items()),
                *map(_wait, _OF_WAITS),
                *map(_wait_and_log, _OF_LOGS),
                _login("silent-1000"),
                _half_http(),
                *map(_call, _OF_CALLS),
            ],
        ),
        Scene(AUDITED, [*map(_wait_and_records, _OF_DENIALS), _wait_and_log("denials")]),
        Scene(
            MANY_ACLS,
            [
                *(_wait(kind, filled=True) for kind in _OF_MANY_ACLS),
                *(_call(kind, filled=True) for kind in _OF_SEARCHES),
            ],
        ),
        Scene(FEW_PLACES, [_login("silent-1000", "-200", ", with max.connections=200")]),
        Scene(UNREAD_LOG, [_stuck_log()]),
    ]


def rows() -> list[Row]:
    """Return all rows, in their order."""
    return [row for scene in scenes() for work in scene.works for row in work.rows]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted."""
    if options.quick:
        return
    for scene in scenes():
        wanted = [work for work in scene.works if options.wants(*work.rows)]
        if not wanted:
            continue
        with attacked(scene.set_up, options.peers) as servers:
            for work in wanted:
                for _ in range(work.rounds or options.rounds):
                    play([work], servers, results)
                tell([work], results)


def _row(kind: str, title: str, unit: str = "ms", note: str = "", beside: str = "") -> Row:
    return Row(f"attacked-by-{kind}", SECTION, title, unit, note=note, beside=beside)


def _beside(kind: str, title: str, unit: str, note: str = "") -> Row:
    key = _row(kind, "").key
    return _row(f"{kind}-{title.replace(' ', '-')}", title, unit, note, beside=key)


def _wait_row(kind: str) -> Row:
    note = NOTE_OF_WAITS if kind == _OF_WAITS[0] else ""
    note = NOTE_OF_DELETION if kind == "delete-acls" else note
    return _row(kind, f"ApiVersions, longest wait, while {KINDS[kind].title}", note=note)


def _quantile(kind: str, meanwhile: str) -> Work[Server]:
    note = NOTE if kind == "logins" else ""
    title = f"{TITLE} {meanwhile}"
    row = Row(f"attacked-{kind or 'not'}", SECTION, title, "ms", target=50, note=note)
    return one(row, partial(_p99, kind=kind), sides=(OURS, KAFKA))


def _wait(kind: str, filled: bool = False) -> Work[Server]:
    rows = (_wait_row(kind), _beside(kind, _MEMORY, "MiB"))
    return Work(rows, partial(_waited, kind=kind, filled=filled), (OURS, KAFKA), ROUNDS)


def _call(kind: str, filled: bool = False) -> Work[Server]:
    """Return the work that measures waits during calls of the HTTP API, which Kafka lacks."""
    work = _wait(kind, filled)
    rows = tuple(replace(row, section=SECTION_OF_CALLS) for row in work.rows)
    return replace(work, rows=rows, sides=(OURS,))


def _wait_and_log(kind: str) -> Work[Server]:
    """Return the work of waiting, and of looking at what the attack leaves in the logs."""

    def run(server: Server) -> tuple[float, ...]:
        _started_anew(server)
        before = _logged(server)
        waited = _waited_beside(server, kind)
        seconds = WARM_UP + SECONDS
        size, lines = (
            (after - first) / seconds for after, first in zip(_logged(server), before, strict=True)
        )
        return *waited, size / 1024, lines

    rows = (
        _wait_row(kind),
        _beside(kind, _MEMORY, "MiB"),
        _beside(kind, _LOG_RATE, "KiB"),
        _beside(kind, _LINE_RATE, ""),
    )
    return Work(rows, run, (OURS, KAFKA), ROUNDS)


def _wait_and_records(kind: str) -> Work[Server]:
    """Return the work of waiting, and of looking at the records that one request leaves."""

    def run(server: Server) -> tuple[float, ...]:
        waited = _waited(server, kind)
        _started_anew(server)
        before = _logged(server)[0]
        asyncio.run(attack(kind, server.address, bounds=Bounds(times=1, connections=1)))
        # What is equal is recorded when its period is over, or when the broker is stopped.
        _stopped(server)
        return *waited, (_logged(server)[0] - before) / 2**20

    note = NOTE_OF_LOG if kind == _OF_DENIALS[0] else ""
    rows = (
        _wait_row(kind),
        _beside(kind, _MEMORY, "MiB"),
        _beside(kind, _LOG_OF_ONE, "MiB", note),
    )
    return Work(rows, run, (OURS, KAFKA), 1)


def _login(kind: str, suffix: str = "", where: str = "") -> Work[Server]:
    title = f"a login, longest of ten, while {KINDS[kind].title}{where}"

    def run(server: Server) -> float:
        _started_anew(server)
        with _attacked(server, kind):
            time.sleep(WARM_UP)
            return longest_login(server)

    return one(_row(f"{kind}{suffix}", title), run, sides=(OURS, KAFKA), rounds=ROUNDS)


def _half_http() -> Work[Server]:
    kind, meanwhile = "half-http", KINDS["half-http"].title

    def run(server: Server) -> tuple[float, ...]:
        _started_anew(server)
        process = Path(f"/proc/{server.pid}")
        threads = status(process)["Threads"]
        with _attacked(server, kind):
            time.sleep(WARM_UP)
            scrape, login = longest_scrape(server), longest_login(server)
            descriptors = len(list((process / "fd").iterdir()))
            return scrape, login, status(process)["Threads"] - threads, descriptors

    rows = (
        _row(
            kind, f"a scrape of the figures, longest of ten, while {meanwhile}", "ms", NOTE_OF_HTTP
        ),
        _row(f"{kind}-login", f"a login, longest of ten, while {meanwhile}"),
        _row(f"{kind}-threads", f"more threads than before, while {meanwhile}", ""),
        _row(f"{kind}-descriptors", f"descriptors, while {meanwhile}", ""),
    )
    return Work(rows, run, (OURS,), ROUNDS)


def _stuck_log() -> Work[Server]:
    meanwhile = f"{KINDS['denials'].title}, and nobody reads the log"

    def run(server: Server) -> tuple[float, float]:
        [waited, _] = _waited(server, "denials")
        begin = time.perf_counter()
        _stopped(server)
        return waited, 1000 * (time.perf_counter() - begin)

    rows = (
        _row("stuck-log", f"ApiVersions, longest wait, while {meanwhile}"),
        _row(
            "stuck-log-stop",
            "from SIGTERM to the end, when nobody reads the log",
            "ms",
            NOTE_OF_STOP,
        ),
    )
    return Work(rows, run, (OURS, KAFKA), ROUNDS)


def _p99(server: Server, kind: str) -> float:
    """Return the milliseconds within which 99 of 100 requests of a client are answered."""
    if not server.is_running:
        server.start()
    with server.connect() as client, _attacked(server, kind):
        for seconds in (WARM_UP, SECONDS):
            taken, end = [], time.perf_counter() + seconds
            while time.perf_counter() < end:
                taken.append(client.seconds(_SMALL))
        return 1000 * statistics.quantiles(taken, n=100)[-1]


def _waited(server: Server, kind: str, filled: bool = False) -> tuple[float, float]:
    """Return the longest wait and the peak of memory of a broker that is started anew."""
    _started_anew(server)
    if filled and not _is_filled(server):
        fill(server)
        _started_anew(server)
    return _waited_beside(server, kind)


def _waited_beside(server: Server, kind: str) -> tuple[float, float]:
    """Return the milliseconds that the slowest request waited, and the MiB that were needed."""
    memory, listener = Memory(server), KINDS[kind].listener
    with healthy(server, SASL if listener in (HTTP, API) else listener) as client:
        longest_wait(client, _after(WARM_UP))
        memory.reset()
        with _attacked(server, kind) as intruder:
            if KINDS[kind].once:
                in_time = _after(ONCE_WITHIN)
                waited = longest_wait(client, lambda: intruder.poll() is not None or in_time())
            else:
                waited = longest_wait(client, _after(WARM_UP))
                if waited < NEVER:
                    waited = longest_wait(client, _after(SECONDS))
    # It may have ended of it.
    return waited, memory.peak if server.is_running else 0.0


def _after(seconds: float) -> Callable[[], bool]:
    end = time.perf_counter() + seconds
    return lambda: time.perf_counter() > end


def _started_anew(server: Server) -> None:
    """Start a broker that has nothing of former attacks in its memory."""
    _stopped(server)
    server.start()
    time.sleep(WARM_UP)


def _stopped(server: Server) -> None:
    """End a broker in good order, or kill it."""
    if server.is_running:
        with contextlib.suppress(TimeoutError):
            server.process.terminate(STOPS_WITHIN)


def _is_filled(server: Server) -> bool:
    with server.connect() as admin:
        key, version = ApiKey.DESCRIBE_ACLS, requests.ACLS_VERSION
        answer = admin.ask(key, version, requests.describe_match(f"taken-{ACLS - 2}"))
    return requests.described(answer) > 0


def _logged(server: Server) -> tuple[int, int]:
    """Return the bytes and the lines of the broker's logs."""
    files = {server.process.log, server.records} - {None}
    found = [file.read_bytes() for file in files if file is not None and file.exists()]
    return sum(map(len, found)), sum(each.count(b"\n") for each in found)


@contextlib.contextmanager
def _attacked(server: Server, kind: str) -> Iterator[subprocess.Popen[bytes]]:
    if not kind:
        kind_of_nothing = [sys.executable, "-c", ""]
        with subprocess.Popen(kind_of_nothing) as nobody:
            yield nobody
        return
    address = server.listeners[KINDS[kind].listener]
    command = [sys.executable, "-m", "benchmarks.intruder", kind, address]
    command.append(str(server.process.directory))
    with subprocess.Popen(command) as intruder:
        try:
            yield intruder
        finally:
            intruder.kill()
