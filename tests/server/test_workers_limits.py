"""Limits of connections, lines and files hold for all workers of a broker together."""

from __future__ import annotations

import json
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

from aclbroker.broker.client.blocking import NoAnswer
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from tests.conftest import StartBroker
from tests.server.teams import ENDS_WITHIN, TEAM, kill_worker, logged_in
from tests.server.test_status import figure, page
from tests.support.broker import Broker
from tests.support.client import Client, topic_read
from tests.support.process import wait_for

pytestmark = pytest.mark.broker_process

LISTENER = "SASL_PLAINTEXT"


def is_over(client: Client, within_s: float = ENDS_WITHIN) -> bool:
    """Whether the broker has closed a connection, or does so within so many seconds."""
    client.socket.settimeout(within_s)
    try:
        return client.socket.recv(1) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_an_address_has_no_more_connections_than_it_may_have(start_broker: StartBroker) -> None:
    broker = start_broker(TEAM | {"max.connections.per.ip": "6"})
    address = broker.listeners[LISTENER]
    with ExitStack() as opened:
        first = [opened.enter_context(logged_in(broker, "alice")) for _ in range(6)]
        assert all(is_over(opened.enter_context(Client(address))) for _ in range(4))
        first.pop().close()
        wait_for("room", lambda: True if _open(broker) == 5 else None, ENDS_WITHIN)
        opened.enter_context(logged_in(broker, "alice"))
    # Connections of a worker that is killed are counted no longer.
    wait_for("all to leave", lambda: True if _open(broker) == 0 else None, ENDS_WITHIN)
    with ExitStack() as opened:
        for _ in range(6):
            opened.enter_context(logged_in(broker, "alice"))
        kill_worker(broker)
        for _ in range(3):
            opened.enter_context(logged_in(broker, "alice"))
        assert is_over(opened.enter_context(Client(address)))


def _open(broker: Broker) -> float:
    return figure(broker, "aclbroker_connections", listener=LISTENER)


def test_strangers_have_no_more_connections_than_they_may_have(start_broker: StartBroker) -> None:
    broker = start_broker(TEAM | {"aclbroker.max.unauthenticated.connections": "5"})
    address = broker.listeners[LISTENER]
    with ExitStack() as opened:
        known = [opened.enter_context(logged_in(broker, "alice")) for _ in range(4)]
        strangers = [opened.enter_context(Client(address)) for _ in range(9)]
        wait_for("some to leave", lambda: True if _open(broker) == 9 else None, ENDS_WITHIN)
        assert all(is_over(each) for each in strangers[:4])
        assert not any(is_over(each, 0.2) for each in [*strangers[4:], *known])


def test_all_workers_together_have_no_more_connections_than_the_broker_may_have(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(TEAM | {"max.connections": "4"})
    address = broker.listeners[LISTENER]
    with ExitStack() as opened:
        known = [opened.enter_context(logged_in(broker, "alice")) for _ in range(3)]
        stranger = opened.enter_context(Client(address))
        wait_for("it to come", lambda: True if _open(broker) == 4 else None, ENDS_WITHIN)
        known.append(opened.enter_context(logged_in(broker, "alice")))
        assert is_over(stranger)
        waiting = opened.enter_context(Client(address))
        waiting.request(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        waiting.socket.settimeout(0.5)
        with pytest.raises(NoAnswer):
            waiting.receive()
        known.pop().close()
        waiting.socket.settimeout(20)
        assert waiting.response(ApiKey.API_VERSIONS, 0)


def test_an_audit_file_is_rotated_by_all_workers_together(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    most = 1 << 20
    broker = start_broker(
        TEAM
        | {
            "aclbroker.audit.file": str(tmp_path / "audit.log"),
            "aclbroker.audit.file.max.bytes": str(most),
        }
    )
    names = [f"{number}-{'n' * 200}" for number in range(1000)]
    with ExitStack() as opened:
        clients = [opened.enter_context(Client(broker.listeners["PLAINTEXT"])) for _ in range(4)]
        threads = [
            threading.Thread(target=client.create, args=[topic_read(name) for name in names])
            for client in clients
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()
    assert broker.terminate() == 0
    files = list(tmp_path.glob("audit.log*"))
    assert len(files) > 2
    assert all(each.stat().st_size <= most for each in files)
    events = [json.loads(line) for each in files for line in each.read_text().splitlines()]
    assert sum(each["event"] == "change" for each in events) == 4 * len(names)


def test_a_page_of_figures_names_every_figure_once(start_broker: StartBroker) -> None:
    broker = start_broker(TEAM)
    lines = [each for each in page(broker, "/metrics")[1].splitlines() if "#" not in each]
    names = [each.rpartition(" ")[0] for each in lines]
    assert sorted(names) == sorted(set(names))
    name = "aclbroker_event_loop_lag_seconds_count"
    wait_for("the first figures", lambda: True if figure(broker, name) else None, ENDS_WITHIN)
