"""Times as people read and write them: ISO 8601, in UTC unless they say otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def written_time(time_ms: int) -> str:
    """Return a time in milliseconds since the epoch as 2026-01-02T03:04:05.678Z."""
    try:
        time = _EPOCH + timedelta(milliseconds=time_ms)
    except OverflowError:
        return f"{time_ms} ms"
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def read_time(text: str) -> int:
    """Return a time in milliseconds since the epoch. Raises ValueError for what is none.

    A date without a time is its beginning; without an offset the time is in UTC.
    """
    time = datetime.fromisoformat(text)
    if time.tzinfo is None:
        time = time.replace(tzinfo=UTC)
    return (time - _EPOCH) // timedelta(milliseconds=1)
