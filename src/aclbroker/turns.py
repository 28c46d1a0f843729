"""Where long work may pause: plain loops that let other work on their thread have its turn.

One thread serves all clients, and a single large request can take seconds to decode, check, answer
and encode. All that is plain code with loops and comprehensions, which goes through whatever may be
long with `in_turns`. Whoever runs such work in turns (`broker.turns`) says how it pauses, with
`pause_with`; where nobody has, nothing pauses.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import Final, TypeVar

T = TypeVar("T")

_FEW: Final = 16
"""Up to so many entries are gone through at once, so that short work costs nothing more."""

_AT_ONCE: Final = 16
"""How many entries are gone through before the next pause."""


def _go_on() -> None:
    """Do not pause."""


_pause = _go_on


def pause_with(function: Callable[[], None]) -> None:
    """Call a function at each place where work may pause."""
    global _pause
    _pause = function


def pause() -> None:
    """Let others have their turn, if that of the work at hand is over."""
    _pause()


def in_turns(items: Collection[T], at_once: int = _AT_ONCE) -> Iterable[T]:
    """Return the items, with a `pause` now and then if they are many.

    They must not change as long as the caller goes through them. ``at_once`` is how many are gone
    through before the next pause; with more of them less time goes to pauses.
    """
    return items if len(items) <= _FEW else chain.from_iterable(_parts(items, at_once))


def _parts(items: Collection[T], at_once: int) -> Iterator[Iterable[T]]:
    if isinstance(items, Sequence):
        for first in range(0, len(items), at_once):
            _pause()
            yield items[first : first + at_once]
        return
    rest = iter(items)
    while some := list(islice(rest, at_once)):
        _pause()
        yield some
