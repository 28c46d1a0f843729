"""Which hosts ACLs tell apart: those that an ACL names, and the subnets around the others."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter
from typing import Final

from aclbroker.acl.bindings import WILDCARD
from aclbroker.acl.hosts import Subnet, canonical, enclosing_subnets, subnet, without_zone
from aclbroker.pipeline.acls.ruleset import Ruleset

_HOST: Final = attrgetter("host")
_LINK_LOCAL: Final = ("fe8", "fe9", "fea", "feb")

ANY_HOST: Final = "any"
"""What a report shows for hosts that no ACL names."""


class Hosts:
    """Parts hosts into classes: no ACL of some rules tells two hosts of one class apart.

    A host that an ACL names, with its zone or without, is a class by that name. The class of any
    other host is the smallest subnet of an ACL that contains it, and None if there is none.
    """

    def __init__(self, rules: Iterable[Ruleset]) -> None:
        self.named: set[str] = set()
        self._subnets: dict[Subnet, str] = {}
        # Sets of rules name mostly the same hosts, and to bring one to its form takes a while.
        hosts: dict[bool, set[str]] = {False: set(), True: set()}
        for ruleset in rules:
            hosts[ruleset.cidr].update(map(_HOST, ruleset.acls))
        for cidr, each in hosts.items():
            for host in each - {WILDCARD}:
                found = subnet(host) if cidr else None
                if found is None:
                    self.named.add(canonical(host))
                else:
                    self._subnets[found] = host
        is_link_local = any(host.startswith(_LINK_LOCAL) for host in self.named)
        self.has_subnets = bool(self._subnets) or is_link_local
        """Whether `class_of` must be asked: else a host is in `named`, or its class is None.

        It must be asked for link-local addresses, too: one that an ACL names without a zone is
        meant with each zone.
        """

    def class_of(self, host: str | None) -> str | None:
        """Return the class of a host in canonical form, None of one that was not logged."""
        if host is None:
            return None
        for each in (host, without_zone(host)):
            if each in self.named:
                return each
        found = enclosing_subnets(host, {each.size for each in self._subnets})
        around = [each for each in found if each in self._subnets]
        if not around:
            return None
        return self._subnets[max(around, key=lambda each: each.size.prefix_length)]
