"""The past of the store that `--store` and `--config` name, and which moment `--at` does."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from aclbroker.cli.rules_source import SourceError

if TYPE_CHECKING:
    from aclbroker.broker.stores.kafka.connection import Place
    from aclbroker.broker.stores.reading import History, PastAcls

_KAFKA: Final = "kafka://"
_DIGITS: Final = 19
"""The longest position has so many."""

_SHOWN: Final = 64


class Past(Protocol):
    """What a store keeps of former times."""

    def history(self) -> History:
        """Return the changes of ACLs that it still has. Raises SourceError."""

    def acls_at(self, position: int | None, time_ms: int | None) -> PastAcls:
        """Return the ACLs as they were at a position, or at a time in milliseconds.

        Raises SourceError, also for what cannot be told.
        """


def past_of(
    url: str | None, config_file: str | None = None, command_config: str | None = None
) -> Past:
    """Return the past of the store at a URL; without one, of that of a broker's settings.

    ``command_config`` is a Kafka client's properties file, to log in with where that is a topic.
    Raises SourceError where a store keeps none.
    """
    from aclbroker.broker.config import ConfigError, load
    from aclbroker.broker.config.store_url import ZOOKEEPER
    from aclbroker.broker.stores import StoreError, open_store, path_of

    named = "--store" if url is not None else "aclbroker.store"
    try:
        config = load(config_file) if url is None else None
        url = config.store if config is not None else str(url)
        if url.startswith(_KAFKA):
            from aclbroker.broker.stores.kafka.connection import SETTING, place_of

            given = None if config is None else config.properties.get(SETTING)
            return _OfTopic(place_of(url, command_config or given or None))
        if not url.startswith(ZOOKEEPER):
            open_store(url)
    except ConfigError as error:
        raise SourceError("\n".join(error.problems)) from error
    except StoreError as error:
        raise SourceError(str(error).replace("aclbroker.store=", f"{named} ", 1)) from error
    if url.startswith(ZOOKEEPER):
        raise SourceError(
            f"{named} {url} keeps no history: ZooKeeper has the ACLs of now alone, as Kafka lays "
            "them out; aclbroker acls --bootstrap-server lists these"
        )
    path = path_of(url)
    if path is None:
        raise SourceError(
            f"{named} {url} has no file, and so no history; name sqlite:///path or "
            "kafka://HOST:PORT/TOPIC"
        )
    if command_config is not None:
        raise SourceError("--command-config is for a store that is a topic")
    return _OfFile(Path(path).resolve())


@contextmanager
def _told() -> Iterator[None]:
    from aclbroker.broker.stores import StoreError

    try:
        yield
    except StoreError as error:
        raise SourceError(str(error)) from error


@dataclass(frozen=True, slots=True)
class _OfFile:
    path: Path

    def history(self) -> History:
        from aclbroker.broker.stores.reading import read_history

        with _told():
            return read_history(self.path)

    def acls_at(self, position: int | None, time_ms: int | None) -> PastAcls:
        from aclbroker.broker.stores.reading import read_acls_at

        with _told():
            return read_acls_at(self.path, position=position, time_ms=time_ms)


@dataclass(frozen=True, slots=True)
class _OfTopic:
    place: Place

    def history(self) -> History:
        from aclbroker.broker.stores.kafka.past import read_past

        with _told():
            return asyncio.run(read_past(self.place)).history()

    def acls_at(self, position: int | None, time_ms: int | None) -> PastAcls:
        from aclbroker.broker.stores.kafka.past import read_past

        with _told():
            return asyncio.run(read_past(self.place)).acls_at(position, time_ms)


def moment(text: str) -> tuple[int | None, int | None]:
    """Return a position, or a time in milliseconds since the epoch; raises SourceError."""
    from aclbroker.broker.stores.times import read_time

    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text), None
    try:
        return None, read_time(text)
    except (ValueError, OverflowError):
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
        raise SourceError(
            f"--at {shown!r} is no position, such as 48213, and no time, such as 2026-01-31T14:02 "
            "(in UTC) or 2026-01-31T15:02:30+01:00"
        ) from None
