"""The metadata log of a KRaft controller, read from its files without a JVM: the ACLs in it.

`records` reads one metadata record, `batches` the record batches of a file, `files` finds the
snapshot and the segments of a directory, `replay` makes ACLs of records, and `reading` does it all.
"""

from __future__ import annotations

from aclbroker.broker.kraft.errors import KraftError
from aclbroker.broker.kraft.reading import MetadataAcls, read_acls

__all__ = ["KraftError", "MetadataAcls", "read_acls"]
