"""Where ACLs are kept: how fast each kind of store is loaded and changed, and who is behind."""

from __future__ import annotations

import contextlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Final

from aclbroker.protocol.messages import ApiKey
from benchmarks import requests
from benchmarks.exchange import Exchange, decoded
from benchmarks.fleets import KINDS, READERS, SQLITE, TOPIC, ZOOKEEPER, Fleet, fleet
from benchmarks.results import Results
from benchmarks.rows import KAFKA, OURS, RATE, Row, Work, one
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, ours
from tests.support.client import request_frame

SECTION: Final = "Stores that brokers share"
CHANGES, WRITERS = 800, 16
BATCHES, BATCH = 20, 1_000
LAGS: Final = 200
LOADED: Final = 100_000
MANY: Final = 1_000_000

TITLES: Final = {
    SQLITE: "a SQLite file",
    TOPIC: "a topic of a Kafka 4.3.0",
    ZOOKEEPER: "ZooKeeper 3.8.4",
}
_PEER: Final = (
    "Kafka keeps ACLs in its own log, with two nodes as brokers and controllers, of which the "
    "active one waits 25 ms for more to write."
)
_LAG: Final = (
    f"From the answer to a CreateAcls at one broker until DescribeAcls at another one lists the "
    f"ACL; of {LAGS}, one after the other."
)
_LOAD: Final = "From the opening of the store until decisions can be made, in a new process."

_row = partial(Row, section=SECTION)


def rows() -> list[Row]:
    """Return all rows, in their order."""
    found = [row for kind in KINDS for work in _works(kind) for row in work.rows]
    return [*found, *(_load_row(kind, LOADED) for kind in KINDS), _load_row(SQLITE, MANY)]


def measure(results: Results, options: Options) -> None:
    """Measure what is wanted, of one kind of store after the other."""
    if options.quick:
        return
    peers = tuple(peer for peer in options.peers if peer == KAFKA)
    for kind in KINDS:
        works = [work for work in _works(kind) if options.wants(*work.rows)]
        load = _load_row(kind, LOADED)
        if not works and not options.wants(load):
            continue
        with fleet(kind, peers if works else ()) as fleets:
            for work in works:
                for _ in range(options.rounds):
                    play([work], fleets, results)
                tell([work], results)
            if options.wants(load):
                _fill(fleets[OURS], LOADED)
                _measure_load(load, fleets[OURS].url, LOADED, results, options)
    many = _load_row(SQLITE, MANY)
    if options.wants(many):
        _measure_many(many, results, options)


def _works(kind: str) -> list[Work[Fleet]]:
    """Return what two brokers are asked that share a store."""
    title = TITLES[kind]
    single = f"CreateAcls, one ACL each, {WRITERS} connections, {title}"
    bulk = f"CreateAcls, batches of {BATCH:,}, {title}"
    lag = f"until another broker lists a new ACL, {title}"
    lags = (
        _row(f"store-lag-{kind}", title=f"{lag}, median", unit="ms", note=_LAG),
        _row(f"store-lag-p99-{kind}", title=f"{lag}, p99", unit="ms", note=_LAG),
    )
    all_lag = f"until {READERS} other brokers list a new ACL, {title}, median"
    both = (OURS, KAFKA)
    return [
        one(_row(f"store-single-{kind}", title=single, unit=RATE, note=_PEER), _single, sides=both),
        one(_row(f"store-bulk-{kind}", title=bulk, unit=RATE, note=_PEER), _bulk, sides=both),
        Work(lags, _lags, sides=both),
        one(_row(f"store-lag-all-{kind}", title=all_lag, unit="ms"), _lag_of_all, sides=(OURS,)),
    ]


def _load_row(kind: str, acls: int) -> Row:
    target = 3.0 if acls == MANY else None
    return _row(
        f"store-load-{kind}",
        title=f"load of all ACLs, {TITLES[kind]}",
        unit="s",
        acls=acls,
        target=target,
        note=_LOAD,
    )


def _frames(fleet: Fleet, count: int, batch: int) -> list[bytes]:
    """Return the requests that create the next numbered ACLs."""
    first = fleet.created
    fleet.created += count
    return [
        requests.create(*map(requests.creation, range(begin, begin + batch)))
        for begin in range(first, fleet.created, batch)
    ]


def _check(answer: bytes) -> None:
    told = decoded(ApiKey.CREATE_ACLS, requests.ACLS_VERSION, answer)
    if any(result.error_code for result in told.results):
        raise RuntimeError(f"an ACL was not created: {told}")


