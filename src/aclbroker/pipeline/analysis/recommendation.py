"""From what was used to the ACLs that are recommended for one cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from aclbroker.acl.bindings import AclBinding, AclPermission, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.choosing import Choosing
from aclbroker.pipeline.analysis.idle import without_idle
from aclbroker.pipeline.analysis.least_privilege import (
    NeededGrants,
    Principals,
    SessionUse,
    bound_to_hosts,
)
from aclbroker.pipeline.analysis.prefixes import Candidate, PrefixOptions, candidates, consolidated
from aclbroker.pipeline.analysis.safeguards import safeguards


@dataclass(frozen=True, slots=True)
class Evidence:
    """What the log tells of a cluster.

    ``sessions``: the principals of every session, allowed something or not. ``names``: the
    resources that exist. ``hosts``: the hosts of those principals whose grants are to name them.
    """

    uses: Sequence[SessionUse]
    sessions: Collection[Principals]
    names: Mapping[ResourceType, Collection[str]]
    hosts: Mapping[str, Collection[str]]


class Draft:
    """The grants for single resources, and the prefixes that could stand for some of them.

    ``rules``: those of now; None if they are not known. ``options``: None for no prefixes.
    """

    def __init__(
        self, evidence: Evidence, rules: Ruleset | None, options: PrefixOptions | None
    ) -> None:
        self._rules = rules or Ruleset()
        self._evidence = evidence
        self._options = options
        self._choosing = Choosing(evidence.uses, rules)
        self.grants: NeededGrants = bound_to_hosts(self._choosing.needed(), evidence.hosts)
        found = candidates(self.grants, evidence.names, options) if options is not None else ()
        self.considered: Sequence[Candidate] = list(found)

    @property
    def affordable(self) -> list[Candidate]:
        """The considered prefixes whose price is not too high."""
        if self._options is None:
            return []
        return [each for each in self.considered if each.price <= self._options.maximum_price]

    def widest(self) -> Ruleset:
        """Return rules with all affordable prefixes, to see which of them allow what is denied.

        All current DENYs are among them, because those that matter will be kept.
        """
        denies = (acl for acl in self._rules.acls if acl.permission is AclPermission.DENY)
        return self._rules.with_acls(
            [*self.grants.bindings(), *(each.acl for each in self.affordable), *denies]
        )

    def rules(self, forbidden: Collection[AclBinding]) -> Ruleset:
        """Return the recommended rules, without the prefixes that are ``forbidden``."""
        acceptable = [each for each in self.affordable if each.acl not in forbidden]
        grants = consolidated(self.grants, acceptable)
        guards = safeguards(grants.bindings(), self._rules)
        closing = [acl for acl in guards if acl.permission is AclPermission.ALLOW]
        # Where hosts are named, who came from where is known of principals, not of each use.
        if (acceptable or closing) and not self._evidence.hosts:
            grants = self._choosing.fewest(grants, closing)
        together = self._rules.with_acls([*grants.bindings(), *guards])
        return without_idle(together, self._evidence.sessions)


def why_not(
    candidate: Candidate,
    taken: Collection[AclBinding],
    forbidden: Collection[AclBinding],
    maximum_price: int,
) -> str | None:
    """Return why a prefix that was considered is not recommended; None if it is."""
    if candidate.acl in taken:
        return None
    if candidate.price > maximum_price:
        return f"its price is above {maximum_price}"
    if candidate.acl in forbidden:
        return "something denied would become allowed"
    return "another prefix allows the same"
