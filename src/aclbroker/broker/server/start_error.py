"""Why a broker does not start, in words for who wants to start it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


class StartError(Exception):
    """The broker cannot start; the text says why and what to do."""


@contextmanager
def naming(setting: str, value: str | None, failure: str) -> Iterator[None]:
    """Make of an `OSError` a `StartError` that names the setting behind it."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise StartError(f"{setting}={value}: {failure}: {reason}") from error
