"""The port of the figures: is the broker alive and ready, and what strangers there can take."""

from __future__ import annotations

import os
import resource
import socket
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from urllib.error import HTTPError

import pytest

from aclbroker.broker.observability.http_listener import CONNECTIONS
from aclbroker.broker.observability.limited_log import PEER_BURST
from aclbroker.broker.server.readiness import PROBE_SECONDS, Readiness
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client, request_frame, topic_read
from tests.support.process import wait_for

STATUS = {"aclbroker.metrics.address": "127.0.0.1:0"}
HALF_SENT = 1_010


def address(broker: Broker) -> str:
    [found] = [event["address"] for event in broker.events() if event["event"] == "metrics"]
    return str(found)


def page(broker: Broker, path: str) -> tuple[int, str]:
    """Return the status and the text of a page."""
    try:
        with urllib.request.urlopen(f"http://{address(broker)}{path}", timeout=20) as answer:
            return answer.status, str(answer.read(), "utf-8")
    except HTTPError as error:
        return error.code, str(error.read(), "utf-8")


def figure(broker: Broker, name: str, **labels: str) -> float:
    """Return a figure, which must be there."""
    shown = ",".join(f'{key}="{value}"' for key, value in labels.items())
    of_name = f"{name}{{{shown}}} " if shown else f"{name} "
    [line] = [each for each in page(broker, "/metrics")[1].splitlines() if each.startswith(of_name)]
    return float(line.removeprefix(of_name))


def held(broker: Broker) -> tuple[int, int]:
    """Return the numbers of the process' threads and descriptors."""
    directory = Path(f"/proc/{broker.running.pid}")
    return len(os.listdir(directory / "task")), len(os.listdir(directory / "fd"))


