"""Words that all jobs have in common."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

MOST_NAMED: Final = 5
"""How many of several names a sentence has, so that a fleet's does not fill the page."""


def in_short(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return names as a part of a sentence: the first ``most``, and how many more there are."""
    listed = list(names)
    more = f" and {len(listed) - most:,} more" if len(listed) > most else ""
    return f"{', '.join(listed[:most])}{more}"


def clusters_in_short(names: Iterable[str], most: int = MOST_NAMED) -> str:
    """Return the same of clusters, with that word before the names."""
    listed = list(names)
    return f"cluster{'' if len(listed) == 1 else 's'} {in_short(listed, most)}"
