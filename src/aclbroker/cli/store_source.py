"""Which file of a store `--store` and `--config` name, and which moment `--at` does."""

from __future__ import annotations

from pathlib import Path

from aclbroker.cli.rules_source import SourceError


def store_file(url: str | None, config_file: str | None = None) -> Path:
    """Return the file that a store's URL names; without one, that of a broker's settings.

    Raises SourceError where it has none.
    """
    from aclbroker.broker.config import ConfigError, load
    from aclbroker.broker.stores import StoreError, open_store, path_of

    named = "--store" if url is not None else "aclbroker.store"
    try:
        url = load(config_file).store if url is None else url
        open_store(url)
    except ConfigError as error:
        raise SourceError("\n".join(error.problems)) from error
    except StoreError as error:
        raise SourceError(str(error).replace("aclbroker.store=", f"{named} ", 1)) from error
    path = path_of(url)
    if path is None:
        raise SourceError(f"{named} {url} has no file, and so no history; name sqlite:///path")
    return Path(path).resolve()


def moment(text: str) -> tuple[int | None, int | None]:
    """Return a position, or a time in milliseconds since the epoch; raises SourceError."""
    from aclbroker.broker.stores.times import read_time

    if text.isascii() and text.isdigit():
        return int(text), None
    try:
        return None, read_time(text)
    except (ValueError, OverflowError):
        raise SourceError(
            f"--at {text!r} is no position, such as 48213, and no time, such as 2026-01-31T14:02 "
            "(in UTC) or 2026-01-31T15:02:30+01:00"
        ) from None
