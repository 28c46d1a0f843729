"""Why one request is decided as it is, what nearly decided otherwise, and what would turn it."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from itertools import islice
from typing import Final, NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, Action, RuleKind
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY, NAMED_BY
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, matches
from aclbroker.acl.reasons import (
    OF_ANY_TOPIC,
    AclChange,
    NearMiss,
    other_host,
    other_operation,
    smallest_acl,
    to_be_allowed,
)

_MOST_SHOWN: Final = 5
_SIMILAR: Final = 0.8


class Change(NamedTuple):
    """ACLs to add and remove, and who is to be a super user no more, which turns a decision."""

    add: tuple[AclBinding, ...] = ()
    remove: tuple[AclBinding, ...] = ()
    super_user: str | None = None

    def applied(self, rules: Rules) -> Rules:
        """Return the rules after the change."""
        removed = set(self.remove)
        return replace(
            rules,
            acls=[*(acl for acl in rules.acls if acl not in removed), *self.add],
            super_users=rules.super_users - {self.super_user},
        )

    def __str__(self) -> str:
        change = str(AclChange(self.add, self.remove))
        if self.super_user is None:
            return change
        return "; ".join(filter(None, (f"no longer a super user: {self.super_user}", change)))


class Explanation(NamedTuple):
    """A decision: what decided, the ACLs that match, and what nearly allows what none allows.

    ``change`` is the smallest one that turns the decision, as the authorizer confirms; None if
    nothing but several changes together do. ``would_do`` says in its place what would be enough for
    who is denied WRITE on any topic.
    """

    request: Request
    is_allowed: bool
    kind: RuleKind
    acl: AclBinding | None
    matching: tuple[AclBinding, ...]
    near_misses: tuple[NearMiss, ...]
    change: Change | None
    would_do: str | None = None


def explain(rules: Rules, request: Request, *, from_anywhere: bool = False) -> Explanation:
    """Explain the decision on a request. Raises ValueError for a host that is no address.

    With ``from_anywhere`` an ACL that would turn the decision is one for all hosts, else one for
    the request's own. A request to WRITE the topic `ANY_RESOURCE` is one for which any topic does.
    """
    if not HostCut((), rules.cidr).at(request.host):
        raise ValueError(f"{request.host!r} is no address, and so no peer's")
    if request[2:] == _ANY_TOPIC:
        return _of_any(rules, request)
    here = rules.on(request.resource_type, request.name)
    authorizer = here.authorizer()
    session = here.session(request.principal, request.host)
    decision = authorizer.decide(session, Action(*request[2:]))
    kind, acl = decision.rule
    about = session.peer, request.resource_type, request.name
    found = authorizer.index.bindings_for(*about)
    # Those of a principal that stands twice in a session, as User:* does, are found twice.
    matching = tuple(dict.fromkeys(acl for acl in found if _decides(acl, request.operation)))
    host = WILDCARD if from_anywhere else session.address
    # Where a DENY decides, no ALLOW would do, however near it comes.
    near = tuple(_near_misses(rules, request)) if kind is RuleKind.DEFAULT_DENY else ()
    change = next(
        (
            each
            for each in _changes(here, request, matching, host)
            if request.is_allowed(each.applied(here)) is not decision.allowed
        ),
        None,
    )
    return Explanation(request, decision.allowed, kind, acl, matching, near, change)


_ANY_TOPIC: Final = (AclOperation.WRITE, ResourceType.TOPIC, ANY_RESOURCE)


def _of_any(rules: Rules, request: Request) -> Explanation:
    """Explain the decision on any topic, which an idempotent producer asks for (KIP-679)."""
    authorizer = rules.authorizer()
    session = rules.session(request.principal, request.host)
    asked = request.operation, request.resource_type
    decision = authorizer.authorize_by_resource_type(session, *asked)
    kind, acl = decision.rule
    is_default = kind is RuleKind.DEFAULT_DENY
    near = authorizer.index.near_misses(session.peer, *asked, None) if is_default else ()
    would_do = OF_ANY_TOPIC if is_default else None
    matching = () if acl is None else (acl,)
    return Explanation(request, decision.allowed, kind, acl, matching, tuple(near), None, would_do)


def _changes(
    rules: Rules, request: Request, matching: Collection[AclBinding], host: str
) -> Iterator[Change]:
    """Yield changes that may turn the decision, smaller ones first."""
    operation, is_allowed = request.operation, request.is_allowed(rules)
    supers = rules.super_users.intersection(rules.principals_of(request.principal))
    for principal in sorted(supers):
        yield Change(super_user=principal)
    denials = tuple(a for a in matching if _says(a, AclPermission.DENY, NAMED_BY[operation]))
    grants = tuple(a for a in matching if _says(a, AclPermission.ALLOW, GRANTED_BY[operation]))
    permission = AclPermission.DENY if is_allowed else AclPermission.ALLOW
    resource = request.resource_type, request.name
    own = smallest_acl(request.principal, host, operation, resource, permission)
    if is_allowed:
        if len(grants) == 1:
            yield Change(remove=grants)
        yield Change(add=(own,))
        for principal in sorted(supers):
            yield Change(add=(own,), super_user=principal)
    else:
        if denials:
            yield Change(remove=denials)
        yield Change(*to_be_allowed(own, denials, is_granted=False))


def _decides(acl: AclBinding, operation: AclOperation) -> bool:
    """Tell whether an ACL of the resource says anything about an operation."""
    named = GRANTED_BY if acl.permission is AclPermission.ALLOW else NAMED_BY
    return bool(named[operation] >> acl.operation & 1)


def _says(acl: AclBinding, permission: AclPermission, operations: int) -> bool:
    return acl.permission == permission and bool(operations >> acl.operation & 1)


def _near_misses(rules: Rules, request: Request) -> Iterator[NearMiss]:
    """Yield ALLOWs that differ in one thing alone from one that would allow the request."""
    found: list[tuple[int, NearMiss]] = []
    principals = {*rules.principals_of(request.principal), WILDCARD_PRINCIPAL}
    folded = {each.casefold() for each in principals}
    granting = GRANTED_BY[request.operation]
    cut = HostCut(
        {acl.host for acl in rules.acls if acl.principal.casefold() in folded}, rules.cidr
    )
    at = cut.at(request.host)
    for acl in rules.acls:
        if acl.permission != AclPermission.ALLOW or acl.principal.casefold() not in folded:
            continue
        reasons = [
            (3, None if acl.principal in principals else f"it is for {acl.principal}"),
            (0, None if cut.mask(acl.host, rules.cidr) & at else other_host(acl)),
            (1, None if granting >> acl.operation & 1 else other_operation(acl)),
            (2, _other_name(acl, request)),
        ]
        given = [(rank, reason) for rank, reason in reasons if reason is not None]
        if len(given) == 1 and given[0][1]:
            found.append((given[0][0], NearMiss(acl, given[0][1])))
    found.sort(key=lambda each: (each[0], each[1].acl))
    yield from islice((near for _, near in found), _MOST_SHOWN)


def _other_name(acl: AclBinding, request: Request) -> str | None:
    """Tell how a pattern nearly has the name: None if it has it, an empty text if not nearly."""
    if matches(acl, request.resource_type, request.name):
        return None
    name, asked = acl.resource_name, request.name
    if acl.resource_type != request.resource_type:
        is_same = name == asked
        return f"it is for the {acl.resource_type.name} of this name" if is_same else ""
    if name.strip() == asked and name != asked:
        return f"its name has blanks around it: {name!r}"
    if acl.pattern_type is PatternType.LITERAL:
        if name.endswith("*") and asked.startswith(name[:-1]):
            return f"it is LITERAL {name}, which is no prefix; PREFIXED {name[:-1]} would match"
        if asked.startswith(name):
            return f"it is LITERAL {name}; PREFIXED {name} would match"
    if name.casefold() == asked.casefold():
        return f"it is for {name}, in other letters"
    start = asked[: len(name)] if acl.pattern_type is PatternType.PREFIXED else asked
    if SequenceMatcher(None, name, start).ratio() >= _SIMILAR:
        return f"it is for {acl.pattern_type.name} {name}"
    return ""
