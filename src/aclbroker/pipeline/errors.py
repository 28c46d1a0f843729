"""The error that tells a user why there is no answer."""

from __future__ import annotations

from collections.abc import Mapping


class InputError(Exception):
    """A job cannot answer from what it was given; the message says what is missing.

    ``alarms`` are numbers that it has counted even so, as `JobResult.alarms` are.
    """

    def __init__(self, message: str, alarms: Mapping[str, int] | None = None) -> None:
        super().__init__(message)
        self.alarms = dict(alarms or {})


class DoubtedLogError(InputError):
    """The log has too many quarantined lines, or too few allowed events, for a proposal."""


class LogError(OSError):
    """A log that was named is not there, cannot be read, or is none; the message says which."""
