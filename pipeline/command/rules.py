"""Puts the rules of each cluster together from files and options."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from aclbroker.broker.acl.bindings import AclBinding, ResourceType
from aclbroker.broker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.broker_properties import BrokerSettings
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.command.options import Given
from aclbroker.pipeline.errors import InputError


class AclSet(NamedTuple):
    """The ACLs of one file: ``cluster`` as the user gave it, ``named`` as the file says itself."""

    source: str
    acls: Sequence[AclBinding]
    cluster: str | None = None
    named: str | None = None


class Settings(NamedTuple):
    """What decides beside the ACLs: options, and the settings of properties files."""

    super_users: Sequence[Given] = ()
    broker_users: Sequence[Given] = ()
    broker_listener: str | None = None
    open_clusters: Sequence[str | None] = ()
    cidr: bool = False
    properties: Sequence[tuple[str | None, BrokerSettings]] = ()

    def of(self, cluster: str) -> Ruleset:
        """Return the rules of a cluster without ACLs."""

        def values(given: Iterable[Given]) -> frozenset[str]:
            return frozenset(each.value for each in given if each.cluster in (None, cluster))

        files = [each for name, each in self.properties if name in (None, cluster)]
        listeners = [each.broker_listener for each in files if each.broker_users]
        listener = self.broker_listener or (listeners[-1] if listeners else "")
        broker_users = values(self.broker_users).union(*(each.broker_users for each in files))
        return Ruleset(
            super_users=values(self.super_users).union(*(each.super_users for each in files)),
            broker_users=BrokerUsers(broker_users, listener) if broker_users else BrokerUsers(),
            allow_everyone_if_no_acl_found=(
                any(name in (None, cluster) for name in self.open_clusters)
                or any(each.allow_everyone_if_no_acl_found for each in files)
            ),
            cidr=self.cidr or any(each.cidr for each in files),
        )

    def check(self, clusters: Sequence[str]) -> None:
        """Raise InputError if a setting names a cluster of which the log holds nothing."""
        options: Mapping[str, Iterable[str | None]] = {
            "--super-user": (each.cluster for each in self.super_users),
            "--broker-user": (each.cluster for each in self.broker_users),
            "--allow-everyone-if-no-acl-found": self.open_clusters,
            "--properties": (name for name, _ in self.properties),
        }
        for option, names in options.items():
            for name in names:
                if name is not None and name not in clusters:
                    raise InputError(
                        f"{option} {name}: the log holds nothing of that cluster; it holds "
                        f"{_listed(clusters)}"
                    )


def rulesets(
    option: str, sets: Sequence[AclSet], settings: Settings, clusters: Sequence[str]
) -> dict[str, Ruleset]:
    """Return the rules by cluster, or nothing if there are no sets.

    ``option`` is how the sets were given, for messages. Several sets of one cluster are added up; a
    cluster without any has no rules. Raises InputError if it is not clear which cluster a set is
    of.
    """
    found: dict[str, list[AclBinding]] = {}
    for each in sets:
        found.setdefault(_cluster(option, each, clusters), []).extend(each.acls)
    return {name: settings.of(name).with_acls(ordered(acls)) for name, acls in found.items()}


def existing(
    topics: Sequence[tuple[Given, frozenset[str]]], clusters: Sequence[str]
) -> dict[str, dict[ResourceType, frozenset[str]]]:
    """Return the topics of each cluster, for `Inputs.names`. Raises InputError."""
    found: dict[str, frozenset[str]] = {}
    for given, names in topics:
        cluster = _cluster("--topics", AclSet(given.value, (), given.cluster), clusters)
        found[cluster] = found.get(cluster, frozenset()) | names
    return {cluster: {ResourceType.TOPIC: names} for cluster, names in found.items()}


def _cluster(option: str, acls: AclSet, clusters: Sequence[str]) -> str:
    if acls.cluster in clusters:
        return str(acls.cluster)
    if acls.cluster is None and acls.named in clusters:
        return str(acls.named)
    # The other set of a comparison may well be of another cluster, and say so.
    named = acls.cluster or (None if option == "--other" else acls.named)
    if named is None and len(clusters) == 1:
        return clusters[0]
    problem = (
        f"is of cluster {named}, of which the log holds nothing"
        if named
        else "does not say which cluster it is of"
    )
    raise InputError(
        f"{option} {acls.source} {problem}; the log is of {_listed(clusters)}: write "
        f"{option} CLUSTER=FILE"
    )


def _listed(clusters: Iterable[str]) -> str:
    return ", ".join(clusters)
