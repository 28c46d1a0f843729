"""Chooses the fewest of the grants that are possible, so that everything that was used is allowed.

Most uses are of one principal that may do so from everywhere: its grant is needed, unless another
operation on that name implies it. Several grants may allow one use where one is from some hosts
alone, where a session has several principals, and where names lie in a prefix. There all uses are
gone through, and the grants are a cover of them (`pipeline.analysis.cover`).

What was asked of any topic (`pipeline.analysis.any_topic`) is mostly allowed by the grants for the
topics that were used. Where it is not, it is one use more, which a current ALLOW may be kept for.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Final

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    PatternType,
    ResourceType,
)
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.acl.reasoning.lint.scopes import said_by
from aclbroker.acl.reasoning.names import PREFIX, key_of
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.any_topic import ARBITRARY, AnyTopic, parted
from aclbroker.pipeline.analysis.cover import Cost, least_cover
from aclbroker.pipeline.analysis.least_privilege import (
    FOR_EVERYONE,
    LISTENER,
    NOT_ALLOWED,
    Grantee,
    NeededGrants,
    SessionUse,
    Unmet,
    allowing,
    minimized,
    no_host_of,
    operations_of,
    possible,
)
from aclbroker.pipeline.analysis.proof import Reading, as_given, host_breadth, is_overlooked

_TOPIC: Final = ResourceType.TOPIC
_LONGEST_NAME: Final = 1 << 16
_DEAR: Final = 1 << 32
_ON_NONE: Final = "it used no topic that would allow it, and the current ACLs are not given"

_Alternatives = frozenset[AclBinding]
"""The grants of which any one allows a use."""


def needed(uses: Iterable[SessionUse], rules: Ruleset | None) -> NeededGrants:
    """Return the fewest ACLs on single resources that allow the uses.

    ``rules``: those that allow the uses now; None if they are not known, and then nothing limits
    the grants. Of as many, those are taken that name the first principal of a session, and that
    are from all hosts.
    """
    return Choosing(uses, rules).needed()


class Choosing:
    """The uses that grants are chosen for. ``rules`` allow them; None if they are not known."""

    def __init__(self, uses: Iterable[SessionUse], rules: Ruleset | None) -> None:
        self._rules = rules
        known = rules or Ruleset()
        self._cidr = known.cidr
        self._uses, of_any = parted(uses)
        self._of_any = list(dict.fromkeys(of_any))
        self._any_topic = AnyTopic(known if of_any else Ruleset())
        if self._any_topic.is_open:
            # It stays so, unless that topic itself gets an ACL, and is closed to all others.
            used = {name for use in self._uses if use.resource_type is _TOPIC for name in use.names}
            more = self._of_any if ARBITRARY in used else []
            self._uses += [use._replace(names=(ARBITRARY,)) for use in more]
            self._of_any = []

    def needed(self) -> NeededGrants:
        """Return the fewest grants."""
        return self.fewest(possible(self._uses, self._rules))

    def fewest(self, grants: NeededGrants, beside: Collection[AclBinding] = ()) -> NeededGrants:
        """Return the fewest of some grants that allow all that these together allow of the uses.

        ``beside`` are ALLOW ACLs that there will be in any case. Where something was used on any
        topic, and would be lost, a current ALLOW is kept.
        """
        choice = _Choice(grants, self._uses, frozenset(beside), cidr=self._cidr)
        found = choice.made()
        left = [(use, read) for use in self._of_any for read in self._any_topic.readings]
        pressing: list[tuple[SessionUse, Reading]] = []
        further: list[_Alternatives] = []
        while lost := self._lost(left, _OnTopics(beside, found)):
            left = [each for each in left if each not in lost]
            for use, read in lost:
                kept = list(self._any_topic.kept(use, read))
                # Under another reading it may not be allowed now, either.
                if kept or read is as_given:
                    pressing.append((use, read))
                    choice.offer(kept)
            offered = _OnTopics(choice.candidates)
            further = [self._sufficing(*each, offered) for each in pressing]
            found = choice.made(further)
        unmet = [
            Unmet(*use[:4], ANY_RESOURCE, self._why_unmet(use))
            for (use, _), alternatives in zip(pressing, further, strict=True)
            if not alternatives
        ]
        return NeededGrants(found.literal, found.prefixed, [*grants.unmet, *unmet])

    def _lost(
        self, of_any: Iterable[tuple[SessionUse, Reading]], topics: _OnTopics
    ) -> dict[tuple[SessionUse, Reading], None]:
        """Return what was used on any topic, and is not allowed so under a reading of hosts."""
        return {
            (use, read): None
            for use, read in of_any
            if not any(self._any_topic.suffices(acl, use, read) for acl in topics.of(use))
        }

    def _sufficing(self, use: SessionUse, read: Reading, topics: _OnTopics) -> _Alternatives:
        return frozenset(acl for acl in topics.of(use) if self._any_topic.suffices(acl, use, read))

    def _why_unmet(self, use: SessionUse) -> str:
        if self._rules is None:
            return _ON_NONE
        return FOR_EVERYONE if use.principals[0] == WILDCARD_PRINCIPAL else NOT_ALLOWED


class _OnTopics:
    """ALLOWs of topics by whom they name, some of them as grants."""

    def __init__(self, acls: Iterable[AclBinding], grants: NeededGrants | None = None) -> None:
        self._acls: dict[str, list[AclBinding]] = {}
        self._granted: dict[str, list[tuple[Grantee, PatternType, Mapping[str, int]]]] = {}
        for acl in acls:
            if acl.resource_type is _TOPIC:
                self._acls.setdefault(acl.principal, []).append(acl)
        for pattern_type, granted in (grants or NeededGrants()).by_pattern_type():
            for grantee, names in granted.items():
                if grantee.resource_type is _TOPIC:
                    theirs = self._granted.setdefault(grantee.principal, [])
                    theirs.append((grantee, pattern_type, names))

    def of(self, use: SessionUse) -> Iterator[AclBinding]:
        """Yield those that name one of a session's principals and the operation of a use."""
        granting = GRANTED_BY[use.operation]
        for principal in dict.fromkeys((*use.principals, WILDCARD_PRINCIPAL)):
            for grantee, pattern_type, names in self._granted.get(principal, ()):
                for name, bits in names.items():
                    for operation in operations_of(bits & granting):
                        yield allowing(grantee, name, operation, pattern_type)
            for acl in self._acls.get(principal, ()):
                if granting >> acl.operation & 1:
                    yield acl


