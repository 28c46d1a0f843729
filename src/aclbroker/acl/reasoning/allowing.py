"""What would give somebody all rights that an activity needs, with as little as possible."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.acl.reasoning.compound import Need, parts
from aclbroker.acl.reasoning.explain import Change
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, matches


def relevant(rules: Rules, needs: Sequence[Need], names: Mapping[ResourceType, str]) -> Rules:
    """Return rules that decide the same on what is needed, with the ACLs alone that count."""
    asked = {(each.resource_type, names.get(each.resource_type, CLUSTER_NAME)) for each in needs}
    if any(each.unless_on_cluster is not None for each in needs):
        asked.add((ResourceType.CLUSTER, CLUSTER_NAME))
    any_topic = any(each.unless_write_anywhere for each in needs)
    return replace(
        rules,
        acls=[
            acl
            for acl in rules.acls
            if (any_topic and acl.resource_type == ResourceType.TOPIC)
            or any(matches(acl, *each) for each in asked)
        ],
    )


def smallest_change(
    rules: Rules,
    principal: str,
    host: str,
    needs: tuple[Need, ...],
    names: Mapping[ResourceType, str],
    *,
    from_anywhere: bool = False,
) -> Change | None:
    """Return ACLs to add and remove after which all is allowed that is needed.

    The arguments are those of `parts`. What is added are ALLOWs for the principal itself, on the
    very names and, unless ``from_anywhere``, for the host; what is removed are DENYs in the way.
    The authorizer has confirmed it, and that no part of it can be left out. None if nothing is
    missing, and where that does not help.
    """

    def suffices(change: Change) -> bool:
        found = parts(change.applied(rules), principal, host, needs, names)
        return all(part.is_allowed for part in found)

    found = parts(rules, principal, host, needs, names)
    missing = [part.request for part in found if not part.is_allowed]
    wanted = WILDCARD if from_anywhere else host
    change = Change(
        tuple(dict.fromkeys(_allowing(request, wanted) for request in missing)),
        tuple(dict.fromkeys(acl for request in missing for acl in _denying(rules, request))),
    )
    return _reduced(change, suffices) if missing and suffices(change) else None


def _allowing(request: Request, host: str) -> AclBinding:
    return AclBinding(
        request.resource_type,
        request.name or WILDCARD,
        PatternType.LITERAL,
        request.principal,
        host,
        request.operation,
        AclPermission.ALLOW,
    )


def _denying(rules: Rules, request: Request) -> Iterator[AclBinding]:
    """Yield the DENYs that hold for a request."""
    index = rules.on(request.resource_type, request.name).authorizer().index
    peer = rules.session(request.principal, request.host).peer
    for acl in index.bindings_for(peer, request.resource_type, request.name):
        if acl.permission == AclPermission.DENY and concerns(acl, request):
            yield acl


def _reduced(change: Change, suffices: Callable[[Change], bool]) -> Change:
    """Leave out of a change what it suffices without."""
    for acl in change.add:
        less = change._replace(add=tuple(each for each in change.add if each != acl))
        change = less if suffices(less) else change
    for acl in change.remove:
        less = change._replace(remove=tuple(each for each in change.remove if each != acl))
        change = less if suffices(less) else change
    return change


def concerns(acl: AclBinding, request: Request) -> bool:
    """Tell whether an ACL says something of the operation and the resource of a request."""
    named = GRANTED_BY if acl.permission == AclPermission.ALLOW else NAMED_BY
    says = bool(named[request.operation] >> acl.operation & 1)
    return says and matches(acl, request.resource_type, request.name)