def test_a_broker_that_serves_is_alive_and_ready_and_has_no_other_pages(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(STATUS)
    assert page(broker, "/healthz") == (200, "alive\n")
    assert page(broker, "/readyz") == (200, "ready\n")
    assert page(broker, "/") == page(broker, "/metrics/") == (404, "404 Not Found\n")
    status, text = page(broker, "/metrics")
    assert status == 200
    assert "aclbroker_lost_log_lines_total 0.0" in text.splitlines()
    assert broker.terminate() == 0


@pytest.mark.broker_process
def test_half_sent_requests_take_few_descriptors_and_no_threads_and_a_scrape_is_answered(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(STATUS)
    assert page(broker, "/metrics")[0] == 200
    threads, descriptors = held(broker)
    host, _, port = address(broker).partition(":")
    with ExitStack() as opened:
        for _ in range(HALF_SENT):
            half = opened.enter_context(socket.create_connection((host, int(port)), timeout=20))
            half.sendall(b"GET /metrics HTTP/1.1\r\nHost: ")
        assert page(broker, "/metrics")[0] == 200
        assert page(broker, "/healthz")[0] == 200
        now_threads, now_descriptors = held(broker)
        assert now_threads <= threads + 1
        assert now_descriptors <= descriptors + CONNECTIONS
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            assert client.login("admin", PASSWORDS["admin"]).error_code == 0
    assert broker.terminate() == 0


@pytest.mark.broker_process
def test_a_store_that_cannot_be_written_is_told_and_so_is_its_recovery(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(STATUS)
    with Client(broker.listeners["PLAINTEXT"]) as client:
        assert client.create(topic_read("before")) == [0]
        # As a full disk, for this process alone.
        before = resource.prlimit(broker.running.pid, resource.RLIMIT_FSIZE, (0, -1))
        status, text = page(broker, "/readyz")
        assert status == 503
        assert str(broker.store) in text
        assert page(broker, "/healthz")[0] == 200
        resource.prlimit(broker.running.pid, resource.RLIMIT_FSIZE, before)

        def ready() -> bool | None:
            return page(broker, "/readyz") == (200, "ready\n") or None

        wait_for("readiness", ready, 3 * PROBE_SECONDS)
        assert client.create(topic_read("after")) == [0]
        assert client.resource_names() == ["after", "before"]
    assert broker.terminate() == 0


def test_changes_that_the_store_cannot_make_leave_a_few_lines_and_their_number(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(STATUS)
    number = 100
    broker.store.unlink()
    with Client(broker.listeners["PLAINTEXT"]) as client:
        for each in range(number):
            assert client.create(topic_read(str(each))) == [-1]
    left_out = figure(broker, "aclbroker_left_out_log_lines_total")
    assert broker.terminate() == 0
    lines, count = broker.told("ACLs not changed")
    assert PEER_BURST <= lines == number - left_out < number
    assert count == number


def test_what_is_at_work_and_held_is_shown(start_broker: StartBroker) -> None:
    broker = start_broker(STATUS)
    assert figure(broker, "aclbroker_turn_seconds_count") == 0
    announced = 100_000
    with (
        Client(broker.listeners["SASL_PLAINTEXT"]) as stranger,
        Client(broker.listeners["PLAINTEXT"]) as client,
    ):
        topics = [MetadataRequestTopic(name=f"topic-{number}") for number in range(20_000)]
        client.ask(ApiKey.METADATA, 12, MetadataRequest(topics))
        assert figure(broker, "aclbroker_turn_seconds_count") > 0
        assert figure(broker, "aclbroker_requests_in_turns") == 0
        for state in ("at_work", "waiting"):
            assert figure(broker, "aclbroker_principals_in_turns", state=state) == 0
        assert figure(broker, "aclbroker_held_bytes", of="principals") == 0
        large = request_frame(ApiKey.METADATA, 12, MetadataRequest(topics))
        stranger.send(announced.to_bytes(4))
        client.send(large[:-1])

        def held(of: str) -> float | None:
            return figure(broker, "aclbroker_held_bytes", of=of) or None

        assert wait_for("a stranger's request", lambda: held("strangers"), 20) == announced
        assert wait_for("a client's request", lambda: held("principals"), 20) == len(large) - 4
        client.send(large[-1:])
        client.response(ApiKey.METADATA, 12)
        assert held("principals") is None


def test_asking_leaves_a_quiet_store_as_it_was_and_whole(start_broker: StartBroker) -> None:
    broker = start_broker(STATUS)
    [before] = [event["records"] for event in broker.events() if event["event"] == "ready"]
    changes = Path(f"{broker.store}-wal")
    wait_for("a quiet store", lambda: not changes.stat().st_size or None, 20)
    mark = Path(f"{broker.store}.lock").read_bytes()
    assert page(broker, "/readyz") == (200, "ready\n")
    assert Path(f"{broker.store}.lock").read_bytes() != mark
    wait_for("a quiet store", lambda: not changes.stat().st_size or None, PROBE_SECONDS)
    broker.restart()
    [after] = [event["records"] for event in broker.events() if event["event"] == "ready"]
    assert before == after


def test_a_store_whose_file_was_removed_is_told(start_broker: StartBroker) -> None:
    broker = start_broker(STATUS)
    broker.store.unlink()
    status, text = page(broker, "/readyz")
    assert status == 503
    assert f"the ACL store {broker.store} was removed while the broker used it" in text


def test_records_that_are_left_out_are_told_and_the_broker_stays_ready(
    start_broker: StartBroker,
) -> None:
    limits = {"aclbroker.audit.max.bytes.per.second": "1024", "aclbroker.audit.rollup.seconds": "0"}
    broker = start_broker(STATUS | limits)
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("alice", PASSWORDS["alice"]).error_code == 0
        for number in range(100):
            assert client.create(topic_read(str(number))) != [0]

    def told() -> bool | None:
        status, text = page(broker, "/readyz")
        assert status == 200
        return "aclbroker.audit.max.bytes.per.second" in text or None

    wait_for("the remark", told, 20)
    left_out = figure(broker, "aclbroker_left_out_audit_records_total", kind="denied")
    assert 0 < left_out < 100
    assert figure(broker, "aclbroker_left_out_audit_records_total", kind="allowed") == 0


def test_an_audit_log_that_cannot_be_written_is_told(start_broker: StartBroker) -> None:
    broker = start_broker(STATUS | {"aclbroker.audit.file": "/dev/full"})
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        assert client.login("alice", PASSWORDS["alice"]).error_code == 0
        assert page(broker, "/readyz")[0] == 200
        assert client.create(topic_read("denied")) != [0]
        assert page(broker, "/readyz") == (503, "audit file /dev/full cannot be written\n")
        assert figure(broker, "aclbroker_lost_audit_records_total") == 1
    assert broker.terminate() == 0


async def test_a_broker_that_loads_or_stops_is_not_ready() -> None:
    readiness = Readiness()
    answer = await readiness.page()
    assert (answer.status, answer.text) == (503, "the ACLs are not loaded yet\n")
    readiness.started(str)
    assert (await readiness.page()).status == 200
    readiness.stopping()
    answer = await readiness.page()
    assert (answer.status, answer.text) == (503, "the broker is stopping\n")
