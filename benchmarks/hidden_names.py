"""Measures whether the time of an answer reveals names that a client may not see.

A user without any right sends requests in pairs. One of a pair has an expression or a filter that
hidden names match, the other one of the same length that they do not match. If hidden names make no
difference, chance alone decides which request of a pair is slower.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from math import erfc, sqrt
from pathlib import Path
from random import Random
from statistics import median
from typing import Final, NamedTuple

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.messages.list_transactions import ListTransactionsRequest
from benchmarks.results import Results
from benchmarks.rows import OURS, SHARE, Row, Work
from benchmarks.running import Options, play, tell
from benchmarks.servers import Server, ours
from tests.support.client import Client

SECTION: Final = "Times of answers and hidden names"

PAIRS: Final = 10_000
HIDDEN: Final = 100
"""The number of hidden names that an expression matches, or does not match."""

MATCHING, OTHER = "payroll-eu-.*", "payroll-ue-.*"
"""Both have the same characters: their number and neighbours decide how long RE2 compiles."""
NOTE: Final = (
    f"{PAIRS:,} pairs of requests of a user without rights, the two of a pair in random order; "
    f"{HIDDEN} hidden names match one of them. The difference is the median of the pairs'. The "
    "chance is that of a difference so large where there is none, by Wilcoxon's signed-rank test."
)
_USER: Final = "alice"
_PASSWORD: Final = f"{_USER}-secret"
_READ, _GROUP, _LITERAL, _ALLOW = 3, 3, 3, 3
_OF_OWN: Final = "own"

Ask = Callable[[Client, bool], float]
"""Sends a request that hidden names match, or do not match; returns the seconds to its answer."""


class Way(NamedTuple):
    """A request whose answer time could reveal hidden names."""

    kind: str
    title: str
    ask: Ask


def _timed(client: Client, key: ApiKey, version: int, request: object) -> float:
    began = time.perf_counter()
    answer = client.ask(key, version, request)
    took = time.perf_counter() - began
    if answer.error_code:
        raise RuntimeError(f"{key.name} was refused: {answer.error_code}")
    return took


def _transactions(client: Client, matches: bool) -> float:
    request = ListTransactionsRequest([], [], -1, MATCHING if matches else OTHER)
    return _timed(client, ApiKey.LIST_TRANSACTIONS, 2, request)


def _producer_state(client: Client, matches: bool) -> float:
    request = ListTransactionsRequest(["Empty" if matches else "Ongoing"], [], -1, None)
    return _timed(client, ApiKey.LIST_TRANSACTIONS, 2, request)


def _topics(client: Client, matches: bool) -> float:
    request = ConsumerGroupHeartbeatRequest(_OF_OWN, "m", 0, rebalance_timeout_ms=60_000)
    request.subscribed_topic_names, request.topic_partitions = None, []
    request.subscribed_topic_regex = MATCHING if matches else OTHER
    took = _timed(client, ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    leaving = ConsumerGroupHeartbeatRequest(_OF_OWN, "m", -1)
    client.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, leaving)
    return took


def _groups(client: Client, matches: bool) -> float:
    # The user's own group is in neither state.
    request = ListGroupsRequest(["Stable" if matches else "Unsure"], [])
    return _timed(client, ApiKey.LIST_GROUPS, 5, request)


WAYS: Final = (
    Way("transactions", "ListTransactions, by an expression", _transactions),
    Way("producer-states", "ListTransactions, by a state", _producer_state),
    Way("topics", "ConsumerGroupHeartbeat, by an expression", _topics),
    Way("groups", "ListGroups, by a state", _groups),
)


def _rows_of(way: Way) -> tuple[Row, Row]:
    title = f"time of {way.title}: hidden names that match, less others"
    name = f"attacked-by-hidden-{way.kind}"
    return (
        Row(name, SECTION, title, "us", note=NOTE),
        Row(f"{name}-chance", SECTION, "chance", SHARE, beside=name),
    )


def rows() -> Sequence[Row]:
    """Return all rows, in their order."""
    return [row for way in WAYS for row in _rows_of(way)]


def measure(results: Results, options: Options) -> None:
    """Measure the rows that the options name, once, with a separate broker."""
    wanted = [way for way in WAYS if options.wants(*_rows_of(way))]
    if options.quick or not wanted:
        return
    with running() as server:
        for way in wanted:
            work = Work(_rows_of(way), _of_pairs(way), sides=(OURS,))
            play([work], {OURS: server}, results)
            tell([work], results)


def _of_pairs(way: Way) -> Callable[[Server], Sequence[float]]:
    def told(server: Server) -> Sequence[float]:
        differences = asked_in_pairs(server.address, way, PAIRS)
        return 1e6 * median(differences), 100 * chance(differences)

    return told


@contextmanager
def running() -> Iterator[Server]:
    """Yield a broker with a cluster in memory that has hidden names of each kind."""
    with tempfile.TemporaryDirectory(prefix="benchmark-") as directory:
        settings = {"aclbroker.cluster": "memory", "aclbroker.audit.level": "off"}
        server = ours(Path(directory), settings, topics={})
        server.start()
        try:
            with Client(server.listeners["PLAINTEXT"]) as admin:
                _fill(admin)
            yield server
        finally:
            server.process.kill()


def _fill(admin: Client) -> None:
    names = [f"payroll-eu-{number}" for number in range(HIDDEN)]
    topics = [CreatableTopic(name, 1, 1) for name in names]
    admin.ask(ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest(topics, 5_000))
    for name in names:
        admin.ask(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(name, 60_000, -1, -1))
        request = ConsumerGroupHeartbeatRequest(name, "m", 0, rebalance_timeout_ms=60_000)
        request.subscribed_topic_names, request.topic_partitions = [name], []
        admin.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    right = AclCreation(_GROUP, _OF_OWN, _LITERAL, f"User:{_USER}", "*", _READ, _ALLOW)
    if admin.create(right) != [0]:
        raise RuntimeError("the right on the group was not created")


def asked_in_pairs(address: str, way: Way, pairs: int) -> list[float]:
    """Return the seconds by which each matching request took longer than the other of its pair."""
    chosen = Random(1)  # the order of requests is no secret
    differences = []
    with Client(address) as client:
        client.login(_USER, _PASSWORD)
        for _ in range(pairs):
            first = chosen.random() < 0.5
            took = {matches: way.ask(client, matches) for matches in (first, not first)}
            differences.append(took[True] - took[False])
    return differences


def chance(differences: Sequence[float]) -> float:
    """Return the probability of such differences by chance (Wilcoxon's signed-rank test)."""
    ranked = sorted((each for each in differences if each), key=abs)
    count = len(ranked)
    if not count:
        return 1.0
    positive = sum(rank for rank, each in enumerate(ranked, 1) if each > 0)
    expected = count * (count + 1) / 4
    deviation = sqrt(count * (count + 1) * (2 * count + 1) / 24)
    return erfc(abs(positive - expected) / deviation / sqrt(2))
