"""Who may do an operation on a name or a prefix: each principal by itself, and everyone else."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable
from typing import NamedTuple

from aclbroker.broker.acl.operations import ALLOWED_BITS
from aclbroker.broker.reasoning.by_host import Rights, by_host, joined
from aclbroker.broker.reasoning.difference import Comparison
from aclbroker.broker.reasoning.names import LITERAL, PREFIX, ROOT, Key, NameRegion
from aclbroker.broker.reasoning.rules import EFFECTIVE, Own, Table, named_principals
from aclbroker.broker.reasoning.trees import tree_of


class OfType:
    """The ACLs of a type, and those who have them by pattern."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.comparison = Comparison([table])
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

    def related(self, key: Key) -> set[str]:
        """Return the principals with patterns that have a name in common with one, super users."""
        if key == ROOT:
            return set(self.named)
        name, kind = key
        found: set[str] = set(self.table.rules.super_users)
        for length in self._lengths[: bisect_right(self._lengths, len(name))]:
            found.update(self._by_pattern.get((name[:length], PREFIX), ()))
        first = bisect_left(self._keys, key)
        for each in self._keys[first:]:
            if not each[0].startswith(name) or (kind == LITERAL and each != key):
                break
            found.update(self._by_pattern[each])
        for group in found & self._members.keys():
            found.update(self._members[group])
        return found.intersection(self.named)


class Found(NamedTuple):
    """Hosts from which it may be done on all the names, and from which on some.

    ``by_key`` has the hosts for patterns among the names. On any other pattern that lies in one of
    ``inside`` it is as around it, and elsewhere as for everyone else.
    """

    on_all: int
    on_some: int
    by_key: dict[Key, int]
    inside: tuple[str, ...]


class Asked:
    """One question: some operations, all of them, on a name or prefix from some hosts."""

    def __init__(self, of_type: OfType, key: Key, bits: int, hosts: int) -> None:
        self._of_type = of_type
        self._candidates: list[str] | None = None
        self._key = key
        self._bits = bits
        self.hosts = hosts
        """The hosts that it is about."""

        everyone = of_type.comparison.everyone
        keys = [key] if key[1] == LITERAL else sorted({key, *everyone.within(key[0])})
        self._of_everyone = {
            each: self._allowed(everyone.totals[everyone.innermost(each)][0]) for each in keys
        }
        # For quick answers, since most principals are as everyone else on most names.
        self._may_not = [each for each, mask in self._of_everyone.items() if mask != hosts]
        self._may = [each for each, mask in self._of_everyone.items() if mask]
        self._some = 0
        for each in self._may:
            self._some |= self._of_everyone[each]

    def _allowed(self, rights: Rights) -> int:
        """Return the hosts, of those asked about, at which rights allow all that is asked for."""
        effective, bits = self._of_type.effective, self._bits
        if isinstance(rights, int):
            return self.hosts if effective[rights] & bits == bits else 0
        found = 0
        for mask, number in rights:
            if effective[number] & bits == bits:
                found |= mask
        return found & self.hosts

    def candidates(self) -> list[str]:
        """Return, in order, those who may have other rights on the names than everyone else."""
        if self._candidates is None:
            self._candidates = sorted(self._of_type.related(self._key))
        return self._candidates

    def may_ever(self, principal: str) -> bool:
        """Tell whether somebody may do it anywhere, denials aside; quick, and never no in vain."""
        if self._some or self._of_type.table.rules.is_super_user(principal):
            return True
        allowed = self._of_type.ever(principal) & ALLOWED_BITS
        return bool(self._of_type.effective[allowed] & self._bits)

    def of_everyone(self) -> Found:
        """Return what was found out of who is nobody's principal in an ACL."""
        on_all = self.hosts
        for mask in self._of_everyone.values():
            on_all &= mask
        return Found(on_all, self._some, {}, ())

    def of_principal(self, principal: str) -> Found:
        """Return what was found out of a principal."""
        table = self._of_type.table
        if table.rules.is_super_user(principal):
            return Found(self.hosts, self.hosts, {self._key: self.hosts}, (self._key[0],))
        own = _restricted(table.own(principal), self._key)
        tree = tree_of(self._of_type.comparison.everyone, [own], [False], [self._key])
        by_key = {
            each: self._allowed(totals[0])
            for each, totals in zip(tree.keys, tree.totals, strict=True)
        }
        inside = tuple(own.prefixes)
        on_all, on_some = self.hosts, 0
        for mask in by_key.values():
            on_all &= mask
            on_some |= mask
        return Found(
            self._on_all(on_all, by_key, inside),
            self._on_some(on_some, by_key, inside),
            by_key,
            inside,
        )

    def _on_all(self, on_all: int, by_key: dict[Key, int], inside: tuple[str, ...]) -> int:
        for each in self._may_not:
            if not on_all:
                break
            if each not in by_key and not each[0].startswith(inside):
                on_all &= self._of_everyone[each]
        return on_all

    def _on_some(self, on_some: int, by_key: dict[Key, int], inside: tuple[str, ...]) -> int:
        for each in self._may:
            if not self._some & ~on_some:
                break
            if each not in by_key and not each[0].startswith(inside):
                on_some |= self._of_everyone[each]
        return on_some

    def where(self, found: Found) -> tuple[int, NameRegion]:
        """Return names on which it may be done from some hosts, and these hosts.

        There must be some.
        """
        return self._first(found, lambda mask: mask)

    def where_not(self, found: Found, hosts: int) -> tuple[int, NameRegion]:
        """Return names on which it may not be done from some of the hosts, and which of them.

        There must be some.
        """
        return self._first(found, lambda mask: hosts & ~mask)

    def _first(self, found: Found, wanted: Callable[[int], int]) -> tuple[int, NameRegion]:
        by_key = dict(found.by_key)
        for each, mask in self._of_everyone.items():
            if each not in by_key and not each[0].startswith(found.inside):
                by_key[each] = mask
        key, shown = next((key, wanted(mask)) for key, mask in by_key.items() if wanted(mask))
        inner = (each for each in by_key if each != key and each[0].startswith(key[0]))
        excepted = () if key[1] == LITERAL else tuple(sorted(inner))
        return shown, NameRegion(self._of_type.table.resource_type, key, excepted)


def _restricted(own: Own, key: Key) -> Own:
    """Return the rights within a pattern alone; those around it are its own."""
    found = Own()
    name, kind = key
    around: Rights = 0
    is_around = False
    for prefix, rights in own.prefixes.items():
        if name.startswith(prefix):
            around, is_around = joined(around, rights), True
        elif kind == PREFIX and prefix.startswith(name):
            found.prefixes[prefix] = rights
    if kind == LITERAL:
        literal = own.literals.get(name)
        if is_around or literal is not None:
            found.literals[name] = around if literal is None else joined(around, literal)
        return found
    if is_around:
        found.prefixes[name] = around
    found.literals.update(
        (literal, rights) for literal, rights in own.literals.items() if literal.startswith(name)
    )
    return found
