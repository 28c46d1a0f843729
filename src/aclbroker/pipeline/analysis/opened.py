"""What a change of rules opens and closes, for every request, asked or not.

A replay tells what becomes of the questions of a log. What nobody happened to ask is not in it, so
both sets of rules are compared by their regions (`acl.reasoning`): no request is left out, and
"opens nothing" is a proof.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain, islice
from typing import Final, NamedTuple

from aclbroker.acl.bindings import WILDCARD, AclOperation, ResourceType
from aclbroker.acl.reasoning.difference import Difference, comparing
from aclbroker.acl.reasoning.hosts import HostArea, HostCut
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, Key
from aclbroker.acl.reasoning.regions import Principals, Region, Request
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.pipeline.acls.acl_text import word
from aclbroker.pipeline.acls.ruleset import Ruleset

SessionPrincipals = tuple[str, ...]
"""The principals of a session, the user's own one first."""

OPENS_NOTHING: Final = "opens nothing: proven for every request, asked or not"
CLOSES_NOTHING: Final = "closes nothing: proven for every request, asked or not"


def rules_of(ruleset: Ruleset, sessions: Iterable[SessionPrincipals] = ()) -> Rules:
    """Return the same rules as `acl.reasoning` takes them.

    Each session of several principals is a principal of its own there, called `name_of_session`.
    """
    return Rules(
        ruleset.acls,
        ruleset.super_users,
        ruleset.broker_users,
        ruleset.allow_everyone_if_no_acl_found,
        ruleset.cidr,
        {name_of_session(each): tuple(each) for each in sessions if len(each) > 1},
    )


def name_of_session(principals: SessionPrincipals) -> str:
    """Return what a session is called in regions: its only principal, or one that nobody has.

    That is ``session of User:a with Group:b``. Other principals give another text.
    """
    first, *others = principals
    if not others:
        return first
    return f"session of {word(first)} with {', '.join(map(word, others))}"


@dataclass(frozen=True)
class ChangedRights:
    """Requests that two sets of rules decide otherwise, all of them alike.

    ``is_opened``: whether they are allowed by the new rules; else by the old ones. ``is_asked``:
    whether one of them is known to have been asked. ``example`` is one of them, None if patterns
    leave no name for one.
    """

    is_opened: bool
    region: Region
    example: Request | None
    is_asked: bool = False

    @property
    def rights(self) -> int:
        """How many rights these are: one for each principal and operation.

        All whom no ACL names count as one principal.
        """
        principals = self.region.principals
        count = 1 if principals.is_everyone else len(principals.names)
        return count * self.region.bits.bit_count()

    def texts(self) -> RightsTexts:
        """Return it in words."""
        region = self.region
        names, principals = region.names, region.principals
        return RightsTexts(
            "opened" if self.is_opened else "closed",
            principals.names,
            principals.is_everyone,
            tuple(map(str, region.hosts)),
            tuple(each.name for each in region.operations),
            names.resource_type.name,
            names.pattern.pattern_type.name,
            names.pattern.name,
            (
                *map(str, names.exceptions),
                *(f"{who} on {pattern}" for who, pattern in region.exceptions()),
            ),
            None if self.example is None else str(self.example),
            self.is_asked,
        )


class AskedQuestion(NamedTuple):
    """A question of a log. ``host`` None is any host that no ACL names."""

    principals: SessionPrincipals
    host: str | None
    operation: AclOperation
    resource_type: ResourceType
    name: str


class RightsTexts(NamedTuple):
    """Changed rights in words, for a row of a table.

    ``principals`` are those who have the rights or, if ``is_everyone_else``, all those who do not.
    ``exceptions`` are patterns of names that are not meant, though they lie in the pattern of
    ``name``; PREFIXED ones end with ``*``. Where one is not meant for one of the principals alone,
    it is ``PRINCIPAL on PATTERN``.
    """

    change: str
    principals: tuple[str, ...]
    is_everyone_else: bool
    hosts: tuple[str, ...]
    operations: tuple[str, ...]
    resource_type: str
    pattern_type: str
    name: str
    exceptions: tuple[str, ...]
    example: str | None
    is_asked: bool

    @property
    def rights(self) -> int:
        """How many rights these are: see `ChangedRights.rights`."""
        return (1 if self.is_everyone_else else len(self.principals)) * len(self.operations)

    def is_within(self, other: RightsTexts) -> bool:
        """Tell whether others are all of these, from as many hosts or from any."""
        same = ("change", "is_everyone_else", "operations", *self._fields[5:9])
        return (
            all(getattr(self, name) == getattr(other, name) for name in same)
            and set(self.principals) <= set(other.principals)
            and other.hosts in (self.hosts, (str(HostArea(WILDCARD)),))
        )


