"""Each attack of the benchmarks, bounded, on a running broker: everybody else is served meanwhile.

How long others wait is for `make attack` to measure.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks import attacks, bystander, servers
from benchmarks.attacked import door_settings, fill
from benchmarks.bystander import API, HTTP, TLS, Memory, ask, healthy, scrape
from benchmarks.http_attacks import HTTP_ATTACKS
from benchmarks.intruder import KINDS, Bounds, Seen, attack
from benchmarks.results import Results
from benchmarks.rows import OURS
from benchmarks.running import Options
from benchmarks.servers import TOPICS, Server
from benchmarks.unkind import UNKIND, WIDE_PARTITIONS, WIDE_TOPIC
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.kafka import free_ports

THOROUGH = pytest.mark.thorough

TIMES, CONNECTIONS = 2, 4
ENTRIES = 500
ACLS = 1_000
MOST_MIB = 64.0
"""Room for what a broker loads when it is first asked something, and for little more."""

ASKED = 50
WITHIN = 60.0
"""The seconds after which a test that hangs fails."""


WHY = {
    "logins": "wrong password of user 'admin'",
    "malformed": "shorter than its header",
    "oauthbearer": "the GS2 header is neither",
    "certificate": "too many ways to match it",
    "tags-1": "8192",
    "too-many": "100000",
}
"""What the log says of the connections that are closed and the requests refused, in part."""

DAILY = {
    *("logins", "half-http", "certificate", "denials", "tags-1", "metadata", "unread"),
    *("delete-acls", "api-search"),
}
"""The attacks that `make test` tries: logins, HTTP, TLS, requests, answers and ACLs."""

MEASURED = (
    "attacked-by-tags-1",
    "attacked-by-malformed",
    "attacked-by-half",
    "attacked-by-stuck",
)
"""Rows of every kind of work but those with large requests and with very many ACLs."""


def started(directory: Path) -> Server:
    """Return our broker, started, with all doors open."""
    figures, api = (f"127.0.0.1:{port}" for port in free_ports(2))
    topics = {**TOPICS, WIDE_TOPIC: WIDE_PARTITIONS}
    names = ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")
    settings = {
        "listeners": ",".join(f"{name}://127.0.0.1:0" for name in names),
        "aclbroker.catalog.topics": ",".join(f"{name}:{count}" for name, count in topics.items()),
        "aclbroker.metrics.address": figures,
        "confluent.metadata.server.listeners": f"http://{api}",
        "aclbroker.audit.file": "audit.log",
    }
    broker = Broker(directory, {**door_settings(directory), **settings})
    broker.start()
    listeners = {**broker.listeners, HTTP: figures, API: api}
    return Server(broker, listeners["SASL_PLAINTEXT"], listeners)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    running = started(tmp_path_factory.mktemp("attacked"))
    yield running
    assert running.process.terminate() == 0


def is_answered(kind: str) -> bool:
    """Whether the requests of an attack are answered; else its connections are closed."""
    if kind in UNKIND:
        return UNKIND[kind].answered
    return kind in ("denials", "producer-ids", *HTTP_ATTACKS)


def bounds(kind: str) -> Bounds:
    """Few entries, unless it is for their number that a request is refused."""
    is_few = is_answered(kind) and kind not in ("too-many", "api-acls")
    return Bounds(TIMES, CONNECTIONS, ENTRIES if is_few else None)


def expected(kind: str) -> Seen:
    """What becomes of an attack within these bounds."""
    connections = min(KINDS[kind].connections, CONNECTIONS)
    if not is_answered(kind):
        return Seen(closed=TIMES * connections)
    if kind in HTTP_ATTACKS and HTTP_ATTACKS[kind].is_closed:
        return Seen(answered=TIMES * connections)
    times = 1 if KINDS[kind].once else TIMES
    return Seen(answered=times * times * connections)


def daily(kinds: Iterable[str], chosen: Collection[str]) -> list[Any]:
    """Return the attacks as parameters of a test, of which the daily run tries the chosen ones."""
    return [pytest.param(kind, marks=[] if kind in chosen else THOROUGH) for kind in kinds]


def all_acls(server: Server) -> list[str]:
    with Client(server.listeners["PLAINTEXT"]) as admin:
        return admin.resource_names()


def serve(server: Server) -> None:
    """Ask as somebody who is logged in, as others who log in, and as a Prometheus.

    Each raises an error if it is not answered.
    """
    with healthy(server) as client:
        for number in range(ASKED):
            ask(client)
            if number % 10 == 0:
                healthy(server).close()
                scrape(server)


@pytest.mark.parametrize("kind", daily(KINDS, DAILY))
async def test_others_are_served_and_the_attack_ends_as_documented(
    server: Server, kind: str
) -> None:
    if "taken" not in all_acls(server):
        fill(server, ACLS)
    memory = Memory(server)
    memory.reset()
    chosen = KINDS[kind]
    address = server.listeners[chosen.listener]
    directory = server.process.directory if chosen.listener == TLS else None
    attacking = asyncio.create_task(attack(kind, address, directory, bounds(kind)))
    await asyncio.to_thread(serve, server)
    if chosen.holds:
        attacking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await attacking
    else:
        assert await asyncio.wait_for(attacking, WITHIN) == expected(kind)
    assert memory.peak < MOST_MIB
    if kind == "delete-acls":
        assert all_acls(server) == []


@pytest.mark.parametrize("kind", daily(WHY, ["malformed"]))
async def test_who_is_turned_away_is_so_for_what_the_attack_is_about(
    kind: str, tmp_path: Path
) -> None:
    running = started(tmp_path)
    try:
        address = running.listeners[KINDS[kind].listener]
        await asyncio.wait_for(attack(kind, address, tmp_path, Bounds(1, 1)), WITHIN)
    finally:
        assert running.process.terminate() == 0
    assert WHY[kind] in running.process.log_text()


@THOROUGH
def test_rows_are_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(servers, "aclbroker", lambda: [sys.executable, "-m", "aclbroker"])
    for name, value in (("SECONDS", 0.2), ("WARM_UP", 0.2), ("ROUNDS", 1)):
        monkeypatch.setattr(attacks, name, value)
    monkeypatch.setattr(bystander, "LOGINS", 2)
    results = Results({})

    attacks.measure(results, Options(rounds=1, only=MEASURED, peers=()))

    wanted = [row.key for row in attacks.rows() if row.key.startswith(MEASURED)]
    assert list(results.figures) == wanted
    assert all(len(each.rounds[OURS]) == 1 for each in results.figures.values())


def test_every_attack_has_a_row_and_every_column_a_line() -> None:
    rows = attacks.rows()
    keys = {row.key for row in rows}
    assert len(keys) == len(rows)
    assert all(not row.beside or row.beside in keys for row in rows)
    measured = {key.removeprefix("attacked-").removeprefix("by-") for key in keys}
    assert measured >= set(KINDS)
