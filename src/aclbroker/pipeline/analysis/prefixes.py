"""Many names under one PREFIXED ACL, and its price: the names that it allows besides.

Operations are looked at one by one: a principal that reads three topics and writes one of them can
get a prefix to read with, and still write to one topic only.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.pipeline.analysis.least_privilege import (
    Grantee,
    NeededGrants,
    allowing,
    effective,
    minimized,
    operations_of,
)

DELIMITERS: Final = frozenset(".-_")
"""What names of topics, groups and transactional ids are parted by."""

PREFIXABLE: Final = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
"""The types whose names people give by a scheme. A cluster's name is always the same."""

_MOST_EXAMPLES: Final = 10


@dataclass(frozen=True, slots=True)
class PrefixOptions:
    """Which prefixes may stand for their names.

    ``minimum_names``: how many ACLs one must replace. ``minimum_length``: of the prefix in
    characters, its delimiter included. ``maximum_price``: how many existing names it may newly
    allow. ``any_prefix``: also prefixes that do not end at a delimiter. Raises ValueError for a
    number below what is sensible.
    """

    minimum_names: int = 3
    minimum_length: int = 4
    maximum_price: int = 0
    any_prefix: bool = False

    def __post_init__(self) -> None:
        for name, least in (("minimum_names", 2), ("minimum_length", 1), ("maximum_price", 0)):
            value = getattr(self, name)
            if value < least:
                raise ValueError(f"{name} must be at least {least}, not {value}")


class Candidate(NamedTuple):
    """A prefix that could stand for ``names`` literal ACLs of one operation.

    ``price`` is how many existing names it would newly allow, ``examples`` the first of them.
    """

    grantee: Grantee
    operation: AclOperation
    prefix: str
    names: int
    price: int
    examples: tuple[str, ...]

    @property
    def acl(self) -> AclBinding:
        """The ACL that it is about."""
        return allowing(self.grantee, self.prefix, self.operation, PatternType.PREFIXED)


def candidates(
    grants: NeededGrants, names: Mapping[ResourceType, Collection[str]], options: PrefixOptions
) -> Iterator[Candidate]:
    """Return the prefixes to consider, whatever their price.

    ``names``: the resources that exist. Of prefixes that stand for the same names, only the longest
    is considered: it allows the least of what may be created later.
    """
    existing = {
        resource_type: sorted({*known, *_granted(grants, resource_type)})
        for resource_type, known in names.items()
        if resource_type in PREFIXABLE
    }
    for grantee, granted in grants.literal.items():
        if grantee.resource_type in PREFIXABLE and len(granted) >= options.minimum_names:
            known = existing.get(grantee.resource_type) or sorted(granted)
            yield from _of_grantee(grantee, granted, known, options)


def _granted(grants: NeededGrants, resource_type: ResourceType) -> Iterator[str]:
    for grantee, names in grants.literal.items():
        if grantee.resource_type is resource_type:
            yield from names


def _of_grantee(
    grantee: Grantee, granted: Mapping[str, int], existing: Sequence[str], options: PrefixOptions
) -> Iterator[Candidate]:
    ordered = sorted(granted)
    used = 0
    for bits in granted.values():
        used |= bits
    for operation in operations_of(used):
        bit = 1 << operation
        literal = [name for name in ordered if granted[name] & bit]
        if len(literal) < options.minimum_names:
            continue
        allowed = [name for name in ordered if effective(granted[name]) & bit]
        for prefix, count in _prefixes(literal, options):
            first, last = _range(allowed, prefix)
            has = set(allowed[first:last])
            first, last = _range(existing, prefix)
            new = (name for name in islice(existing, first, last) if name not in has)
            examples = tuple(islice(new, _MOST_EXAMPLES))
            price = last - first - len(has)
            yield Candidate(grantee, operation, prefix, count, price, examples)


def _range(names: Sequence[str], prefix: str) -> tuple[int, int]:
    """Where in sorted names those begin and end that begin with a prefix."""
    first = bisect_left(names, prefix)
    last = bisect_right(names, prefix, lo=first, key=lambda name: name[: len(prefix)])
    return first, last


def _prefixes(names: Sequence[str], options: PrefixOptions) -> Iterator[tuple[str, int]]:
    """Return the prefixes of enough of the sorted names, each with how many begin with it."""
    counts: dict[str, int] = {}
    if options.any_prefix:
        # The names under a prefix change only where two neighbours in the order begin to differ.
        for prefix in {_common_prefix(*pair) for pair in pairwise(names)}:
            first, last = _range(names, prefix)
            counts[prefix] = last - first
    else:
        for name in names:
            for prefix in _delimited(name):
                counts[prefix] = counts.get(prefix, 0) + 1
    longest: dict[tuple[str, int], str] = {}
    for prefix in sorted(counts):
        if len(prefix) >= options.minimum_length and counts[prefix] >= options.minimum_names:
            # Prefixes with the same first name and as many names have the same names.
            longest[names[bisect_left(names, prefix)], counts[prefix]] = prefix
    for prefix in longest.values():
        yield prefix, counts[prefix]


def _common_prefix(one: str, other: str) -> str:
    length = 0
    for here, there in zip(one, other, strict=False):
        if here != there:
            break
        length += 1
    return one[:length]


def _delimited(name: str) -> Iterator[str]:
    return (name[: at + 1] for at, char in enumerate(name) if char in DELIMITERS)


def consolidated(grants: NeededGrants, acceptable: Iterable[Candidate]) -> NeededGrants:
    """Return the grants with those of the prefixes, beside which others are needless.

    Of nested prefixes the shortest is taken: it stands for all the names of the others.
    """
    prefixed = {grantee: dict(prefixes) for grantee, prefixes in grants.prefixed.items()}
    last: Candidate | None = None
    for each in sorted(acceptable, key=lambda each: (each.grantee, each.operation, each.prefix)):
        # In this order those that a prefix encloses follow it.
        if (
            last is not None
            and (last.grantee, last.operation) == (each.grantee, each.operation)
            and each.prefix.startswith(last.prefix)
        ):
            continue
        last = each
        prefixes = prefixed.setdefault(each.grantee, {})
        prefixes[each.prefix] = prefixes.get(each.prefix, 0) | 1 << each.operation
    return minimized(NeededGrants(grants.literal, prefixed, grants.unmet))
