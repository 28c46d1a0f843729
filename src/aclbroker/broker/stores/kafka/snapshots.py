"""When the snapshot of a topic is used, and when a new one is written."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from pathlib import Path
from typing import Final

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.kafka.contents import Contents
from aclbroker.broker.stores.kafka.freshness import Moment, boot_id, snapshot_ms
from aclbroker.broker.stores.kafka.snapshot import (
    About,
    DamagedSnapshot,
    Snapshot,
    read_snapshot,
    remove_unfinished,
    write_snapshot,
)
from aclbroker.broker.stores.kafka.topic import Topic
from aclbroker.broker.stores.store import StoreError

log = get_logger()

SETTING: Final = "aclbroker.store.snapshot.dir"
"""The name of a property: the directory for snapshots of topics; none are kept without it."""

_MANY: Final = 10_000
"""A new one is written when so many messages have come since the last."""

_LEAST_S: Final = 60.0
_MOST_S: Final = 300.0
"""How long after the last one a new one is written, for many messages and for few."""

_PARTS_OF_RETENTION: Final = 4
"""How many are written, though nothing has changed, in the time that a removal is kept."""


class Snapshots:
    """Reads and writes the snapshot of one topic in a directory; without one it does nothing."""

    def __init__(self, directory: Path | None) -> None:
        self._directory = directory
        self._topic: Topic | None = None
        self._about: About | None = None
        self._written_at = 0.0
        self._writing: asyncio.Task[None] | None = None
        self._fails = False

    async def found(self, topic: Topic) -> Contents | None:
        """Return what the snapshot of a topic has, None if there is none that can be used.

        From now on snapshots of this topic are written. Raises `StoreError` if the topic was
        deleted and made anew since the snapshot.
        """
        self._topic = topic
        path = self._path
        if path is None:
            return None
        try:
            await asyncio.to_thread(remove_unfinished, path)
            snapshot = await asyncio.to_thread(read_snapshot, path)
        except DamagedSnapshot as error:
            log.warning(
                "snapshot of the topic is damaged: it is thrown away, and the topic read whole",
                path=str(path),
                reason=str(error),
            )
            await asyncio.to_thread(_thrown_away, path)
            return None
        except OSError as error:
            log.warning(
                "snapshot of the topic cannot be read; the topic is read whole",
                path=str(path),
                reason=error.strerror or str(error),
            )
            return None
        return None if snapshot is None else self._used(snapshot, topic)

    def _used(self, snapshot: Snapshot, topic: Topic) -> Contents | None:
        about = snapshot.about
        if (about.cluster, about.topic_id) != (topic.cluster, topic.topic_id):
            raise self._lost(
                f"the topic {topic.name} was deleted and made anew since this broker has read it, "
                "so ACLs may be missing, DENYs among them"
            )
        self._about = about
        if not self.is_recent():
            return None
        contents = Contents()
        contents.bindings, contents.records = snapshot.bindings, snapshot.records
        contents.has_format = about.has_format
        contents.offset, contents.position = about.offset, about.position
        return contents

    def is_recent(self) -> bool:
        """Whether all removals since the snapshot that was found are still in the topic.

        Kafka keeps a message that removes a key for ``delete.retention.ms``.
        """
        about, topic = self._about, self._topic
        if about is None or topic is None:
            return False
        if topic.removals_kept_ms is None:
            self._told("how long the topic keeps removals is not known")
            return False
        age = _now_ms() - about.time_ms
        if age >= 0 and about.boot and about.boot == boot_id():
            # The clock may have been set back since.
            age = max(age, int((Moment.now().boot_s - about.boot_s) * 1000))
        if not 0 <= age <= snapshot_ms(topic.removals_kept_ms):
            self._told(
                "the topic may have lost removals since it was written",
                age_ms=age,
                kept_ms=topic.removals_kept_ms,
            )
            return False
        return True

    def is_in(self, begin: int, end: int) -> bool:
        """Return whether the end of the found snapshot is among the topic's offsets.

        These go from ``begin`` to ``end``. Raises `StoreError` if the topic ends before the
        snapshot.
        """
        about = self._about
        if about is not None and about.offset > end:
            raise self._lost(
                f"the topic ends at offset {end}, and this broker has read it up to "
                f"{about.offset}, so messages were lost, DENYs perhaps among them"
            )
        if about is not None and about.offset < begin:
            self._told("its offset is not in the topic", offset=about.offset, begin=begin)
            return False
        return True

    def _lost(self, reason: str) -> StoreError:
        self._about = None
        return StoreError(
            f"{reason}. Restore a backup, or confirm that the topic is to be used as it is: remove "
            f"the snapshot {self._path}, and start the broker again"
        )

    def _told(self, reason: str, **values: int) -> None:
        self._about = None
        log.warning("snapshot of the topic not used; it is read whole", reason=reason, **values)

    def is_due(self, offset: int) -> bool:
        """Whether a new one is to be written, when the topic was read up to an offset."""
        topic = self._topic
        if self._path is None or topic is None or topic.removals_kept_ms is None:
            return False
        if self._writing is not None and not self._writing.done():
            return False
        since = time.monotonic() - self._written_at
        if self._written_at and since < _LEAST_S:
            return False
        about = self._about
        if about is None or offset - about.offset >= _MANY:
            return offset > 0
        age_ms = _now_ms() - about.time_ms
        is_old = age_ms * _PARTS_OF_RETENTION > topic.removals_kept_ms or age_ms < 0
        return is_old or (offset > about.offset and since > _MOST_S)

    def keep(self, kept_ms: int | None) -> None:
        """Take the current retention of removals of the topic."""
        if self._topic is not None:
            self._topic = self._topic._replace(removals_kept_ms=kept_ms)

    def write(self, contents: Contents, moment: Moment) -> None:
        """Begin to write the contents of the whole topic at a moment.

        They are copied first, in one go, because they change later. That takes a few milliseconds
        for 100,000 ACLs.
        """
        path, topic = self._path, self._topic
        if path is None or topic is None:
            return
        about = About(
            *(topic.cluster, topic.topic_id, contents.offset, contents.position),
            *(moment.wall_ms, boot_id(), moment.boot_s, contents.has_format),
            *(len(contents.bindings), len(contents.records)),
        )
        bindings, records = list(contents.bindings), list(contents.records.items())
        self._written_at = time.monotonic()
        write = partial(write_snapshot, path, about, bindings, records)
        self._writing = asyncio.create_task(self._write(write, about))

    async def _write(self, write: partial[None], about: About) -> None:
        try:
            await asyncio.to_thread(write)
        except (OSError, ValueError) as error:
            if not self._fails:
                log.warning(
                    "snapshot of the topic not written; the next start may take longer",
                    path=str(self._path),
                    reason=getattr(error, "strerror", None) or str(error),
                )
            self._fails = True
        else:
            self._about, self._fails = about, False

    async def close(self) -> None:
        """Wait until what is being written is whole."""
        if self._writing is not None:
            await asyncio.wait([self._writing])

    @property
    def _path(self) -> Path | None:
        if self._directory is None or self._topic is None or not self._topic.topic_id:
            return None
        return self._directory / f"{self._topic.name}-{self._topic.id}.snapshot"


def directory_of(text: str | None) -> Path | None:
    """Return the directory that the setting names; None if it is not set."""
    return Path(text.strip()) if text and text.strip() else None


def _thrown_away(path: Path) -> None:
    path.unlink(missing_ok=True)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
