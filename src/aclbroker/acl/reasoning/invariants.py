"""Statements that must be true of a set of rules, and the requests that show that they are not.

Super users may do everything by the settings, not by ACLs: statements about nobody and whoever are
about all others.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    ResourceType,
)
from aclbroker.acl.reasoning.asked import Asked, Found, Place
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT, Key, NameRegion
from aclbroker.acl.reasoning.possible import is_possible
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.regions import Principals, Region, Request
from aclbroker.acl.reasoning.rules import matches


class Resources(NamedTuple):
    """The resources of a type that have a name, or names that begin alike."""

    resource_type: ResourceType
    key: Key


@dataclass(frozen=True)
class NobodyBut:
    """Nobody but the principals may do any of the operations on any of the resources.

    A principal of a group stands for all who have it.
    """

    principals: tuple[str, ...]
    operations: tuple[AclOperation, ...]
    resources: Resources
    host: str | None = None


@dataclass(frozen=True)
class May:
    """A principal may do all of the operations on every one of the resources, or on some."""

    principal: str
    operations: tuple[AclOperation, ...]
    resources: Resources
    on_every: bool = True
    host: str | None = None


@dataclass(frozen=True)
class NoAllow:
    """No ALLOW names the principal on any of the resources, on any resource at all if None."""

    principal: str
    resources: Resources | None


@dataclass(frozen=True)
class WhoeverMay:
    """Who may do the operations on some of the first resources may do others on the second."""

    operations: tuple[AclOperation, ...]
    resources: Resources
    implied: May
    """Its principal does not count."""

    host: str | None = None


Invariant = NobodyBut | May | NoAllow | WhoeverMay


class Counterexample(NamedTuple):
    """A request that shows that a statement is false, and how it is decided; or an ACL."""

    request: Request | None
    is_allowed: bool = False
    acl: AclBinding | None = None


def counterexample(reasoner: Reasoner, invariant: Invariant) -> Counterexample | None:
    """Return what shows that a statement is false; None if it is true of all requests.

    Requests are of names that resources can have. Raises ValueError for a statement about topics of
    which there can be none, for an operation that the resource type does not have, and for a host
    that is no address.
    """
    if isinstance(invariant, NoAllow):
        return next(_of_no_allow(reasoner, invariant), None)
    reasoner = reasoner.of_possible()
    _check_possible(invariant.resources)
    if isinstance(invariant, NobodyBut):
        return next(_of_nobody(reasoner, invariant), None)
    if isinstance(invariant, May):
        return next(_of_may(reasoner, invariant), None)
    _check_possible(invariant.implied.resources)
    return next(_of_whoever(reasoner, invariant), None)


def _check_possible(resources: Resources) -> None:
    if not is_possible(*resources):
        name, kind = resources.key
        can = "be called" if kind == LITERAL else "have a name that begins with"
        raise ValueError(
            f"no topic can {can} {name!r}: names of topics have 1 to 249 letters, digits, dots, "
            "underscores and hyphens"
        )


def _possible(places: Iterator[Place]) -> Place | None:
    """Return the first place with a name that a resource can have."""
    return next((place for place in places if place[1].is_possible), None)


def _of_nobody(reasoner: Reasoner, invariant: NobodyBut) -> Iterator[Counterexample]:
    for operation in invariant.operations:
        asked = reasoner.asked(operation, *invariant.resources, invariant.host)
        candidates = [each for each in asked.candidates() if asked.may_ever(each)]
        for principal, found in _everybody(asked, candidates):
            if not found.on_some or _is_exempt(reasoner, principal, invariant.principals):
                continue
            where = _possible(asked.places(found))
            if where is not None:
                region = _region(reasoner, principal, operation, where)
                yield _shown(reasoner, region, invariant.host, is_allowed=True)


def _everybody(asked: Asked, principals: list[str]) -> Iterator[tuple[str | None, Found]]:
    """Yield what was found out of principals, and of everyone else, who is None."""
    for principal in principals:
        yield principal, asked.of_principal(principal)
    yield None, asked.of_everyone()


def _is_exempt(reasoner: Reasoner, principal: str | None, names: tuple[str, ...]) -> bool:
    rules = reasoner.rules
    if principal is None:
        return False
    own = rules.principals_of(principal)
    return rules.is_super_user(principal) or any(each in names for each in own)


def _of_may(reasoner: Reasoner, invariant: May) -> Iterator[Counterexample]:
    for operation in invariant.operations:
        asked = reasoner.asked(operation, *invariant.resources, invariant.host)
        found = asked.of_principal(invariant.principal)
        lacking = asked.hosts & ~_on(asked, found, on_every=invariant.on_every)
        where = _possible(asked.places_not(found, lacking)) if lacking else None
        if where is not None:
            region = _region(reasoner, invariant.principal, operation, where)
            yield _shown(reasoner, region, invariant.host, is_allowed=False)


def _of_whoever(reasoner: Reasoner, invariant: WhoeverMay) -> Iterator[Counterexample]:
    implied = invariant.implied
    first = [
        reasoner.asked(each, *invariant.resources, invariant.host) for each in invariant.operations
    ]
    for operation in implied.operations:
        asked = reasoner.asked(operation, *implied.resources, invariant.host)
        candidates = set(asked.candidates()).union(*(each.candidates() for each in first))
        for principal, found in _everybody(asked, sorted(candidates)):
            hosts = asked.hosts & ~_on(asked, found, on_every=implied.on_every)
            for each in first:
                also = each.of_everyone() if principal is None else each.of_principal(principal)
                hosts &= each.on_possible(also)
            where = _possible(asked.places_not(found, hosts)) if hosts else None
            if where is not None:
                region = _region(reasoner, principal, operation, where)
                yield _shown(reasoner, region, invariant.host, is_allowed=False)


def _on(asked: Asked, found: Found, *, on_every: bool) -> int:
    """Return the hosts from which it may be done on every name, or on some that can be."""
    return found.on_all if on_every else asked.on_possible(found)


def _of_no_allow(reasoner: Reasoner, invariant: NoAllow) -> Iterator[Counterexample]:
    for acl in reasoner.allows_of(invariant.principal):
        if _overlaps(acl, invariant.resources):
            yield Counterexample(None, acl=acl)


def _overlaps(acl: AclBinding, resources: Resources | None) -> bool:
    """Tell whether a resource can be of the ACL's pattern and of the others."""
    if resources is None:
        return True
    resource_type, key = resources
    if acl.resource_type != resource_type:
        return False
    if resource_type is ResourceType.CLUSTER or key == ROOT:
        return True
    if matches(acl, resource_type, key[0]):
        return True
    return key[1] == PREFIX and acl.resource_name.startswith(key[0])


def _region(
    reasoner: Reasoner,
    principal: str | None,
    operation: AclOperation,
    where: tuple[int, NameRegion],
) -> Region:
    mask, names = where
    principals = Principals(() if principal is None else (principal,), principal is None)
    return Region(principals, reasoner.cut, mask, 1 << operation, names)


def _shown(
    reasoner: Reasoner, region: Region, host: str | None, *, is_allowed: bool
) -> Counterexample:
    example = region.request(reasoner.named())
    return Counterexample(example if host is None else example._replace(host=host), is_allowed)
