"""Who may do an operation on a name or a prefix: each principal by itself, and everyone else."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.operations import ALLOWED_BITS
from aclbroker.acl.reasoning.by_host import Rights, by_host, combined, joined
from aclbroker.acl.reasoning.names import (
    LITERAL,
    PREFIX,
    ROOT,
    Component,
    Key,
    NameRegion,
    components,
)
from aclbroker.acl.reasoning.possible import UsedUp
from aclbroker.acl.reasoning.rules import EFFECTIVE, EVERYTHING, Own, Table, named_principals
from aclbroker.acl.reasoning.trees import Everyone, patterns_of, tree_of, within


class OfType:
    """The ACLs of a type, and those who have them by pattern."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.everyone = Everyone([table])
        self.named = named_principals([table])
        self.effective = EFFECTIVE[table.resource_type]
        by_pattern: dict[Key, list[str]] = {}
        for principal, own in table.owners.items():
            for name in own.prefixes:
                by_pattern.setdefault((name, PREFIX), []).append(principal)
            for name in own.literals:
                by_pattern.setdefault((name, LITERAL), []).append(principal)
        self._by_pattern = by_pattern
        self._keys = sorted(by_pattern)
        self._lengths = sorted({len(name) for name, kind in by_pattern if kind == PREFIX})
        self._ever: dict[str, int] = {}
        self._held: dict[str, Held] = {}
        self._used_up: UsedUp | None = None
        self._members: dict[str, list[str]] = {}
        for member, groups in table.rules.groups.items():
            for group in groups:
                self._members.setdefault(group, []).append(member)

    def ever(self, principal: str) -> int:
        """Return all bits of the ACLs of somebody, and of everyone's."""
        found = self._ever.get(principal)
        if found is None:
            found = 0
            for own in (self.table.own(principal), self.table.everyone):
                for rights in (*own.prefixes.values(), *own.literals.values()):
                    for _, bits in by_host(rights, -1):
                        found |= bits
            self._ever[principal] = found
        return found

    def held(self, principal: str) -> Held:
        """Return the rights of somebody who is no super user."""
        found = self._held.get(principal)
        if found is None:
            found = Held(self.everyone, self.table.own(principal))
            self._held[principal] = found
        return found

    def may_be_used_up(self, key: Key) -> bool:
        """Tell whether a prefix in a pattern may have no name left that a resource can have."""
        if self.table.resource_type is not ResourceType.TOPIC:
            return False
        if self._used_up is None:
            self._used_up = UsedUp(self._keys)
        return self._used_up.may_be_within(key)

    def everything(self, principal: str) -> list[Component]:
        """Return all that somebody may do, region by region; the values are of operations."""
        if self.table.rules.is_super_user(principal):
            return [Component(ROOT, self.effective[EVERYTHING], [])]
        own = self.table.own(principal)
        tree = tree_of(self.everyone, own, {*own.keys(), *self.everyone.keys})
        allowed = [combined([each], self.effective.__getitem__) for each in tree.rights]
        return [each for each in components(tree.keys, tree.parents, allowed)[0] if each.value]

    def related(self, key: Key) -> set[str]:
        """Return the principals with patterns that have a name in common with one, super users."""
        if key == ROOT:
            return set(self.named)
        name = key[0]
        found: set[str] = set(self.table.rules.super_users)
        for length in self._lengths[: bisect_right(self._lengths, len(name))]:
            found.update(self._by_pattern.get((name[:length], PREFIX), ()))
        numbers = within(self._keys, key)
        found.update(*map(self._by_pattern.__getitem__, self._keys[numbers.start : numbers.stop]))
        for group in found & self._members.keys():
            found.update(self._members[group])
        return found.intersection(self.named)