def _single(fleet: Fleet) -> float:
    """Return how many ACLs a second many clients create, each one after the other."""
    frames = _frames(fleet, CHANGES, 1)
    exchanges = [fleet.writer.connect() for _ in range(WRITERS)]

    def work(number: int) -> list[bytes]:
        return [exchanges[number].answer(frame) for frame in frames[number::WRITERS]]

    with ThreadPoolExecutor(WRITERS) as pool:
        begin = time.perf_counter()
        answers = list(pool.map(work, range(WRITERS)))
        taken = time.perf_counter() - begin
    for exchange in exchanges:
        exchange.close()
    for answer in (each for some in answers for each in some):
        _check(answer)
    return CHANGES / taken


def _bulk(fleet: Fleet) -> float:
    """Return how many ACLs a second one client creates in large requests."""
    frames = _frames(fleet, BATCHES * BATCH, BATCH)
    with fleet.writer.connect() as admin:
        begin = time.perf_counter()
        answers = [admin.answer(frame) for frame in frames]
        taken = time.perf_counter() - begin
    for answer in answers:
        _check(answer)
    return BATCHES * BATCH / taken


def _lags(fleet: Fleet) -> tuple[float, float]:
    """Return the milliseconds until the reader has what the writer has, as median and p99."""
    found = sorted(_lags_of(fleet, fleet.readers[:1]))
    return statistics.median(found) * 1000, found[int(0.99 * len(found))] * 1000


def _lag_of_all(fleet: Fleet) -> float:
    """Return the median of the milliseconds until all readers have what the writer has."""
    return statistics.median(_lags_of(fleet, fleet.readers)) * 1000


def _lags_of(fleet: Fleet, readers: Sequence[Server]) -> list[float]:
    """Return the seconds until these readers have a new ACL, of one after the other."""
    found = []
    with contextlib.ExitStack() as stack:
        admin = stack.enter_context(fleet.writer.connect())
        exchanges = [stack.enter_context(reader.connect()) for reader in readers]
        for _ in range(LAGS):
            fleet.created += 1
            found.append(_lag(admin, exchanges, f"User:lag-{fleet.created}"))
    return found


def _lag(admin: Exchange, readers: Sequence[Exchange], principal: str) -> float:
    frame = request_frame(
        ApiKey.DESCRIBE_ACLS, requests.ACLS_VERSION, requests.describe_principal(principal)
    )
    _check(admin.answer(requests.create(requests.creation_of(principal, 0))))
    begin = time.perf_counter()
    for reader in readers:
        while not requests.described(_described(reader, frame)):
            if time.perf_counter() > begin + requests.VISIBLE_WITHIN:
                raise TimeoutError(f"the ACL of {principal} did not come to another broker")
    return time.perf_counter() - begin


def _described(reader: Exchange, frame: bytes) -> Any:
    return decoded(ApiKey.DESCRIBE_ACLS, requests.ACLS_VERSION, reader.answer(frame))


def _fill(fleet: Fleet, acls: int) -> None:
    """Have as many ACLs, or more, in the store."""
    with fleet.writer.connect() as admin:
        for frame in _frames(fleet, max(acls - fleet.created, 0), BATCH):
            _check(admin.answer(frame))


def _measure_load(row: Row, url: str, acls: int, results: Results, options: Options) -> None:
    """Load a store as often as there are rounds."""
    command = [sys.executable, "-m", "benchmarks.loading", url]
    for _ in range(options.rounds):
        said = subprocess.run(command, check=True, capture_output=True, text=True)
        # The broker's own log comes before.
        loaded, seconds = said.stdout.splitlines()[-1].split()
        if int(loaded) < acls:
            raise RuntimeError(f"{loaded} ACLs were loaded of {acls}")
        results.add((row,), OURS, (float(seconds),))
    tell([Work((row,), lambda _: ())], results)


def _measure_many(row: Row, results: Results, options: Options) -> None:
    """Have a broker create very many ACLs in a file, end it, and load the file."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as name:
        url = f"sqlite:///{name}/many.db"
        server = ours(Path(name), {"aclbroker.store": url, "aclbroker.audit.level": "off"})
        server.start()
        try:
            _fill(Fleet(server, (), url), MANY)
        finally:
            server.stop()
        _measure_load(row, url, MANY, results, options)
