"""Which files of a directory make up the metadata log: the newest snapshot, and what follows it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.broker.kraft.errors import KraftError

TOPIC_DIRECTORY: Final = "__cluster_metadata-0"
_SEGMENT: Final = re.compile(r"(\d{20})\.log")
_SNAPSHOT: Final = re.compile(r"(\d{20})-(\d{10})\.checkpoint")

_PROPERTIES: Final = "meta.properties"
_CLUSTER_ID: Final = re.compile(r"^cluster\.id=(\S+)\s*$", re.MULTILINE)


class Snapshot(NamedTuple):
    """A snapshot: all that held before ``end_offset``."""

    end_offset: int
    epoch: int
    path: Path


class Segment(NamedTuple):
    """A segment of the log, by the offset of its first record."""

    base_offset: int
    path: Path


class LogFiles(NamedTuple):
    """The newest snapshot, if there is one, and the segments from its end on, in order."""

    snapshot: Snapshot | None
    segments: tuple[Segment, ...]

    @property
    def first_offset(self) -> int:
        """The offset of the first record that counts beside those of the snapshot."""
        return 0 if self.snapshot is None else self.snapshot.end_offset

    def stamps(self) -> tuple[tuple[str, int, int] | None, ...]:
        """Return the name, size and time of each file, None for one that is gone."""
        paths = [each.path for each in self.segments]
        if self.snapshot is not None:
            paths.append(self.snapshot.path)
        return tuple(map(_stamp, paths))


def find(directory: Path) -> LogFiles:
    """Return the files of a metadata log: of the directory, or of the topic's directory in it.

    Raises `KraftError` if there are none, or if records before the first segment are missing.
    """
    folder = directory / TOPIC_DIRECTORY
    if not folder.is_dir():
        folder = directory
    try:
        names = os.listdir(folder)
    except OSError as error:
        raise KraftError(f"{folder}: {error.strerror or error}{_hint(directory)}") from None
    matches = [_SNAPSHOT.fullmatch(name) for name in names]
    snapshots = [Snapshot(int(each[1]), int(each[2]), folder / each[0]) for each in matches if each]
    matches = [_SEGMENT.fullmatch(name) for name in names]
    segments = sorted(Segment(int(each[1]), folder / each[0]) for each in matches if each)
    if not snapshots and not segments:
        raise KraftError(
            f"{folder}: no metadata log; expected the *.log and *.checkpoint files of a KRaft "
            f"controller's {TOPIC_DIRECTORY}"
        )
    snapshot = max(snapshots, default=None)
    first = 0 if snapshot is None else snapshot.end_offset
    if segments and segments[0].base_offset > first:
        raise KraftError(
            f"{folder}: the records {first} to {segments[0].base_offset - 1} are missing; copy all "
            "*.log files and the newest *.checkpoint"
        )
    # Of a segment that ends where the snapshot does, or before, the next one tells.
    ends = [each.base_offset for each in segments[1:]]
    old = sum(end <= first for end in ends)
    return LogFiles(snapshot, tuple(segments[old:]))


def read_cluster_id(directory: Path) -> str | None:
    """Return the cluster's id from the file beside Kafka's logs; None without that file or id.

    ``directory`` is Kafka's log directory, or the directory of the metadata topic in it.
    """
    beside = directory if (directory / TOPIC_DIRECTORY).is_dir() else directory.parent
    try:
        text = (beside / _PROPERTIES).read_text(errors="replace")
    except OSError:
        return None
    found = _CLUSTER_ID.search(text)
    return None if found is None else found[1]


def _stamp(path: Path) -> tuple[str, int, int] | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return path.name, found.st_size, found.st_mtime_ns


def _hint(directory: Path) -> str:
    if not directory.is_absolute() and Path("/", directory).is_dir():
        return f" (an absolute path has four slashes: kraft:////{directory})"
    return ""
