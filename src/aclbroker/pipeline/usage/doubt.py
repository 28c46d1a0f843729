"""A decision that a log records too incompletely, or too doubtfully, to count as an event."""

from __future__ import annotations

from typing import NamedTuple


class Doubt(NamedTuple):
    """A request that may have been allowed. None stands for any value.

    With ``is_longer``, ``principal`` is the beginning of the principal or all of it. With
    ``has_longer_name``, the same holds for ``resource_name``.
    """

    principal: str | None = None
    is_longer: bool = False
    operation: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    has_longer_name: bool = False


ANYTHING = Doubt()
"""A request of which nothing is known."""
