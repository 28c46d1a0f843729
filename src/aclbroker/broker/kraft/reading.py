"""Reads the ACLs of a metadata log, also while a controller writes it."""

from __future__ import annotations

from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.kraft.batches import TornEnd, batches, ends_snapshot, values_of
from aclbroker.broker.kraft.errors import KraftError
from aclbroker.broker.kraft.files import LogFiles, Snapshot, find, read_cluster_id
from aclbroker.broker.kraft.replay import AclReplay

_ATTEMPTS: Final = 3
"""How often a log is read that changes at other places than its end meanwhile."""


class MetadataAcls(NamedTuple):
    """The ACLs of a metadata log before an offset, and what is to be said of how it was read."""

    acls: list[AclBinding]
    end_offset: int
    notes: tuple[str, ...]
    cluster_id: str | None = None
    """The id in `meta.properties` beside the log; None if that file was not copied with the log."""

    epoch: int = 0
    """The epoch of the last batch. It never decreases, nor does the end offset within one epoch."""

    snapshot_offset: int = 0
    """The end offset of the snapshot, which never decreases."""


def read_acls(directory: Path) -> MetadataAcls:
    """Return the ACLs of the newest snapshot in a directory and of the log that follows it.

    Records of a transaction count once it has ended. Which records of the end of the log the quorum
    has not committed its files do not tell: all count. Raises `KraftError`.
    """
    attempts = 0
    cluster_id = read_cluster_id(directory)
    while True:
        attempts += 1
        files = find(directory)
        before = files.stamps()
        try:
            return _read(files)._replace(cluster_id=cluster_id)
        except (KraftError, OSError) as error:
            # A controller deletes old files, and cuts off the end of its log if that was never
            # committed. What is damaged stays so.
            if attempts < _ATTEMPTS and find(directory).stamps() != before:
                continue
            if isinstance(error, OSError):
                place = error.filename or directory
                raise KraftError(f"{place}: {error.strerror or error}") from None
            raise


def _read(files: LogFiles) -> MetadataAcls:
    replay = AclReplay()
    notes = []
    if files.snapshot is not None:
        _apply_snapshot(files.snapshot, replay)
        if not files.segments:
            notes.append(
                "there is no *.log file: the ACLs are those of the snapshot at offset "
                f"{files.first_offset}"
            )
    end, epoch, torn = _apply_log(files, replay)
    if torn is not None:
        notes.append(
            f"the log ends within a batch at offset {torn.offset}, as it does while a controller "
            "writes; what stands before counts"
        )
    if replay.waiting is not None:
        notes.append(
            f"a transaction is open at the end of the log; its {replay.waiting} changes of ACLs do "
            "not count"
        )
    for kind, count in sorted(replay.not_known.items()):
        notes.append(f"{count} records of the type {kind}, which is not known here, do not count")
    return MetadataAcls(
        replay.acls, end, tuple(notes), epoch=epoch, snapshot_offset=files.first_offset
    )


def _apply_snapshot(snapshot: Snapshot, replay: AclReplay) -> None:
    is_whole = False
    try:
        for batch in batches(snapshot.path, 0):
            is_whole = ends_snapshot(batch)
            if not batch.is_control:
                for offset, value in values_of(snapshot.path, batch):
                    replay.apply(value, f"{snapshot.path}: the record {offset}")
    except TornEnd as torn:
        raise KraftError(f"{snapshot.path}: the snapshot is cut off: {torn}") from None
    if not is_whole:
        raise KraftError(f"{snapshot.path}: the snapshot is cut off: its last record is missing")


def _apply_log(files: LogFiles, replay: AclReplay) -> tuple[int, int, TornEnd | None]:
    """Apply the log behind the snapshot.

    Return the offset behind its end, the epoch of its last batch, and how the log is cut off.
    """
    first = files.first_offset
    epoch = 0 if files.snapshot is None else files.snapshot.epoch
    end = files.segments[0].base_offset if files.segments else first
    for base_offset, path in files.segments:
        if base_offset != end:
            raise KraftError(
                f"{path}: the records {end} to {base_offset - 1} before it are missing"
            )
        try:
            for batch in batches(path, base_offset):
                end, epoch = batch.last_offset + 1, batch.leader_epoch
                if batch.is_control or end <= first:
                    continue
                for offset, value in values_of(path, batch):
                    if offset >= first:
                        replay.apply(value, f"{path}: the record {offset}")
        except TornEnd as torn:
            if path != files.segments[-1].path:
                raise KraftError(f"{path}: it is cut off: {torn}") from None
            return max(end, first), epoch, torn
    return max(end, first), epoch, None
