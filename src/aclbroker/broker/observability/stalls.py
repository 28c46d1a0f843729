"""Whether the event loop turns: how late it comes to what is due, and which request held it up."""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import Any, Final

from aclbroker.acl.authorizer import Session
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import Frame

log = get_logger()

STALL_SECONDS: Final = 0.1
"""For how long the loop must be held up for a line in the log."""

_BEAT_SECONDS: Final = 0.05
"""How often the loop is asked to be in time."""

_EVENT: Final = "event loop held up"


class StallMonitor:
    """Measures how late the event loop is, and logs what held it up.

    Whoever works for a request takes ``perf_counter()`` before a share of work that is not
    interrupted, and calls `worked` after it, or `had_turn` if it was not the first.
    """

    __slots__ = ("_due", "_frame", "_lines", "_longest", "_metrics", "_timer", "_who")

    def __init__(self, metrics: Metrics, lines: LimitedLog) -> None:
        self._metrics = metrics
        self._lines = lines
        self._timer: asyncio.TimerHandle | None = None
        self._due = 0.0
        self._longest = 0.0
        self._who: Session | str = ""
        self._frame: Frame = b""

    def start(self) -> None:
        """Begin to measure the running loop."""
        self._due = perf_counter() + _BEAT_SECONDS
        self._timer = asyncio.get_running_loop().call_later(_BEAT_SECONDS, self._beat)

    def stop(self) -> None:
        """Measure no more."""
        if self._timer is not None:
            self._timer.cancel()

    def worked(self, began: float, who: Session | str, frame: Frame) -> None:
        """Note that work for a request's frame began at ``began`` and has just ended.

        ``who`` is the session, or the address of a peer that has none yet. A call over HTTP before
        its login has the frame ``b""``. The frame is kept until the loop's next beat, and only if
        nothing took longer since the last.
        """
        took = perf_counter() - began
        if took > self._longest:
            self._longest = took
            self._who = who
            self._frame = frame

    def had_turn(self, began: float, who: Session | str, frame: Frame) -> None:
        """Note as `worked` that a request that was begun before has had another turn."""
        self._metrics.observe("aclbroker_turn_seconds", perf_counter() - began)
        self.worked(began, who, frame)

    def _beat(self) -> None:
        late = max(0.0, perf_counter() - self._due, self._longest)
        self._metrics.observe("aclbroker_event_loop_lag_seconds", late)
        if late > STALL_SECONDS:
            self._tell(late)
        self._forget()
        self.start()

    def _forget(self) -> None:
        self._longest = 0.0
        self._who = ""
        self._frame = b""

    def _tell(self, late: float) -> None:
        # What the longest request does not account for may be others, or something else: a garbage
        # collection, or a machine that is too busy.
        longest = self._longest_request() if self._longest else {}
        peer = longest.get("peer", "")
        self._lines.write(log.warning, _EVENT, peer, milliseconds=_milliseconds(late), **longest)

    def _longest_request(self) -> dict[str, Any]:
        frame, who = self._frame, self._who
        if not frame:
            return {
                "api_name": "HTTP",
                "request_milliseconds": _milliseconds(self._longest),
                "peer": who,
            }
        key = int.from_bytes(frame[:2], "big", signed=True)
        api = APIS.get(key)
        return {
            "api_name": f"ApiKey{key}" if api is None else api.name,
            "api_version": int.from_bytes(frame[2:4], "big", signed=True),
            "request_bytes": len(frame),
            "request_milliseconds": _milliseconds(self._longest),
            "principal": who.principals[0] if isinstance(who, Session) else None,
            "peer": who.host if isinstance(who, Session) else who,
        }


def _milliseconds(seconds: float) -> int:
    return round(seconds * 1000)
