"""Faults on demand, for tests of applications: requests fail, wait, or end their connection."""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Final

from aclbroker.broker.turns import poll
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ProtocolError

MOST_FAULTS: Final = 1_000
"""How many faults may be to come, each for as many requests as it says."""

MOST_REQUESTS: Final = 1_000_000
"""How many requests one fault may concern."""

MOST_SECONDS: Final = 3_600
"""How long a fault may keep a request waiting."""

_LONGEST_NAME: Final = 64


@dataclass(slots=True)
class Fault:
    """What happens to the next ``count`` requests of an API key.

    They are answered with ``code``, or the connection is closed if ``closes``, in both cases after
    ``delay`` seconds; with neither they are worked on late.
    """

    count: int
    code: ErrorCode | None = None
    closes: bool = False
    delay: float = 0.0


class Faults:
    """The faults that are to come, by API key; those of one key happen in their order."""

    def __init__(self) -> None:
        self._coming: dict[int, list[Fault]] = {}

    def add(self, key: ApiKey, fault: Fault) -> None:
        """Have a fault happen after those that were added before.

        Raises ValueError for one that cannot be.
        """
        if not 1 <= fault.count <= MOST_REQUESTS:
            raise ValueError(f"a fault needs a count of at least 1 and at most {MOST_REQUESTS}")
        if not 0 <= fault.delay <= MOST_SECONDS:
            raise ValueError(f"a fault's delay is at least 0 and at most {MOST_SECONDS} seconds")
        if not (fault.code or fault.closes or fault.delay):
            raise ValueError("a fault needs an error, a delay, or to close the connection")
        if fault.code is not None and fault.closes:
            raise ValueError("a fault closes the connection, or has an error to answer with")
        if sum(map(len, self._coming.values())) >= MOST_FAULTS:
            raise ValueError(f"{MOST_FAULTS} faults are to come already, and no more may be")
        self._coming.setdefault(key, []).append(fault)

    def coming(self) -> Iterator[tuple[ApiKey, Fault]]:
        """Yield the faults that are to come, with what is left of their counts."""
        for key, faults in self._coming.items():
            for fault in faults:
                yield ApiKey(key), fault

    def clear(self) -> None:
        """Let no fault happen any more."""
        self._coming.clear()

    def happen(self, key: int) -> ErrorCode | None:
        """Let the next fault of a key happen; return what to answer with, None for nothing special.

        Raises ProtocolError if the connection is to be closed.
        """
        coming = self._coming.get(key)
        if not coming:
            return None
        fault = coming[0]
        fault.count -= 1
        if not fault.count:
            del coming[0]
        if fault.delay:
            poll(asyncio.sleep(fault.delay))
        if fault.closes:
            raise ProtocolError("a fault was asked for")
        return fault.code


def api_key(name: str) -> ApiKey:
    """Return the API key of a name such as ``Produce``; ValueError, with close ones, for none."""
    by_name = {api.name.lower(): key for key, api in APIS.items()}
    if name.lower() not in by_name:
        names = ", ".join(APIS[by_name[each]].name for each in _close(name.lower(), by_name))
        raise ValueError(f"request {name[:_LONGEST_NAME]!r} is not known; did you mean {names}?")
    return ApiKey(by_name[name.lower()])


def error_code(name: str) -> ErrorCode:
    """Return the error code of a name; ValueError, with close ones, for none."""
    known = ErrorCode.__members__
    if name.upper() not in known:
        names = ", ".join(_close(name.upper(), known))
        raise ValueError(f"error {name[:_LONGEST_NAME]!r} is not known; did you mean {names}?")
    return ErrorCode[name.upper()]


def _close(name: str, names: Collection[str]) -> list[str]:
    """Return the names that are like another, of which only the beginning is looked at."""
    return difflib.get_close_matches(name[:_LONGEST_NAME], names, n=5, cutoff=0)
