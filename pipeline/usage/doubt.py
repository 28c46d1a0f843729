"""A decision of which a log tells too little, or too doubtfully, to count it as an event."""

from __future__ import annotations

from typing import NamedTuple


class Doubt(NamedTuple):
    """What may have been asked and allowed. None is anything.

    ``is_longer``: the principal may go on behind the text, ``has_longer_name``: so may the name.
    """

    principal: str | None = None
    is_longer: bool = False
    operation: str | None = None
    resource_type: str | None = None
    resource_name: str | None = None
    has_longer_name: bool = False


ANYTHING = Doubt()
"""Nothing at all is known of it."""
