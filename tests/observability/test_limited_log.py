"""Lines that peers cause: a few of each kind and peer, and the number of those left out."""

from __future__ import annotations

import asyncio
from typing import Any

import structlog

from aclbroker.broker.observability import limited_log
from aclbroker.broker.observability.limited_log import (
    BURST,
    PEER_BURST,
    PEER_RATE,
    PEERS,
    RATE,
    LimitedLog,
)


class Written:
    """What was written, at a time of the test's own."""

    def __init__(self) -> None:
        self.now = 1_000.0
        self.lines: list[dict[str, Any]] = []
        self.limited = LimitedLog(lambda: self.now)

    def cause(self, count: int, peer: str = "192.0.2.1", event: str = "malformed") -> int:
        """Cause lines; return how many were written."""
        before = len(self.lines)
        for _ in range(count):
            self.limited.write(self._write, event, peer, peer=peer)
        return len(self.lines) - before

    def _write(self, event: str, **values: Any) -> None:
        self.lines.append({"event": event} | values)


async def test_a_peer_gets_a_few_lines_at_once_and_then_some_a_second():
    written = Written()
    assert written.cause(1_000) == PEER_BURST
    written.now += 3.5 / PEER_RATE
    assert written.cause(1_000) == 3
    told = written.lines[PEER_BURST]
    assert told == {
        "event": "malformed", "peer": "192.0.2.1", "not_logged_before": 1_000 - PEER_BURST
    }  # fmt: skip
    assert all("not_logged_before" not in line for line in written.lines[:PEER_BURST])
    written.limited.close()


async def test_a_peer_that_causes_too_many_leaves_lines_to_others_and_other_kinds():
    written = Written()
    written.cause(1_000)
    assert written.cause(1, "192.0.2.2") == 1
    assert written.cause(1, event="refused") == 1
    written.limited.close()


async def test_all_peers_together_get_no_more_than_the_kind():
    written = Written()
    assert sum(written.cause(1, f"192.0.2.{number}") for number in range(256)) == BURST
    written.now += 2.5 / RATE
    assert sum(written.cause(1, f"198.51.100.{number}") for number in range(256)) == 2
    assert written.lines[BURST]["not_logged_before"] == 256 - BURST
    written.limited.close()


async def test_addresses_of_one_ipv6_network_are_one_peer():
    written = Written()
    counts = [written.cause(1, f"2001:db8::{number:x}%eth0") for number in range(1, 101)]
    assert sum(counts) == PEER_BURST
    assert written.cause(1, "2001:db8:0:1::1") == 1
    assert written.cause(1, "no:address") == 1
    written.limited.close()


async def test_peers_are_forgotten_before_they_are_too_many():
    written = Written()
    for number in range(2 * PEERS):
        written.cause(1, f"10.0.{number // 256}.{number % 256}")
    [kind] = written.limited._kinds.values()
    assert len(kind._peers) == PEERS
    written.limited.close()


async def test_what_was_left_out_is_told_though_no_line_follows(monkeypatch):
    monkeypatch.setattr(limited_log, "TOLD_AFTER", 0)
    written = Written()
    with structlog.testing.capture_logs() as logged:
        written.cause(PEER_BURST + 7)
        [kind] = written.limited._kinds.values()
        while kind._timer is not None:
            await asyncio.sleep(0)
        written.limited.close()
    assert logged == [
        {
            "event": "lines left out of the log",
            "of": "malformed",
            "count": 7,
            "log_level": "warning",
        }
    ]
