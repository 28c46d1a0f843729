"""What holds the event loop up is measured, and the request that did it is named."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
import structlog
from prometheus_client import CollectorRegistry

from aclbroker.acl.authorizer import Session
from aclbroker.broker.observability import stalls
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.observability.stalls import StallMonitor
from aclbroker.protocol.messages import ApiKey
from tests.support.client import ALL_ACLS, request_frame

NAME = "aclbroker_event_loop_lag_seconds"
ALICE = Session(("User:alice", "Group:staff"), "192.0.2.1", "PLAINTEXT")
FRAME = request_frame(ApiKey.DESCRIBE_ACLS, 3, ALL_ACLS)[4:]


class Clock:
    """A clock that stands still until it is told otherwise."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch) -> Clock:
    found = Clock()
    monkeypatch.setattr(stalls, "perf_counter", found)
    monkeypatch.setattr(stalls, "_BEAT_SECONDS", 0.0)
    return found


def figure(
    metrics: Metrics, suffix: str, labels: dict[str, str] | None = None, name: str = NAME
) -> float | None:
    registry = CollectorRegistry()
    registry.register(metrics)
    return registry.get_sample_value(name + suffix, labels or {})


async def beaten(clock: Clock, metrics: Metrics, *work: tuple[float, Any, bytes]) -> list[Any]:
    """Have a loop with some work, as (seconds, who, frame), beat once; return what is logged."""
    lines = LimitedLog(clock)
    monitor = StallMonitor(metrics, lines)
    with structlog.testing.capture_logs() as logged:
        monitor.start()
        for seconds, who, frame in work:
            began = clock.now
            clock.now += seconds
            monitor.worked(began, who, frame)
        while not figure(metrics, "_count"):
            await asyncio.sleep(0)
        monitor.stop()
    return logged


async def test_the_longest_request_is_named_with_who_sent_it(clock):
    metrics = Metrics()
    logged = await beaten(
        clock,
        metrics,
        (0.01, ALICE, b"\0\0\0\0"),
        (0.125, ALICE, FRAME),
        (0.06, ALICE, b"\0\1\0\0"),
    )
    assert logged == [
        {
            "event": "event loop held up",
            "log_level": "warning",
            "milliseconds": 195,
            "api_name": "DescribeAcls",
            "api_version": 3,
            "request_bytes": len(FRAME),
            "request_milliseconds": 125,
            "principal": "User:alice",
            "peer": "192.0.2.1",
        }
    ]
    assert figure(metrics, "_bucket", {"le": "0.1"}) == 0
    assert figure(metrics, "_bucket", {"le": "0.25"}) == 1
    assert figure(metrics, "_sum") == pytest.approx(0.195)


async def test_a_stranger_is_named_by_the_address_and_an_unknown_key_by_its_number(clock):
    [line] = await beaten(clock, Metrics(), (0.2, "192.0.2.9", b"\x7f\xff\0\2"))
    assert (line["api_name"], line["api_version"]) == ("ApiKey32767", 2)
    assert (line["principal"], line["peer"]) == (None, "192.0.2.9")


async def test_short_work_leaves_no_line(clock):
    assert await beaten(clock, Metrics(), (0.05, ALICE, FRAME), (0.04, ALICE, FRAME)) == []


async def test_what_is_no_request_is_told_too(clock):
    metrics, lines = Metrics(), LimitedLog(clock)
    monitor = StallMonitor(metrics, lines)
    with structlog.testing.capture_logs() as logged:
        monitor.start()
        clock.now += 3
        while not figure(metrics, "_count"):
            await asyncio.sleep(0)
        monitor.stop()
    assert logged == [{"event": "event loop held up", "log_level": "warning", "milliseconds": 3000}]


async def test_a_later_turn_of_a_request_is_named_and_measured(clock):
    metrics = Metrics()
    monitor = StallMonitor(metrics, LimitedLog(clock))
    with structlog.testing.capture_logs() as logged:
        monitor.start()
        for seconds in (0.005, 0.25):
            began = clock.now
            clock.now += seconds
            monitor.had_turn(began, ALICE, FRAME)
        while not figure(metrics, "_count"):
            await asyncio.sleep(0)
        monitor.stop()
    [line] = logged
    assert (line["api_name"], line["principal"], line["request_milliseconds"]) == (
        "DescribeAcls",
        "User:alice",
        250,
    )
    turns = "aclbroker_turn_seconds"
    assert figure(metrics, "_count", name=turns) == 2
    assert figure(metrics, "_bucket", {"le": "0.01"}, turns) == 1


async def test_a_request_is_named_once(clock):
    metrics = Metrics()
    monitor = StallMonitor(metrics, LimitedLog(clock))
    with structlog.testing.capture_logs() as logged:
        monitor.start()
        clock.now += 1
        monitor.worked(clock.now - 1, ALICE, FRAME)
        while (figure(metrics, "_count") or 0) < 3:
            await asyncio.sleep(0)
        monitor.stop()
    assert len(logged) == 1
    assert figure(metrics, "_bucket", {"le": "0.01"}) == (figure(metrics, "_count") or 0) - 1
