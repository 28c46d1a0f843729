"""Lines of the log that peers can cause as often as they like: a few of each kind and each peer.

The kind of a line is its event. A peer may cause `PEER_BURST` lines of a kind at once and then
`PEER_RATE` a second; all peers together `BURST`, then `RATE`. The next line of a kind tells how
many were left out before it. If there is none within `TOLD_AFTER` seconds, another line tells it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from ipaddress import AddressValueError, IPv6Address
from time import monotonic
from typing import Any, Final

from aclbroker.broker.observability.allowance import Allowance
from aclbroker.broker.observability.logs import get_logger

BURST: Final = 50
RATE: Final = 5.0
PEER_BURST: Final = 20
PEER_RATE: Final = 1.0
TOLD_AFTER: Final = 10.0

PEERS: Final = 1_024
"""How many peers of a kind are told apart; of more the one longest without a line is forgotten."""

log = get_logger()


class LimitedLog:
    """Writes lines, and leaves out those that are too many. ``clock`` returns seconds.

    ``left_out`` is how many were left out so far. Where several processes write to one log, each
    is given its ``share`` of the lines.
    """

    def __init__(self, clock: Callable[[], float] = monotonic, share: float = 1.0) -> None:
        self.left_out = 0
        self._clock = clock
        self._share = share
        self._kinds: dict[str, _Kind] = {}

    def write(self, write: Callable[..., Any], event: str, peer: str, /, **values: Any) -> None:
        """Write a line by a method of a logger, unless there were too many like it just now.

        ``peer`` is the address of who caused it; all addresses of an IPv6 /64 are one peer.
        """
        kind = self._kinds.get(event)
        if kind is None:
            kind = self._kinds[event] = _Kind(event, self._clock, self._share)
        if not kind.admits(network(peer)):
            self.left_out += 1
            kind.leave_out()
            return
        write(event, **values, **kind.told())

    def close(self) -> None:
        """Tell what was left out and not told."""
        for kind in self._kinds.values():
            kind.tell()


class _Kind:
    """The lines of one event."""

    def __init__(self, event: str, clock: Callable[[], float], share: float) -> None:
        self._event = event
        self._clock = clock
        self._share = share
        self._all = Allowance(RATE * share, max(1, BURST * share), clock)
        self._peers: OrderedDict[str, Allowance] = OrderedDict()
        self._left_out = 0
        self._timer: asyncio.TimerHandle | None = None

    def admits(self, peer: str) -> bool:
        """Take a line of a peer; false if it, or all together, had too many."""
        own = self._peers.get(peer)
        if own is None:
            own = self._peers[peer] = Allowance(
                PEER_RATE * self._share, max(1, PEER_BURST * self._share), self._clock
            )
            if len(self._peers) > PEERS:
                self._peers.popitem(last=False)
        self._peers.move_to_end(peer)
        # What a peer has too many of does not count against the others.
        return own.admits() and self._all.admits()

    def leave_out(self) -> None:
        """Count a line that is not written."""
        self._left_out += 1
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TOLD_AFTER, self.tell)

    def told(self) -> dict[str, int]:
        """Return what the line that is about to be written tells of those before it."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        left_out, self._left_out = self._left_out, 0
        return {"not_logged_before": left_out} if left_out else {}

    def tell(self) -> None:
        """Write how many lines were left out, if any were."""
        left_out = self.told().get("not_logged_before", 0)
        if left_out:
            log.warning("lines left out of the log", of=self._event, count=left_out)


def network(peer: str) -> str:
    """Return the first 64 bits of an IPv6 address, which are what one peer gets; else the text."""
    if ":" not in peer:
        return peer
    try:
        return IPv6Address(peer).packed[:8].hex()
    except AddressValueError:
        return peer