class _Choice:
    """The grants that are possible, and others that are offered, of which some are chosen."""

    def __init__(
        self,
        grants: NeededGrants,
        uses: Sequence[SessionUse],
        beside: frozenset[AclBinding],
        *,
        cidr: bool,
    ) -> None:
        self._grants = grants
        self._uses = uses
        self._beside = beside
        self._cidr = cidr
        self._offered: set[AclBinding] = set()
        self._shared = _Shared(grants, uses)
        for acl in beside:
            self._shared.add(acl)

    def offer(self, acls: Iterable[AclBinding]) -> None:
        """Offer ALLOW ACLs that may be chosen, too."""
        for acl in acls:
            self._offered.add(acl)
            self._shared.add(acl)

    @property
    def candidates(self) -> list[AclBinding]:
        """The grants on shared resources, and what was offered."""
        return [*self._parted(self._shared.__contains__).bindings(), *sorted(self._offered)]

    def made(self, further: Iterable[_Alternatives] = ()) -> NeededGrants:
        """Return what is chosen; of each of some ``further`` sets that are not empty it has one."""
        if not self._shared:
            return minimized(self._grants)
        own: set[AclBinding] = set()
        sets = [*self._alternatives(own), *filter(None, further)]
        found = minimized(self._parted(lambda resource: resource not in self._shared))
        for acl in sorted(least_cover(sets, partial(self._cost, own))):
            is_prefix = acl.pattern_type is PatternType.PREFIXED
            granted = found.prefixed if is_prefix else found.literal
            grantee = Grantee(acl.principal, acl.host, acl.resource_type)
            names = granted.setdefault(grantee, {})
            names[acl.resource_name] = names.get(acl.resource_name, 0) | 1 << acl.operation
        return found

    def _parted(self, is_wanted: Callable[[tuple[ResourceType, str]], bool]) -> NeededGrants:
        """Return the grants on some resources; PREFIXED ones are shared."""
        literal: dict[Grantee, dict[str, int]] = {}
        for grantee, names in self._grants.literal.items():
            of_type = grantee.resource_type
            wanted = {name: bits for name, bits in names.items() if is_wanted((of_type, name))}
            if wanted:
                literal[grantee] = wanted
        prefixed = {
            grantee: wanted
            for grantee, names in self._grants.prefixed.items()
            if (
                wanted := {
                    name: bits
                    for name, bits in names.items()
                    if is_wanted((grantee.resource_type, name))
                }
            )
        }
        return NeededGrants(literal, prefixed, self._grants.unmet)

    def _alternatives(self, own: set[AclBinding]) -> Iterator[_Alternatives]:
        """Yield for each use of a shared resource the grants that allow it, if any has to.

        ``own`` gets those that name the first principal of one.
        """
        acls = [*self.candidates, *self._beside]
        index = AclIndex(acls, cidr=self._cidr)
        nowhere = no_host_of(acls)
        # Where Kafka overlooks how a host is written, only an ACL that it does not overlook can
        # stand for others.
        weak = frozenset(acl for acl in acls if not self._cidr and is_overlooked(acl.host))
        for use in self._uses:
            names = [name for name in use.names if (use.resource_type, name) in self._shared]
            if not names:
                continue
            host = nowhere if use.host is None else use.host
            peer = Session(use.principals, host, LISTENER).peer
            for name in names:
                found = frozenset(
                    acl
                    for acl in index.bindings_for(peer, use.resource_type, name)
                    if GRANTED_BY[use.operation] >> acl.operation & 1
                )
                if found and found.isdisjoint(self._beside):
                    own.update(acl for acl in found if acl.principal == use.principals[0])
                    yield found - weak or found

    def _cost(self, own: Collection[AclBinding], acl: AclBinding) -> Cost:
        """Return what an ACL costs: names, someone else's, implied operations, hosts.

        What is kept costs more than all grants together: it is of names that nobody used. Of grants
        rather all hosts are meant, and of what is kept few.
        """
        is_kept = acl in self._offered and not self._grants.has(acl)
        hosts = host_breadth(acl.host)
        return (
            _DEAR if is_kept else 1,
            _breadth_of_names(acl) if is_kept else 0,
            acl not in own,
            said_by(acl).bit_count(),
            hosts if is_kept else host_breadth(WILDCARD) - hosts,
        )


