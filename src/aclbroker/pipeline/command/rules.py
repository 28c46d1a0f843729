"""Puts the rules of each cluster together from files and options."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.broker_properties import BrokerSettings
from aclbroker.pipeline.acls.history import AclHistory
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.command.options import Given
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.wording import in_short
from aclbroker.terminal import shown


class AclSet(NamedTuple):
    """The ACLs of one file: ``cluster`` as the user gave it, ``named`` as the file says itself.

    The ``acls`` are in order and each is there once (see `ruleset.ordered`).
    """

    source: str
    acls: tuple[AclBinding, ...]
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

    def clusters(self) -> list[tuple[str, str | None]]:
        """Return the option of each value, and the cluster that it is for."""
        return [
            *(("--super-user", each.cluster) for each in self.super_users),
            *(("--broker-user", each.cluster) for each in self.broker_users),
            *(("--allow-everyone-if-no-acl-found", name) for name in self.open_clusters),
            *(("--properties", name) for name, _ in self.properties),
        ]


def check_known(
    given: Iterable[tuple[str, str | None]], clusters: Sequence[str], named: Collection[str] = ()
) -> None:
    """Raise InputError if a setting is for a cluster that nothing else knows.

    ``given``: options with the cluster of a value each. ``clusters``: those of the log. ``named``:
    those of which there are ACLs, though the log may hold nothing of them.
    """
    for option, name in given:
        if name is not None and name not in clusters and name not in named:
            raise InputError(
                f"{option} {name}: the log holds nothing of that cluster; it holds "
                f"{in_short(map(shown, clusters))}"
            )


def fitting(
    option: str, sets: Sequence[AclSet], clusters: Sequence[str]
) -> tuple[list[AclSet], list[str]]:
    """Return the sets that are of clusters in the log, and the clusters of the others.

    If none is, all are returned, so that `rulesets` says what is wrong: a fleet may well have a
    cluster without events, but who names a single one means one that the log is of.
    """
    names = [_named(option, each, clusters) for each in sets]
    has_fitting = any(name in clusters for name in names)
    fits, others = [], []
    for each, name in zip(sets, names, strict=True):
        # Beside one of a cluster of the log, what says to be of another is of another.
        name = name or (each.named if has_fitting else None)
        if name is None or name in clusters:
            fits.append(each)
        else:
            others.append(name)
    return (fits, sorted(set(others))) if fits else (list(sets), [])


def rulesets(
    option: str, sets: Sequence[AclSet], settings: Settings, clusters: Sequence[str]
) -> dict[str, Ruleset]:
    """Return the rules by cluster, or nothing if there are no sets.

    ``option`` is how the sets were given, for messages. Several sets of one cluster are added up; a
    cluster without any has no rules. Raises InputError if it is not clear which cluster a set is
    of.
    """
    found: dict[str, list[AclSet]] = {}
    for each in sets:
        found.setdefault(_cluster(option, each, clusters), []).append(each)
    return {name: replace(settings.of(name), acls=_together(each)) for name, each in found.items()}


def _together(sets: Sequence[AclSet]) -> tuple[AclBinding, ...]:
    """Return the ACLs of some sets in order, each once."""
    if len(sets) == 1:
        return sets[0].acls
    return ordered(acl for each in sets for acl in each.acls)


def histories_of(
    given: Sequence[tuple[Given, AclHistory]], settings: Settings, clusters: Sequence[str]
) -> tuple[dict[str, AclHistory], list[str]]:
    """Return the histories by cluster, under the settings, and clusters that the log has not.

    A store is of the cluster that it names itself, unless the user says another one. Raises
    InputError if none is of a cluster of the log, or several are of the same.
    """
    found: dict[str, AclHistory] = {}
    others = []
    for each, history in given:
        cluster = each.cluster or str(history.cluster)
        if cluster not in clusters:
            others.append(cluster)
        elif cluster in found:
            raise InputError(
                f"--history {each.value}: another one is of cluster {shown(cluster)}, too"
            )
        else:
            found[cluster] = history.under(settings.of(cluster))
    if others and not found:
        raise InputError(
            f"--history {given[0][0].value} is of cluster {shown(others[0])}, of which the log "
            f"holds nothing; the log is of {in_short(map(shown, clusters))}: write "
            "--history CLUSTER=sqlite:///FILE if they are the same"
        )
    return found, others


def existing(
    topics: Sequence[tuple[Given, frozenset[str]]], clusters: Sequence[str]
) -> dict[str, dict[ResourceType, frozenset[str]]]:
    """Return the topics of each cluster, for `Inputs.names`. Raises InputError."""
    found: dict[str, frozenset[str]] = {}
    for given, names in topics:
        cluster = _cluster("--topics", AclSet(given.value, (), given.cluster), clusters)
        found[cluster] = found.get(cluster, frozenset()) | names
    return {cluster: {ResourceType.TOPIC: names} for cluster, names in found.items()}


def _named(option: str, acls: AclSet, clusters: Sequence[str]) -> str | None:
    """The cluster that a set is said to be of."""
    if acls.cluster is None and acls.named in clusters:
        return acls.named
    # The other set of a comparison may well be of another cluster, and say so.
    return acls.cluster or (None if option == "--other" else acls.named)


def _cluster(option: str, acls: AclSet, clusters: Sequence[str]) -> str:
    named = _named(option, acls, clusters)
    if named in clusters:
        return str(named)
    if named is None and len(clusters) == 1:
        return clusters[0]
    problem = (
        f"is of cluster {shown(named)}, of which the log holds nothing"
        if named
        else "does not say which cluster it is of"
    )
    raise InputError(
        f"{option} {acls.source} {problem}; the log is of {in_short(map(shown, clusters))}: write "
        f"{option} CLUSTER=FILE"
    )