class Held:
    """The rights of one principal by names, whatever may be asked about them.

    They are known at its own patterns and at everyone's inside of its prefixes. Elsewhere it has
    the rights of everyone else.
    """

    __slots__ = ("_everyone", "_own", "_prefixes", "keys", "rights")

    def __init__(self, everyone: Everyone, own: Own) -> None:
        self._everyone = everyone
        self._own = own
        self._prefixes = tuple(own.prefixes)
        tree = tree_of(everyone, own, patterns_of(everyone, own))
        self.keys = tree.keys
        """These patterns, in order."""

        self.rights = tree.rights
        """What all ACLs say together, at each of them."""

    def is_own(self, name: str) -> bool:
        """Tell whether all names that begin so are in a prefix of its own."""
        return name.startswith(self._prefixes)

    def has(self, key: Key) -> bool:
        """Tell whether a pattern of everyone's is one of the keys."""
        return self.is_own(key[0]) or (key[1] == LITERAL and len(within(self.keys, key)) > 0)

    def at(self, key: Key) -> Rights:
        """Return the rights at a pattern that is none of the keys."""
        everyone = self._everyone
        found = everyone.totals[everyone.innermost(key)][0]
        for prefix, rights in self._own.prefixes.items():
            if key[0].startswith(prefix):
                found = joined(found, rights)
        return found


class Found(NamedTuple):
    """Hosts from which it may be done on all the names, and from which on some.

    ``held`` is what is known of the principal, None of everyone else. Super users may do it from
    everywhere on every name.
    """

    on_all: int
    on_some: int
    held: Held | None = None
    is_super_user: bool = False


Place = tuple[int, NameRegion]
"""Hosts, as a mask, and names: all that is asked for from one on another is decided alike."""


class _Masks(dict[Rights, int]):
    """For rights, the hosts of those asked about at which they allow all that is asked for."""

    def __init__(self, effective: dict[int, int], bits: int, hosts: int) -> None:
        super().__init__()
        self._effective, self._bits, self._hosts = effective, bits, hosts

    def __missing__(self, rights: Rights) -> int:
        allowed = 0
        for mask, number in by_host(rights, self._hosts):
            if self._effective[number] & self._bits == self._bits:
                allowed |= mask
        found = self[rights] = allowed & self._hosts
        return found