def _breadth_of_names(acl: AclBinding) -> int:
    name, kind = key_of(acl.pattern_type, acl.resource_name)
    return max(1, _LONGEST_NAME - len(name)) if kind == PREFIX else 0


class _Shared:
    """The resources on which several grants may allow one use."""

    def __init__(self, grants: NeededGrants, uses: Sequence[SessionUse]) -> None:
        self._names: set[tuple[ResourceType, str]] = set()
        self._prefixes: set[tuple[ResourceType, str]] = set()
        self._lengths: list[int] = []
        for grantee, names in grants.literal.items():
            if grantee.host != WILDCARD:
                self._names.update((grantee.resource_type, name) for name in names)
            elif WILDCARD in names:
                self._add_prefix(grantee.resource_type, "")
        for use in uses:
            if len(use.principals) > 1:
                self._names.update((use.resource_type, name) for name in use.names)
        for grantee, prefixes in grants.prefixed.items():
            for prefix in prefixes:
                self._add_prefix(grantee.resource_type, prefix)

    def add(self, acl: AclBinding) -> None:
        """Add the resources of an ACL."""
        name, kind = key_of(acl.pattern_type, acl.resource_name)
        if kind == PREFIX:
            self._add_prefix(acl.resource_type, name)
        else:
            self._names.add((acl.resource_type, name))

    def _add_prefix(self, resource_type: ResourceType, prefix: str) -> None:
        self._prefixes.add((resource_type, prefix))
        if len(prefix) not in self._lengths:
            self._lengths = sorted([*self._lengths, len(prefix)])

    def __bool__(self) -> bool:
        return bool(self._names or self._prefixes)

    def __contains__(self, resource: tuple[ResourceType, str]) -> bool:
        resource_type, name = resource
        return resource in self._names or any(
            (resource_type, name[:length]) in self._prefixes for length in self._lengths
        )
