"""What brokers are asked to do over the wire, and the rows that its figures make."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from aclbroker.protocol.messages import ApiKey
from benchmarks import requests
from benchmarks.exchange import Exchange, decoded
from benchmarks.load import CONNECTIONS, Load
from benchmarks.load import small_requests as run_load
from benchmarks.rows import RATE, SHARE, Row, Work, one
from benchmarks.servers import Server

SETTLE_SECONDS: Final = 1.0
SINGLE_CREATIONS: Final = 50
DELETED_PRINCIPALS: Final = 10
WARM_UP_BATCHES: Final = 30
WARM_UP_TURNS: Final = 8

DURABILITY: Final = (
    "Kafka's controller waits 25 ms for more to write; the last section has it without that. "
    "kfake writes nothing down."
)
EQUAL_NAMES: Final = "kfake lists patterns of that very name only, not all that match it."
FIRST_START: Final = "Measured until ApiVersions is answered where users log in, on used storage."

_wire = partial(Row, section="Requests")
_change = partial(Row, section="Changes of ACLs")
_process = partial(Row, section="Processes")


@dataclass(frozen=True)
class Times:
    """How long a run asks the same, in seconds: in each round, and before the first of them."""

    asking: float
    warm_up: float
    load: float
    load_warm_up: float


FULL: Final = Times(asking=0.5, warm_up=1.5, load=4.0, load_warm_up=3.0)
QUICK: Final = Times(asking=0.2, warm_up=0.5, load=2.0, load_warm_up=1.0)


def start(acls: int, times: Times) -> Work[Server]:
    """Return the work of starting a broker that has ACLs, and of looking at its memory then."""
    targets = {0: (0.35, 45.0), 510_000: (2.5, None)}[acls]

    def run(server: Server) -> tuple[float, float]:
        if server.is_running:
            server.stop()
        seconds = server.start()
        time.sleep(SETTLE_SECONDS)
        return seconds, server.process.resident_mib

    return Work(
        (
            _process(
                "start",
                title="start to first answer",
                unit="s",
                acls=acls,
                target=targets[0],
                note=FIRST_START,
            ),
            _process(
                "memory", title="resident memory, started", unit="MiB", acls=acls, target=targets[1]
            ),
        ),
        run,
    )


def memory(acls: int, target: float) -> Work[Server]:
    """Return the work of looking at the memory of a broker that was told to create ACLs."""
    row = _process(
        "memory-grown",
        title="resident memory, ACLs just created",
        unit="MiB",
        acls=acls,
        target=target,
        note="Kafka's heap may grow to 1 GiB, and much of it can be garbage.",
    )
    return one(row, lambda server: server.process.resident_mib, rounds=1)


def create_chunk(server: Server, chunk: int, batch: int) -> float:
    """Create the next numbered ACLs in batches; return how many a second."""
    if not server.created:
        _prepare(server)
    end = server.created + chunk
    frames = [
        requests.create(*map(requests.creation, range(first, min(first + batch, end))))
        for first in range(server.created, end, batch)
    ]
    with server.connect() as admin:
        begin = time.perf_counter()
        answers = [admin.answer(frame) for frame in frames]
        taken = time.perf_counter() - begin
    server.created = end
    _check_created(answers)
    return chunk / taken


def create_one(acls: int, name: str = "create-one", **options: Any) -> Work[Server]:
    """Return the work of creating single ACLs, which are deleted again."""
    options = {"target": 1.0, "note": DURABILITY, **options}
    row = _change(name, title="CreateAcls, one ACL", unit="ms", acls=acls, **options)

    def run(server: Server) -> float:
        principal = "User:single"
        frames = [
            requests.create(requests.creation_of(principal, number))
            for number in range(SINGLE_CREATIONS)
        ]
        with server.connect() as admin:
            seconds = admin.median(frames)
        _delete(server, principal, SINGLE_CREATIONS)
        return seconds * 1000

    return one(row, run)


def delete_principal(acls: int) -> Work[Server]:
    """Return the work of deleting all ACLs of a principal, another one each time."""
    row = _change(
        "delete-principal",
        title=f"DeleteAcls by principal, {requests.PER_PRINCIPAL} ACLs",
        unit="ms",
        acls=acls,
        target=2.0,
        note=DURABILITY,
    )

    def run(server: Server) -> float:
        principals = range(server.deleted, server.deleted + DELETED_PRINCIPALS)
        server.deleted = principals.stop
        taken = []
        with server.connect() as admin:
            for number in principals:
                frame = requests.delete_principal(f"User:user-{number}")
                taken.append(admin.seconds(frame))
                answer = decoded(ApiKey.DELETE_ACLS, requests.ACLS_VERSION, admin.latest)
                if requests.deleted(answer) != requests.PER_PRINCIPAL:
                    raise RuntimeError(f"other ACLs were deleted: {answer}")
        return statistics.median(taken) * 1000

    return one(row, run)


def metadata(acls: int, times: Times, name: str = "metadata", **options: Any) -> Work[Server]:
    """Return the work of refusing Metadata of topics, each of which has to be decided."""
    title = f"Metadata of {requests.REFUSED_TOPICS} topics without rights"
    row = _wire(name, title=title, unit="ms", acls=acls, **{"target": 1.2, **options})
    asked = requests.Asked(
        "alice",
        ApiKey.METADATA,
        requests.METADATA_VERSION,
        requests.REFUSED_METADATA,
        requests.all_refused,
    )
    return _asking(row, lambda _: asked, times)


def describe_all(acls: int, times: Times) -> Work[Server]:
    """Return the work of listing all ACLs."""
    row = _wire("describe-all", title="DescribeAcls of all", unit="ms", acls=acls, target=1.5)
    # One more than the numbered ones: alice's right to read the topic that exists.
    return _asking(row, lambda _: requests.describing(requests.DESCRIBE_ALL, acls + 1), times)


def describe_principal(acls: int, times: Times) -> Work[Server]:
    """Return the work of listing the ACLs of a principal."""
    row = _wire(
        "describe-principal", title="DescribeAcls by principal", unit="ms", acls=acls, target=0.12
    )

    def asked(server: Server) -> requests.Asked:
        principal = f"User:user-{server.created // requests.PER_PRINCIPAL - 1}"
        described = requests.describe_principal(principal)
        return requests.describing(described, requests.PER_PRINCIPAL)

    return _asking(row, asked, times)


def describe_match(acls: int, times: Times) -> Work[Server]:
    """Return the work of listing the ACLs that apply to a topic."""
    row = _wire(
        "describe-match",
        title="DescribeAcls MATCH one topic",
        unit="ms",
        acls=acls,
        target=0.12,
        note=EQUAL_NAMES,
    )

    def asked(server: Server) -> requests.Asked:
        described = requests.describe_match(f"owned-{server.created - 1}")
        return requests.describing(described, 1)

    return _asking(row, asked, times)


def small_requests(times: Times) -> Work[Server]:
    """Return the work of answering small requests on many connections."""
    title = f"Metadata of one topic, {CONNECTIONS} connections"
    small = partial(_wire, acls=10_000)
    rows = (
        small("small", title=title, unit=RATE),
        small(
            "small-per-core",
            title=f"{title}, for each CPU second of the broker",
            unit=RATE,
            target=25_000,
        ),
        small("small-p99", title=f"{title}, p99", unit="ms"),
        small("small-generator", title=f"{title}, the load generator's share of CPU", unit=SHARE),
    )

    def run(server: Server) -> Load:
        warm = "small" in server.warmed
        server.warmed.add("small")
        warm_up = min(1.0, times.load_warm_up) if warm else times.load_warm_up
        return run_load(server, "alice", warm_up, times.load)

    return Work(rows, run)


def _asking(row: Row, asked: Callable[[Server], requests.Asked], times: Times) -> Work[Server]:
    """Return the work of asking the same again and again on one connection."""

    def run(server: Server) -> float:
        what = asked(server)
        with server.connect(what.user) as exchange:
            frame = requests.checked(exchange, what)
            if row.key not in server.warmed:
                server.warmed.add(row.key)
                _warm_up(exchange, frame, times.warm_up)
            return exchange.median_for(frame, times.asking) * 1000

    return one(row, run)


def _warm_up(exchange: Exchange, frame: bytes, seconds: float) -> None:
    """Send a frame until its answers come no faster: a JVM takes its time to compile."""
    best = exchange.median_for(frame, seconds)
    for _ in range(WARM_UP_TURNS):
        latest = exchange.median_for(frame, seconds)
        if latest > 0.95 * best:
            return
        best = latest


def _prepare(server: Server) -> None:
    """Let a broker create and delete ACLs until it is warm, and give alice her only right."""
    principal, batch = "User:warm-up", 100
    with server.connect() as admin:
        frames = [
            requests.create(
                *(requests.creation_of(principal, first + number) for number in range(batch))
            )
            for first in range(0, WARM_UP_BATCHES * batch, batch)
        ]
        _check_created([admin.answer(frame) for frame in frames])
        _delete(server, principal, WARM_UP_BATCHES * batch)
        _check_created([admin.answer(requests.create(requests.may_read("User:alice")))])


def _check_created(answers: list[bytes]) -> None:
    for answer in answers:
        told = decoded(ApiKey.CREATE_ACLS, requests.ACLS_VERSION, answer)
        if any(result.error_code for result in told.results):
            raise RuntimeError(f"an ACL was not created: {told}")


def _delete(server: Server, principal: str, count: int) -> None:
    with server.connect() as admin:
        answer = admin.answer(requests.delete_principal(principal))
    deleted = requests.deleted(decoded(ApiKey.DELETE_ACLS, requests.ACLS_VERSION, answer))
    if deleted != count:
        raise RuntimeError(f"{deleted} of {count} ACLs were deleted")
