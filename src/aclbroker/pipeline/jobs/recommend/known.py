"""What the tasks of `recommend` know of clusters, beside the questions that they are given."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPermission,
    ResourceType,
)
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.pipeline.acls.by_principal import Grouped
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import as_java
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.replay.deciding import Rules


@dataclass
class Known:
    """The knowledge about clusters that every task has.

    ``current``: the current rules of clusters, where they are given. ``prefixes``: the options for
    PREFIXED ACLs; None to recommend none. ``names``: the existing resources; empty without
    ``prefixes``. ``hosts``: the hosts of the principals whose grants name hosts. ``doubted``: the
    ALLOWs that quarantined lines may have used; they stay, with all DENYs of the cluster.
    """

    current: Rules
    prefixes: PrefixOptions | None
    names: Mapping[str, Mapping[ResourceType, Collection[str]]]
    hosts: Mapping[str, Mapping[str, Collection[str]]]
    doubted: Mapping[str, Collection[AclBinding]] = field(default_factory=dict)
    _clusters: dict[str, ClusterRules] = field(default_factory=dict)

    def doubted_of_silent(self, name: str, seen: Collection[str]) -> list[AclBinding]:
        """Return the ``doubted`` ALLOWs of a cluster that no part contains.

        ``seen`` are the principals of the parts. No part contains the ALLOWs to ``User:*``.
        """
        cluster = self.cluster(name)
        if cluster is None or cluster.is_whole:
            return []
        others = {*seen} - {WILDCARD_PRINCIPAL}
        return [acl for acl in self.doubted.get(name, ()) if acl.principal not in others]

    def cluster(self, name: str) -> ClusterRules | None:
        """Return the rules of a cluster by whom they name, made once in a worker."""
        ruleset = self.current.ruleset(name)
        if ruleset is not None and name not in self._clusters:
            hosts = {each for of in self.hosts.get(name, {}).values() for each in of if each}
            self._clusters[name] = ClusterRules(ruleset, {as_java(each) for each in hosts})
        return self._clusters.get(name)


def denies_of(ruleset: Ruleset) -> list[AclBinding]:
    """Return the DENYs, by whose places tasks tell which are kept."""
    return [acl for acl in ruleset.acls if acl.permission is AclPermission.DENY]


class ClusterRules:
    """The current rules of a cluster, as parts of it need them."""

    def __init__(self, ruleset: Ruleset, hosts: Collection[str]) -> None:
        self.ruleset = ruleset
        self.denies = denies_of(ruleset)
        self.allows = Grouped(acl for acl in ruleset.acls if acl.permission is AclPermission.ALLOW)
        self._hosts = {*hosts, *(acl.host for acl in ruleset.acls)}
        self.cut = HostCut(self._hosts, ruleset.cidr)

    @cached_property
    def cut_by_subnets(self) -> HostCut:
        """The hosts cut as if those in CIDR notation were subnets, where they are not."""
        return HostCut(self._hosts, cidr=True)

    @property
    def is_whole(self) -> bool:
        """Whether all of the cluster is one part."""
        return self.ruleset.allow_everyone_if_no_acl_found

    def before(self, principals: Collection[str]) -> Ruleset:
        """Return all rules that can decide about some principals, with every DENY."""
        if self.is_whole:
            return self.ruleset
        allows = map(self.allows.of, {*principals, WILDCARD_PRINCIPAL})
        return self.ruleset.with_acls([*self.denies, *(acl for each in allows for acl in each)])

    def of(self, rules: Ruleset, principals: Collection[str]) -> Ruleset:
        """Return rules with the ACLs alone that name some principals, or everybody."""
        if self.is_whole:
            return rules
        named = {*principals, WILDCARD_PRINCIPAL}
        return rules.with_acls(acl for acl in rules.acls if acl.principal in named)
