"""Which DENYs hold for anything that is allowed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.acl.reasoning.lint.scopes import Pattern, Scope, is_named_user, said_by
from aclbroker.acl.reasoning.lint.standing import Standing

_ANYBODY = "anybody"
_UNKNOWN = "others"

_Place = tuple[Pattern, bool, str, int, bool]
"""A pattern and a host that an ALLOW has, or that hold (False) its own, and for whom it is."""


class Allowed:
    """What ALLOWs allow, by the scopes where they hold and by those around these.

    Principals that are no single user's, such as groups, may come together with any other in a
    session: the rules do not know all members.
    """

    def __init__(self, standing: Standing, denies: Iterable[AclBinding]) -> None:
        self._standing = standing
        self._asked = {standing.scopes[acl].pattern for acl in denies}
        self._at: dict[_Place, int] = {}
        for acl, scope in standing.scopes.items() if self._asked else ():
            if acl.permission == AclPermission.ALLOW:
                for place in self._places(scope):
                    self._at[place] = self._at.get(place, 0) | said_by(acl)

    def _places(self, scope: Scope) -> Iterator[_Place]:
        """Yield where an ALLOW holds, and the scopes around that a DENY has."""
        pattern, principal, own = scope
        whom = principal if is_named_user(principal) else _UNKNOWN
        outer = [each for each in self._standing.patterns(pattern) if each in self._asked]
        patterns = [(pattern, True), *((each, False) for each in outer if each != pattern)]
        for host in self._standing.hosts.around(own):
            for each, is_own in patterns:
                yield each, is_own, whom, host, host == own
                yield each, is_own, _ANYBODY, host, host == own

    def overlaps(self, deny: AclBinding) -> bool:
        """Tell whether a DENY holds for something that any ALLOW allows."""
        pattern, principal, own = self._standing.scopes[deny]
        said = said_by(deny)
        whom = (principal, _UNKNOWN) if is_named_user(principal) else (_ANYBODY,)
        patterns = [(each, True) for each in self._standing.patterns(pattern)]
        hosts = [(each, True) for each in self._standing.hosts.around(own)]
        return any(
            self._at.get((*each, who, *host), 0) & said
            for each in (*patterns, (pattern, False))
            for who in whom
            for host in (*hosts, (own, False))
        )
