"""Decides many questions at once, by looking all of them up in one table of what ACLs say.

The broker's authorizer takes a few microseconds for each question, after it has indexed the ACLs.
Here the texts become numbers and a question a few numbers to look up, all questions together. The
rules are those of `acl.decisions`. What is not plain is left to the authorizer itself:
sessions of several principals, users who are above ACLs, subnets, and any of all topics.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import IntEnum
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.hosts import canonical
from aclbroker.acl.operations import DENIED_SHIFT, GRANTED_BY, NAMED_BY, bit
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.replay.prefixes import NONE, Numbers, PrefixBits, Prefixes, summed
from aclbroker.pipeline.usage.grouping import tested

Flags = NDArray[np.bool_]

_BITS: Final = np.array(
    [[bit(operation, permission) for operation in AclOperation] for permission in AclPermission],
    np.int64,
)
_GRANTED: Final = np.array(GRANTED_BY, np.int64)
_DENIED: Final = np.array(NAMED_BY, np.int64) << DENIED_SHIFT


class Found(NamedTuple):
    """What was decided of some questions: whether it is allowed, and whether by an ACL."""

    allowed: Flags
    by_acl: Flags


class Lookup:
    """What the ACLs of a cluster say, by numbers for who and from where, and for what resources."""

    def __init__(self, ruleset: Ruleset) -> None:
        self._above = ruleset.super_users | ruleset.broker_users.principals
        self._is_open = ruleset.allow_everyone_if_no_acl_found
        self._cidr = ruleset.cidr
        types, names, pattern_types, principals, hosts, operations, permissions = (
            zip(*ruleset.acls, strict=True) if ruleset.acls else ((),) * 7
        )
        self._principals, who = _numbered(principals)
        self._hosts, where = _numbered(_canonical(hosts))
        self._everyone = _place(self._principals, WILDCARD_PRINCIPAL)
        self._anywhere = _place(self._hosts, WILDCARD)
        self._pairs, peers = np.unique(self._paired(who, where), return_inverse=True)
        groups = peers * len(ResourceType) + _small(types)
        said = _BITS[_small(permissions), _small(operations)]
        self._names, of_name = _numbered(names)
        is_prefixed = _small(pattern_types) == PatternType.PREFIXED
        is_all = ~is_prefixed & (of_name == _place(self._names, WILDCARD))
        is_literal = ~is_prefixed & ~is_all
        self._keys, self._said = summed(self._named(groups, of_name)[is_literal], said[is_literal])
        # A literal * is of all names, and these begin with nothing.
        texts = self._names.take(pa.array(np.unique(of_name[is_prefixed]))).to_pylist()
        self._prefixes = Prefixes([*texts, ""] if is_all.any() else texts)
        places = _found(self._names, pa.array(self._prefixes.in_order, pa.string()))
        starts = np.where(is_all, 0, places[of_name])[~is_literal]
        self._prefixed = PrefixBits(
            groups[~is_literal], starts, said[~is_literal], self._prefixes.last
        )

    def are_plain(self, asked: pa.Table) -> Flags:
        """Tell of each question whether `decide` decides it.

        ``asked`` is `encoded`, and has the columns ``principal``, ``other_principals``,
        ``operation``, ``resource_type``, ``resource_name``, and ``host``, null where no ACL names
        it.
        """
        if self._is_open:
            return np.zeros(len(asked), bool)
        by_itself = pc.and_(pc.is_valid(asked["principal"]), pc.is_null(asked["other_principals"]))
        found: Flags = np.array(pc.and_(by_itself, pc.is_valid(asked["resource_name"])))
        found &= ~tested(asked["principal"], self._above.__contains__)
        found &= ~tested(asked["host"], self._is_hard)
        is_any = tested(asked["resource_name"], ANY_RESOURCE.__eq__)
        found &= ~(is_any & tested(asked["resource_type"], ResourceType.TOPIC.name.__eq__))
        return found

    def _is_hard(self, host: str) -> bool:
        """Tell whether more than one text in ACLs may mean the host: subnets, or without zone."""
        return self._cidr or "%" in host

    def decide(self, asked: pa.Table) -> Found:
        """Decide questions that `are_plain`."""
        said = self._said_of(asked)
        operations = _members(asked["operation"], AclOperation)
        is_denied = (said & _DENIED[operations]) != 0
        is_granted = (said & _GRANTED[operations]) != 0
        return Found(is_granted & ~is_denied, is_granted | is_denied)

    def _said_of(self, asked: pa.Table) -> Numbers:
        """Return the bits of `acl.operations` of all ACLs that match each question."""
        types = _members(asked["resource_type"], ResourceType)
        column = _column(asked["resource_name"])
        names = _places(column, self._names)
        longest = self._prefixes.longest(column.dictionary.to_pylist())[column.indices.to_numpy()]
        said = np.zeros(len(asked), np.int64)
        for peers in self._peers_of(asked):
            rows = np.flatnonzero(peers != NONE)
            groups = peers[rows] * len(ResourceType) + types[rows]
            said[rows] |= self._prefixed.bits(groups, longest[rows])
            is_named = names[rows] != NONE
            groups, rows = groups[is_named], rows[is_named]
            said[rows] |= self._said_by_name(self._named(groups, names[rows]))
        return said

    def _said_by_name(self, keys: Numbers) -> Numbers:
        places, is_known = _searched(self._keys, keys)
        said = np.zeros(len(keys), np.int64)
        said[is_known] = self._said[places[is_known]]
        return said

    def _peers_of(self, asked: pa.Table) -> Iterator[Numbers]:
        """Yield numbers for those whose ACLs count for each question: who, or everyone, where."""
        host = _column(asked["host"])
        texts = pa.array([canonical(each) for each in host.dictionary.to_pylist()], pa.string())
        where = _places(pa.DictionaryArray.from_arrays(host.indices, texts), self._hosts)
        anywhere = np.full_like(where, self._anywhere)
        who = _places(_column(asked["principal"]), self._principals)
        for each in (who, np.full_like(who, self._everyone)):
            yield self._peers(each, anywhere)
            yield self._peers(each, where)

    def _peers(self, who: Numbers, where: Numbers) -> Numbers:
        """Return the numbers of those of whom there are ACLs."""
        places, is_known = _searched(self._pairs, self._paired(who, where))
        found: Numbers = np.where(is_known & (who != NONE) & (where != NONE), places, NONE)
        return found

    def _paired(self, who: Numbers, where: Numbers) -> Numbers:
        return who * len(self._hosts) + where

    def _named(self, groups: Numbers, names: Numbers) -> Numbers:
        return groups * len(self._names) + names


def _small(numbers: Sequence[int]) -> Numbers:
    """Return numbers from 0 to 255 as an array."""
    return np.frombuffer(bytes(numbers), np.uint8).astype(np.int64)


def _numbered(texts: Sequence[str]) -> tuple[pa.Array, Numbers]:
    """Return each of some texts once, and the place of each text among these."""
    found = pa.array(texts, pa.string()).dictionary_encode()
    return found.dictionary, found.indices.to_numpy().astype(np.int64)


def _canonical(hosts: Sequence[str]) -> list[str]:
    forms = {host: canonical(host) for host in set(hosts)}
    return [forms[host] for host in hosts]


def _place(texts: pa.Array, text: str) -> int:
    found: int = pc.index(texts, text).as_py()
    return found


def _column(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _places(column: pa.DictionaryArray, texts: pa.Array) -> Numbers:
    """Return the place among some texts of each one in a column."""
    places = np.append(_found(column.dictionary, texts), NONE)
    found: Numbers = places[column.indices.fill_null(len(places) - 1).to_numpy()]
    return found


def _found(these: pa.Array, texts: pa.Array) -> Numbers:
    found: Numbers = pc.index_in(these, texts).fill_null(NONE).to_numpy().astype(np.int64)
    return found


def _searched(in_order: Numbers, numbers: Numbers) -> tuple[Numbers, Flags]:
    """Return the places of numbers among others, and which of them are there."""
    places = np.searchsorted(in_order, numbers)
    is_there: Flags = np.append(in_order, NONE)[places] == numbers
    return places, is_there


def _members(column: pa.ChunkedArray, of: type[IntEnum]) -> Numbers:
    """Return the numbers of the members of an enum that a column names."""
    encoded = _column(column)
    numbers = np.array([of[name] for name in encoded.dictionary.to_pylist()], np.int64)
    found: Numbers = numbers[encoded.indices.to_numpy()]
    return found