@dataclass(frozen=True)
class Opened:
    """All rights that a new set of rules gives or takes, those that it gives first."""

    changes: tuple[ChangedRights, ...]

    @cached_property
    def opened(self) -> tuple[ChangedRights, ...]:
        """What is allowed by the new rules alone."""
        return tuple(each for each in self.changes if each.is_opened)

    @cached_property
    def closed(self) -> tuple[ChangedRights, ...]:
        """What is allowed by the old rules alone."""
        return tuple(each for each in self.changes if not each.is_opened)

    @property
    def rights_opened(self) -> int:
        """How many rights are opened: see `ChangedRights.rights`."""
        return sum(each.rights for each in self.opened)

    @property
    def rights_closed(self) -> int:
        """How many rights are closed: see `ChangedRights.rights`."""
        return sum(each.rights for each in self.closed)

    def sentence(self) -> str:
        """Return, as the end of a sentence, what the new rules open."""
        return sentence(self.opened)

    def sentence_of_closed(self) -> str:
        """Return, as the end of a sentence, what the new rules close."""
        if not self.closed:
            return CLOSES_NOTHING
        return f"closes {_told(self.closed)}"


def opened(
    before: Ruleset,
    after: Ruleset,
    sessions: Iterable[SessionPrincipals] = (),
    asked: Iterable[AskedQuestion] = (),
) -> Opened:
    """Return what a change of rules opens and closes: see `changed_rights`."""
    changes = changed_rights(before, after, sessions, asked)
    return Opened(tuple(sorted(changes, key=lambda each: not each.is_opened)))


def changed_rights(
    before: Ruleset,
    after: Ruleset,
    sessions: Iterable[SessionPrincipals] = (),
    asked: Iterable[AskedQuestion] = (),
    cut: HostCut | None = None,
) -> Iterator[ChangedRights]:
    """Yield all rights that a change of rules gives or takes, without keeping them.

    Principals are looked at one by one, and the ``sessions`` of several besides, each as one
    principal (`name_of_session`). ``asked`` are questions of a log, by which what was asked is told
    apart from what nobody asked; those that both sets of rules decide alike make no difference.
    What broker users may do on the listener of the brokers is not compared.

    ``cut``: all hosts of both sets of rules, and of those of which the rights are to be put
    together with these; None for those of both alone. With one, nobody is of a region on some of
    its names alone: so what is said of a principal does not depend on who else is compared.
    """
    sessions = list(sessions)
    old, new = rules_of(before, sessions), rules_of(after, sessions)
    is_part = cut is not None
    cut = cut or HostCut(old.hosts() | new.hosts(), old.cidr or new.cidr)
    differences, named = comparing(old, new, cut)
    if is_part:
        differences = chain.from_iterable(map(_alone, differences))
    nowhere = cut.example(cut.everywhere)
    requests = [
        Request(
            name_of_session(each.principals),
            nowhere if each.host is None else each.host,
            each.operation,
            each.resource_type,
            each.name,
        )
        for each in asked
    ]
    while some := list(islice(differences, _AT_ONCE)):
        are_asked = _holding([each.region for each in some], requests)
        for number, (is_gained, region) in enumerate(some):
            yield ChangedRights(is_gained, region, region.example(named), number in are_asked)


def _alone(difference: Difference) -> Iterator[Difference]:
    """Yield the same rights, but of those whose names are other ones each by themselves."""
    is_gained, region = difference
    if not region.apart:
        yield difference
        return
    names, is_everyone = region.principals.names, region.principals.is_everyone
    if is_everyone:
        together = tuple(sorted({*names, *region.apart}))
    else:
        together = tuple(each for each in names if each not in region.apart)
    if together or is_everyone:
        principals = Principals(together, is_everyone)
        yield Difference(is_gained, replace(region, principals=principals, apart={}))
    for who, keys in region.apart.items():
        excepted = tuple(sorted((*region.names.excepted, *keys)))
        theirs = replace(region.names, excepted=excepted)
        yield Difference(
            is_gained, replace(region, principals=Principals((who,)), names=theirs, apart={})
        )


_AT_ONCE: Final = 10_000
"""How many regions are held against what was asked together."""


def _holding(regions: Sequence[Region], requests: Sequence[Request]) -> set[int]:
    """Return the numbers of the regions that hold a request, found by the patterns of names."""
    by_key: dict[tuple[int, Key], list[int]] = {}
    for number, region in enumerate(regions if requests else ()):
        by_key.setdefault((region.names.resource_type, region.names.key), []).append(number)
    lengths = sorted({len(name) for _, (name, kind) in by_key if kind == PREFIX})
    found: set[int] = set()
    for request in requests:
        name = request.name
        prefixes = [(name[:length], PREFIX) for length in lengths if length <= len(name)]
        for key in ((name, LITERAL), *prefixes):
            near = by_key.get((request.resource_type, key), ())
            found.update(each for each in near if each not in found and request in regions[each])
    return found


def sentence(opened: Sequence[ChangedRights | RightsTexts]) -> str:
    """Return, as the end of a sentence, what is opened."""
    return f"opens {_told(opened)}" if opened else OPENS_NOTHING


def _told(changes: Sequence[ChangedRights | RightsTexts]) -> str:
    rights = sum(each.rights for each in changes)
    asked = sum(each.rights for each in changes if each.is_asked)
    # What nobody asked is what no replay would have shown.
    example = min(changes, key=lambda each: each.is_asked).example
    such_as = "" if example is None else f", such as {example}"
    if not asked:
        return f"{_count(rights)} that nobody asked for{such_as}"
    return f"{_count(rights)}, {asked:,} of them asked for{such_as}"


def _count(rights: int) -> str:
    return f"{rights:,} right{'' if rights == 1 else 's'}"
