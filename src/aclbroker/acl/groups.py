"""Groups: the principals ``Group:name`` that a user has beside its own.

ACLs name a group as they name a user, and each ACL of any principal of a session counts: a group
adds principals to a session, and no rule to the authorizer.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Final

from aclbroker.acl.bindings import WILDCARD

GROUP: Final = "Group:"
"""What the principal of a group begins with."""

MOST_GROUPS: Final = 1_000
"""In how many groups a principal may be by one source: a file, or an access token."""

LONGEST_NAME: Final = 256
"""How many characters the name of a group may have."""


class Groups:
    """Which groups each principal is in. It does not change.

    ``memberships`` are the name of a group and a member's principal, ``Type:name``, for each member
    of each group, one group after the other. ``names`` is how many groups have members. Raises
    ValueError for a principal in more than `MOST_GROUPS`.
    """

    def __init__(self, memberships: Iterable[tuple[str, str]] = ()) -> None:
        found: dict[str, list[str]] = {}
        principals: dict[str, str] = {}
        for name, member in memberships:
            group = principals.setdefault(name, GROUP + name)
            of_member = found.setdefault(member, [])
            if of_member[-1:] != [group]:
                of_member.append(group)
            if len(of_member) > MOST_GROUPS:
                raise ValueError(f"{member!r} is in more than {MOST_GROUPS:,} groups")
        self.names = len(principals)
        self._of: dict[str, tuple[str, ...]] = {}
        # Many principals are in the same groups: they have one tuple in common.
        shared: dict[tuple[str, ...], tuple[str, ...]] = {}
        while found:
            member, of_member = found.popitem()
            groups = tuple(sorted(set(of_member)))
            self._of[member] = shared.setdefault(groups, groups)

    def __len__(self) -> int:
        """Return how many principals are in some group."""
        return len(self._of)

    def by_principal(self) -> Mapping[str, tuple[str, ...]]:
        """Return the groups of each principal that is in some, not to be changed."""
        return MappingProxyType(self._of)

    def of(self, principal: str) -> tuple[str, ...]:
        """Return the groups that a principal is in, as principals ``Group:name``, sorted."""
        return self._of.get(principal, ())

    def principals(self, own: Sequence[str], claimed: Iterable[str] = ()) -> tuple[str, ...]:
        """Return all principals of a session: its own in their order, then its groups, sorted.

        ``claimed`` are groups that it has from elsewhere, as principals. Equal sets of groups give
        equal tuples, whatever order they came in.
        """
        found = set(claimed).union(*map(self.of, own))
        return (*own, *sorted(found.difference(own)))

    def forget(self) -> None:
        """Forget all groups one after the other, so that other threads may work meanwhile.

        It frees much memory at once to drop a large object, and no thread works until that is done.
        """
        while self._of:
            self._of.popitem()


def invalid_group(name: str) -> str | None:
    """Tell why a group cannot have a name, in words that do not repeat it; None if it can.

    Any other text is a name, and is compared as it stands.
    """
    if not name:
        return "the name of a group is empty"
    if len(name) > LONGEST_NAME:
        return f"the name of a group has {len(name):,} characters; {LONGEST_NAME} are allowed"
    if name == WILDCARD:
        return f"a group cannot have the name {WILDCARD}; ACLs of User:* are those for everyone"
    # Surrogates (Cs) are half a character each: no ACL could name the group.
    if not name.isprintable() and not {"Cc", "Cs"}.isdisjoint(map(unicodedata.category, name)):
        return "the name of a group has a control character or half of a surrogate pair"
    return None
