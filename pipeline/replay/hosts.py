"""Which hosts ACLs tell apart: those that an ACL names, and the subnets around the others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from aclbroker.broker.acl.bindings import WILDCARD
from aclbroker.broker.acl.hosts import Subnet, canonical, enclosing_subnets, subnet
from aclbroker.pipeline.acls.ruleset import Ruleset

ANY_HOST: Final = "any"
"""What a report shows for hosts that no ACL names."""


class Hosts:
    """Parts hosts into classes: no ACL of some rules tells two hosts of one class apart.

    A host that an ACL names is a class by itself. The class of any other host is the smallest
    subnet of an ACL that contains it, and None if there is none.
    """

    def __init__(self, rules: Iterable[Ruleset]) -> None:
        self.named: set[str] = set()
        self._subnets: dict[Subnet, str] = {}
        for ruleset in rules:
            for host in {acl.host for acl in ruleset.acls} - {WILDCARD}:
                found = subnet(host) if ruleset.cidr else None
                if found is None:
                    self.named.add(canonical(host))
                else:
                    self._subnets[found] = host

    @property
    def has_subnets(self) -> bool:
        """Whether `class_of` must be asked: without subnets, a host is in `named` or it is None."""
        return bool(self._subnets)

    def class_of(self, host: str) -> str | None:
        """Return the class of a host in canonical form."""
        if host in self.named:
            return host
        found = enclosing_subnets(host, {each.size for each in self._subnets})
        around = [each for each in found if each in self._subnets]
        if not around:
            return None
        return self._subnets[max(around, key=lambda each: each.size.prefix_length)]
