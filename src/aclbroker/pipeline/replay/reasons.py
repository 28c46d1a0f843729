"""Which ACLs are behind a decision, as positions in `Ruleset.acls`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple


class Reasons(NamedTuple):
    """The ACLs that allow a question, that deny it, and that are on its resource.

    ``on_resource`` is None where the default without ACLs is to deny. ``alone`` are those of which
    each one decides: if it alone were removed, the answer would be another.
    """

    allows: list[int]
    denies: list[int]
    on_resource: list[int] | None
    alone: list[int]


def reasons(allows: list[int], denies: list[int], on_resource: list[int] | None) -> Reasons:
    """Return the reasons of a decision on one resource, with what decides alone."""
    return Reasons(allows, denies, on_resource, _alone(allows, denies, only_one(on_resource)))


def only_one(on_resource: Sequence[int] | None) -> int | None:
    """Return the ACL without which a resource would be open to everyone, if there is such a one."""
    return on_resource[0] if on_resource and len(on_resource) == 1 else None


def _alone(allows: list[int], denies: list[int], only: int | None) -> list[int]:
    if denies:
        # Without the last DENY it would be allowed by an ALLOW, or because no ACL is left.
        return denies if len(denies) == 1 and (allows or only is not None) else []
    if allows:
        # If it is the only ACL there is, it is allowed without it too.
        return allows if len(allows) == 1 and only is None else []
    return [] if only is None else [only]