class Asked:
    """One question: some operations, all of them, on a name or prefix from some hosts."""

    def __init__(self, of_type: OfType, key: Key, bits: int, hosts: int) -> None:
        self._of_type = of_type
        self._candidates: list[str] | None = None
        self._key = key
        self._bits = bits
        self.hosts = hosts
        """The hosts that it is about."""

        self._masks = masks = _Masks(of_type.effective, bits, hosts)
        everyone = of_type.everyone
        self._patterns, self._rights = everyone.keys, everyone.by_side[0]
        self._numbers = everyone.within(key)
        self._around = self._rights[everyone.innermost(key)]
        rights = self._rights[self._numbers.start : self._numbers.stop]
        self._of_everyone = Found(*self._on({self._around, *rights}))
        # Most principals are as everyone else on most names: few of these are looked at.
        shown = [masks[each] for each in rights]
        self._may = [n for n, mask in zip(self._numbers, shown, strict=True) if mask]
        self._may_not = [n for n, mask in zip(self._numbers, shown, strict=True) if mask != hosts]

    def _on(self, distinct: Iterable[Rights]) -> tuple[int, int]:
        """Return the hosts at which all of some rights allow it, and those at which any do."""
        on_all, on_some = self.hosts, 0
        for each in distinct:
            mask = self._masks[each]
            on_all &= mask
            on_some |= mask
        return on_all, on_some

    def candidates(self) -> list[str]:
        """Return, in order, those who may have other rights on the names than everyone else."""
        if self._candidates is None:
            self._candidates = sorted(self._of_type.related(self._key))
        return self._candidates

    def may_ever(self, principal: str) -> bool:
        """Tell whether somebody may do it anywhere, denials aside; quick, and never no in vain."""
        if self._of_everyone.on_some or self._of_type.table.rules.is_super_user(principal):
            return True
        allowed = self._of_type.ever(principal) & ALLOWED_BITS
        return bool(self._of_type.effective[allowed] & self._bits)

    def of_everyone(self) -> Found:
        """Return what was found out of who is nobody's principal in an ACL."""
        return self._of_everyone

    def of_principal(self, principal: str) -> Found:
        """Return what was found out of a principal."""
        if self._of_type.table.rules.is_super_user(principal):
            return Found(self.hosts, self.hosts, is_super_user=True)
        held = self._of_type.held(principal)
        numbers = within(held.keys, self._key)
        distinct = set(held.rights[numbers.start : numbers.stop])
        if not numbers or held.keys[numbers.start] != self._key:
            distinct.add(held.at(self._key))
        on_all, on_some = self._on(distinct)
        if not held.is_own(self._key[0]):
            on_all = self._on_all(on_all, held)
            on_some = self._on_some(on_some, held)
        return Found(on_all, on_some, held)

    def _on_all(self, on_all: int, held: Held) -> int:
        """Take away hosts at which it is denied on patterns that a principal does not hold."""
        for number in self._may_not:
            if not on_all & ~self._of_everyone.on_all:
                break
            if not held.has(self._patterns[number]):
                on_all &= self._masks[self._rights[number]]
        return on_all

    def _on_some(self, on_some: int, held: Held) -> int:
        """Add to hosts those at which it is allowed on patterns that a principal does not hold."""
        for number in self._may:
            if not self._of_everyone.on_some & ~on_some:
                break
            if not held.has(self._patterns[number]):
                on_some |= self._masks[self._rights[number]]
        return on_some

    def where(self, found: Found) -> tuple[int, NameRegion]:
        """Return names on which it may be done from some hosts, and these hosts.

        There must be some. If a resource can have any of the names, it can have one of these.
        """
        possible = (place for place in self.places(found) if place[1].is_possible)
        return next(possible, None) or next(self.places(found))

    def places(self, found: Found) -> Iterator[Place]:
        """Yield all names on which it may be done from some hosts, region by region."""
        return self._places(found, lambda mask: mask)

    def places_not(self, found: Found, hosts: int) -> Iterator[Place]:
        """Yield all names on which it may not be done from some of the hosts, region by region."""
        return self._places(found, lambda mask: hosts & ~mask)

    def on_possible(self, found: Found) -> int:
        """Return the hosts from which it may be done on some name that a resource can have."""
        if found.is_super_user or not self._of_type.may_be_used_up(self._key):
            return found.on_some
        rest = found.on_some
        for mask, names in self.places(found):
            if mask & rest and names.is_possible:
                rest &= ~mask
        return found.on_some & ~rest

    def _places(self, found: Found, wanted: Callable[[int], int]) -> Iterator[Place]:
        if found.is_super_user:
            return iter([(wanted(self.hosts), self._region(self._key))])
        return self._places_of(found.held, wanted)

    def _places_of(self, held: Held | None, wanted: Callable[[int], int]) -> Iterator[Place]:
        if held is not None:
            for number in _literals_first(held.keys, within(held.keys, self._key)):
                if shown := wanted(self._masks[held.rights[number]]):
                    yield shown, self._region(held.keys[number], held.keys)
        keys = [] if held is None else held.keys
        for rights, key in self._elsewhere(held):
            if shown := wanted(self._masks[rights]):
                yield shown, self._region(key, keys, self._patterns)

    def _elsewhere(self, held: Held | None) -> Iterator[tuple[Rights, Key]]:
        """Yield the rights at patterns that are not held: everyone's, and the one asked about."""
        if held is None or not held.is_own(self._key[0]):
            for number in _literals_first(self._patterns, self._numbers):
                if held is None or not held.has(self._patterns[number]):
                    yield self._rights[number], self._patterns[number]
        if held is None:
            yield self._around, self._key
            return
        numbers = within(held.keys, self._key)
        if not numbers or held.keys[numbers.start] != self._key:
            yield held.at(self._key), self._key

    def _region(self, key: Key, *patterns: Sequence[Key]) -> NameRegion:
        """Return the names of a pattern without those of others that lie in it."""
        inner: set[Key] = set()
        for keys in patterns if key[1] == PREFIX else ():
            numbers = within(keys, key)
            inner.update(keys[numbers.start : numbers.stop])
        inner.discard(key)
        return NameRegion(self._of_type.table.resource_type, key, tuple(sorted(inner)))


def _literals_first(keys: Sequence[Key], numbers: range) -> Iterator[int]:
    """Yield numbers of keys: a literal is an example at once, whatever lies in prefixes."""
    for kind in (LITERAL, PREFIX):
        for number in numbers:
            if keys[number][1] == kind:
                yield number
