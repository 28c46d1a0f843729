"""The metadata log of a KRaft controller: ``kraft:///DIR``, which can only be read."""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path

from aclbroker.broker.kraft import KraftError, read_acls
from aclbroker.broker.kraft.files import find
from aclbroker.broker.stores.identity import CLUSTER_ID, SourceIdentity
from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError


class MetadataLogPlace(Place):
    """The directory of a metadata log, as files that were copied or of a controller that runs."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._directory = Path(url.removeprefix("kraft:///"))
        self._identity = SourceIdentity()

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return the ACLs of the newest snapshot and the log behind it."""
        try:
            found = read_acls(self._directory)
        except KraftError as error:
            raise PlaceError(str(error)) from error
        names = {CLUSTER_ID: found.cluster_id} if found.cluster_id else {}
        # A new epoch may cut off an uncommitted end, so the offset counts only with its epoch.
        marks = {
            "metadata epoch and offset": (found.epoch, found.end_offset),
            "metadata snapshot": (found.snapshot_offset,),
        }
        self._identity = SourceIdentity(names, marks)
        return Contents(found.acls, found.notes)

    def identity(self) -> SourceIdentity:
        """Return the id of the cluster, and the epoch and offsets of the log at the last read."""
        return self._identity

    def stamp(self) -> Hashable | None:
        """Return the names, sizes and times of the files."""
        try:
            return find(self._directory).stamps()
        except KraftError:
            return None
