"""All that a store has at one position, read and checked, with what is damaged in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.store import Origin


class KeptRecord(NamedTuple):
    """The value of a record, and who gave it, if that is known."""

    value: str
    origin: Origin | None = None


class Survey(NamedTuple):
    """What there was. Each problem is a sentence for the operator."""

    place: str
    cluster_id: str
    position: int
    acls: Mapping[AclBinding, Origin | None]
    """Each with who made it, None where that is not known."""

    records: Mapping[tuple[str, str], KeptRecord]
    """By kind and name."""

    problems: Sequence[str] = ()

    @property
    def described(self) -> str:
        """What it is, in a line."""
        return (
            f"cluster id {self.cluster_id or 'none'}, position {self.position}, "
            f"{len(self.acls)} ACLs, {len(self.records)} records"
        )
