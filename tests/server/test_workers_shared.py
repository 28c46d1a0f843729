"""Workers whose store is elsewhere, shared with another broker: real Kafkas and ZooKeepers."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.server.teams import (
    DENIED,
    TEAM,
    cluster_describe,
    delete_of,
    described,
    kill_worker,
    logged_in,
    workers,
)
from tests.support.broker import Broker
from tests.support.kafka import Kafka
from tests.support.process import wait_for
from tests.support.zookeeper import running_zookeeper

pytestmark = pytest.mark.broker_process

WITHIN = 20.0
_numbers = itertools.count()


@pytest.fixture(
    params=[
        "file",
        *(pytest.param(each, marks=pytest.mark.thorough) for each in ("topic", "zookeeper")),
    ]
)
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """The URL of a store of each kind that brokers share."""
    if request.param == "zookeeper":
        directory = tmp_path / "zookeeper"
        directory.mkdir()
        with running_zookeeper(directory) as zookeeper:
            yield f"zookeeper://{zookeeper.address}/acls"
    elif request.param == "topic":
        kafka: Kafka = request.getfixturevalue("kafka")
        yield f"kafka://{kafka.listeners['PLAINTEXT']}/workers-{next(_numbers)}"
    else:
        yield f"sqlite:///{tmp_path}/shared.db"


@pytest.fixture
def start(start_broker: StartBroker, tmp_path: Path, url: str) -> Callable[..., Broker]:
    """Start a broker of the store with a node id, in a directory of its own."""

    def started(node_id: int, **settings: str) -> Broker:
        directory = tmp_path / str(node_id)
        directory.mkdir()
        shared = {"aclbroker.store": url, "node.id": str(node_id)}
        return start_broker({**TEAM, **shared, **settings}, directory)

    return started


def test_changes_of_workers_and_of_other_brokers_hold_in_all_of_them(
    start: Callable[..., Broker],
) -> None:
    team, other = start(1), start(2, **{"aclbroker.workers": "1"})
    with ExitStack() as opened:
        admin, elsewhere = (
            opened.enter_context(logged_in(each, "admin")) for each in (team, other)
        )
        clients = [opened.enter_context(logged_in(team, "alice")) for _ in range(4)]
        outside = opened.enter_context(logged_in(other, "alice"))

        def come(code: int) -> None:
            seen = (*clients, outside)
            wait_for(f"{code}", lambda: {*map(described, seen)} == {code} or None, WITHIN)

        for _ in range(5):
            assert admin.create(cluster_describe()) == [0]
            assert [described(each) for each in clients] == [0] * 4
            come(0)
            # Both brokers know of it by now, and either may take it back.
            assert delete_of(elsewhere, "User:alice").filter_results[0].error_code == 0
            come(DENIED)
        assert elsewhere.create(cluster_describe()) == [0]
        come(0)
        kill_worker(team)
    wait_for("another worker", lambda: len(workers(team)) == 2 or None, WITHIN)
    with ExitStack() as opened:
        clients = [opened.enter_context(logged_in(team, "alice")) for _ in range(4)]
        assert [described(each) for each in clients] == [0] * 4
        admin = opened.enter_context(logged_in(team, "admin"))
        assert delete_of(admin, "User:alice").filter_results[0].error_code == 0
        assert [described(each) for each in clients] == [DENIED] * 4
