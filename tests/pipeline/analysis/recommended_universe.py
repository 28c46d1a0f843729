"""A small world around a proposal: every request at its edges, decided by the broker's authorizer.

Every session, host, operation and name near the ACLs is asked, so that a case can be held to what
it opens and closes without believing the reasoning that made it.
"""

from collections.abc import Collection, Iterable, Iterator
from itertools import product
from typing import NamedTuple

from aclbroker.broker.acl.authorizer import Session
from aclbroker.broker.acl.bindings import (
    CLUSTER_NAME,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.broker.acl.hosts import subnet
from aclbroker.broker.reasoning.regions import Request
from aclbroker.broker.reasoning.rules import operations_of
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import SessionUse
from aclbroker.pipeline.analysis.opened import Opened, name_of_session
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence

NOBODY = "User:nobody"
ELSEWHERE = "203.0.113.9"


class Asked(NamedTuple):
    """One request of a session."""

    principals: tuple[str, ...]
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str


def asked(principals: str, operation: str, resource: str, host: str = ELSEWHERE) -> Asked:
    """A request written ``User:a Group:g``, ``READ``, ``topic t``."""
    kind, name = resource.split()
    session = tuple(principals.split())
    return Asked(session, host, AclOperation[operation], ResourceType[kind.upper()], name)


def universe(
    *sets: Ruleset, sessions: Iterable[tuple[str, ...]] = (), hosts: Iterable[str] = ()
) -> list[Asked]:
    """Every request near some sets of rules: of their principals alone and with each group."""
    acls = {acl for each in sets for acl in each.acls}
    principals = {NOBODY, *(acl.principal for acl in acls)} - {"User:*"}
    principals |= {each for session in sessions for each in session}
    principals |= {each for rules in sets for each in rules.super_users}
    groups = {each for each in principals if not each.startswith("User:")}
    alone = {(each,) for each in principals}
    members = set(product(principals - groups, groups))
    peers = {ELSEWHERE, *hosts, *(peer for acl in acls for peer in _peers(acl.host))}
    return [
        Asked(session, peer, operation, kind, name)
        for kind in {acl.resource_type for acl in acls}
        for name in _names(kind, acls)
        for session in sorted(alone | members | set(sessions))
        for peer in sorted(peers)
        for operation in operations_of(kind)
    ]


def _peers(host: str) -> Iterator[str]:
    """An address that a host matches; of a subnet one, which no other ACL is likely to name."""
    if subnet(host) is not None:
        yield f"{host.rpartition('.')[0]}.77" if "." in host else ELSEWHERE
    elif host != "*":
        yield host


def _names(kind: ResourceType, acls: Iterable[AclBinding]) -> list[str]:
    """Each name, one that begins with it, one that it begins with, and one that is far away."""
    if kind is ResourceType.CLUSTER:
        return [CLUSTER_NAME]
    known = {acl.resource_name for acl in acls if acl.resource_type is kind}
    near = {f"{each}x" for each in known} | {each[:-1] for each in known}
    return sorted({"zz", *known, *near} - {""})


def allowed(rules: Ruleset, requests: Collection[Asked]) -> set[Asked]:
    """Those of some requests that rules allow."""
    core = rules.authorizer()
    together: dict[tuple[tuple[str, ...], str, AclOperation, ResourceType], list[str]] = {}
    for each in requests:
        together.setdefault(each[:4], []).append(each.name)
    found: set[Asked] = set()
    for (principals, host, operation, kind), names in together.items():
        session = Session(principals, host, "PLAINTEXT")
        decisions = core.authorize(session, operation, kind, names)
        for name, decision in zip(names, decisions, strict=True):
            if decision.allowed:
                found.add(Asked(principals, host, operation, kind, name))
    return found


def proposal(
    rules: Ruleset, log: Collection[Asked], prefixes: PrefixOptions | None = None
) -> Ruleset:
    """What is recommended for a log, of which the rules allow all."""
    return draft(rules, log, prefixes).rules(())


def draft(
    rules: Ruleset | None, log: Collection[Asked], prefixes: PrefixOptions | None = None
) -> Draft:
    """What is recommended for a log, before prefixes are chosen."""
    names: dict[ResourceType, set[str]] = {}
    for each in log:
        names.setdefault(each.resource_type, set()).add(each.name)
    uses = [SessionUse(*each[:4], (each.name,)) for each in log]
    sessions = {each.principals for each in log}
    return Draft(Evidence(uses, sessions, names, {}), rules, prefixes)


def without_one(rules: Ruleset) -> Iterator[Ruleset]:
    """The rules without one of their ALLOWs, for each of these."""
    for acl in rules.acls:
        if acl.permission is AclPermission.ALLOW:
            yield rules.with_acls(set(rules.acls) - {acl})


def changes_of(found: Opened, request: Asked) -> list[bool]:
    """For each region of changed rights that has a request, whether it is opened."""
    one = Request(name_of_session(request.principals), *request[1:])
    return [each.is_opened for each in found.changes if one in each.region]
