"""A principal builder of one's own: users have groups, which ACLs may name as well.

    principal.builder.class=group_principals:GroupPrincipals
    example.groups=alice:staff,bob:staff,bob:payments

With this file's folder in PYTHONPATH, alice is User:alice and Group:staff. An ACL that allows
either allows her, one that denies either denies her. aclbroker.PrincipalBuilder is
the whole interface; a token's claims and a client's certificate are in the context, too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

from aclbroker import ANONYMOUS, AuthenticationContext


class GroupPrincipals:
    """Names a user and its groups."""

    def __init__(self) -> None:
        self._groups: dict[str, list[str]] = defaultdict(list)

    def configure(self, properties: Mapping[str, str]) -> None:
        """Take ``example.groups``: USER:GROUP separated by commas."""
        for pair in filter(None, properties.get("example.groups", "").split(",")):
            user, colon, group = pair.strip().partition(":")
            if not colon:
                raise ValueError(f"example.groups: {pair!r} is not USER:GROUP")
            self._groups[user].append(f"Group:{group}")

    def build(self, context: AuthenticationContext) -> Sequence[str]:
        """Return the user first, whom logs name, then its groups."""
        if context.identity is None:
            return [ANONYMOUS]
        name = context.identity.name
        return [f"User:{name}", *self._groups.get(name, ())]
