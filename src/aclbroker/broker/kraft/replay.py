"""Makes the ACLs of metadata records, in their order."""

from __future__ import annotations

from collections import Counter
from typing import Any

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.kraft.errors import KraftError
from aclbroker.broker.kraft.records import (
    NEWEST_TYPE,
    AccessControlEntryRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    OtherRecord,
    RemoveAccessControlEntryRecord,
    read_record,
)
from aclbroker.protocol.primitives import ProtocolError


class AclReplay:
    """The ACLs after the records that were applied; those of an open transaction wait for its end.

    ``not_known`` counts the records of types that Kafka 4.3 does not have.
    """

    def __init__(self) -> None:
        self.not_known: Counter[int] = Counter()
        self._by_id: dict[bytes, AclBinding] = {}
        self._waiting: list[tuple[str, Any]] | None = None

    @property
    def acls(self) -> list[AclBinding]:
        """Each ACL once."""
        return list(dict.fromkeys(self._by_id.values()))

    @property
    def waiting(self) -> int | None:
        """How many changes of ACLs wait for the end of a transaction; None if there is none."""
        return None if self._waiting is None else len(self._waiting)

    def apply(self, value: bytes, where: str) -> None:
        """Apply a record; ``where`` names it. Raises `KraftError` for one that cannot be."""
        try:
            record = read_record(value)
        except ProtocolError as error:
            raise KraftError(f"{where} cannot be read: {error}") from None
        if isinstance(record, OtherRecord):
            if record.type > NEWEST_TYPE:
                self.not_known[record.type] += 1
        elif isinstance(record, (AccessControlEntryRecord, RemoveAccessControlEntryRecord)):
            if self._waiting is None:
                self._change(record, where)
            else:
                self._waiting.append((where, record))
        else:
            self._mark(record, where)

    def _mark(self, record: Any, where: str) -> None:
        """Begin, end or abort a transaction."""
        waiting = self._waiting
        if isinstance(record, BeginTransactionRecord):
            if waiting is not None:
                raise KraftError(f"{where} begins a transaction, and one has begun before")
            self._waiting = []
            return
        if waiting is None:
            raise KraftError(f"{where} ends a transaction, and none has begun")
        self._waiting = None
        if isinstance(record, EndTransactionRecord):
            for changed_at, change in waiting:
                self._change(change, changed_at)

    def _change(self, record: Any, where: str) -> None:
        if isinstance(record, AccessControlEntryRecord):
            self._by_id[record.id] = _binding(record)
        elif self._by_id.pop(record.id, None) is None:
            raise KraftError(f"{where} removes an ACL that is not there: records are missing")


def _binding(record: AccessControlEntryRecord) -> AclBinding:
    return AclBinding(
        ResourceType.from_code(record.resource_type),
        record.resource_name,
        PatternType.from_code(record.pattern_type),
        record.principal,
        record.host,
        AclOperation.from_code(record.operation),
        AclPermission.from_code(record.permission_type),
    )
