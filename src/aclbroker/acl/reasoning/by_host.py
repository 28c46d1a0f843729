"""What holds at each host: one number for all of them, or one for each of several sets.

A number is of whatever kind the caller has: the bits of ACLs (`acl.operations`), or of
operations. Nearly all ACLs are for any host, so nearly all work is on plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import product
from typing import Any

Rights = int | tuple[tuple[int, int], ...]
"""A number for all hosts, or pairs of a set of hosts (`HostCut`) and the number there.

The sets of the pairs are not empty, have nothing in common, and are all hosts together.
"""


def joined(first: Rights, second: Rights) -> Rights:
    """Return the bits of both."""
    if type(first) is int and type(second) is int:
        return first | second
    return _joined(first, second)


@lru_cache(maxsize=65536)
def _joined(first: Rights, second: Rights) -> Rights:
    return combined((first, second), lambda one, other: one | other)


def combined(rights: Sequence[Rights], function: Callable[..., int]) -> Rights:
    """Return what a function of the numbers makes at each host."""
    if all(type(each) is int for each in rights):
        return function(*rights)
    found: dict[int, int] = {}
    # A number for all hosts is as one pair whose set has every bit.
    pairs: list[Any] = [((-1, each),) if type(each) is int else each for each in rights]
    for combination in product(*pairs):
        mask = -1
        for each, _ in combination:
            mask &= each
        if mask:
            value = function(*(number for _, number in combination))
            found[value] = found.get(value, 0) | mask
    if len(found) == 1:
        return next(iter(found))
    return tuple(sorted((mask, value) for value, mask in found.items()))


def by_host(rights: Rights, everywhere: int) -> Iterator[tuple[int, int]]:
    """Return the pairs of a set of hosts and what holds there; ``everywhere`` are all hosts."""
    if isinstance(rights, int):
        yield everywhere, rights
    else:
        yield from rights
