"""The clients that have begun the share sessions of members (KIP-932).

A broker keeps one session for each member of a share group, without regard to connections or
principals. A client could begin a session in another member's name, and continue it when that
member has begun it again. The broker would then acquire records on which the client has no right.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from aclbroker.broker.gate.rights import RequestRights

_MOST_MEMBERS: Final = 100_000
"""The most members that are remembered. One that is forgotten begins its session again."""

Member = tuple[str | None, str | None]
"""A share group, and the id of a member."""


@dataclass(slots=True)
class Beginning:
    """A request of a client that begins a session, and whether the broker has begun it.

    If the broker refuses the request, the session of another client may go on.
    """

    principals: Sequence[str]
    is_confirmed: bool = False


class ShareMembers:
    """The last request that begins a session, for each member."""

    def __init__(self) -> None:
        self._beginnings: OrderedDict[Member, Beginning] = OrderedDict()

    def begin(self, member: Member, rights: RequestRights) -> Beginning:
        """Note that a client begins a session of a member, which no client continues until then."""
        beginning = Beginning(rights.context.session.principals)
        self._beginnings[member] = beginning
        self._beginnings.move_to_end(member)
        if len(self._beginnings) > _MOST_MEMBERS:
            self._beginnings.popitem(last=False)
        return beginning

    def has_begun(self, member: Member, rights: RequestRights) -> bool:
        """Return whether the principals of a request have begun the last session of a member."""
        beginning = self._beginnings.get(member)
        return (
            beginning is not None
            and beginning.is_confirmed
            and beginning.principals == rights.context.session.principals
        )
