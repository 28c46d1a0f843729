"""Which columns of somebody else's table say what: of a SIEM's export of authorizer events, say."""

from __future__ import annotations

from typing import Final, NamedTuple

REQUIRED: Final = (
    *("timestamp", "principal", "operation", "resource_type", "resource_name"),
    "allowed",
)
"""What must have a column. Without ``allowed``, what was denied would count as in use."""

OPTIONAL: Final = ("host", "cluster", "broker", "listener", "api", "client_id", "count")
"""Fields that may have a column; `pipeline.ingest.foreign` has their values without one."""


class Columns(NamedTuple):
    """The column of each thing that a table says: pairs of one of `REQUIRED` or `OPTIONAL` and it.

    A name that is no column, such as ``user.name``, is the field ``name`` of the column ``user``.
    """

    names: tuple[tuple[str, str], ...]

    def of(self, what: str) -> str | None:
        """Return the column that says something, None if none does."""
        return dict(self.names).get(what)

    def __str__(self) -> str:
        return ",".join(f"{what}={name}" for what, name in self.names)


def columns(text: str) -> Columns:
    """Return what ``WHAT=COLUMN,...`` says. Raises ValueError, which says what is wrong with it."""
    found: dict[str, str] = {}
    for each in text.split(","):
        what, _, name = (part.strip() for part in each.partition("="))
        if not name:
            raise ValueError(f"{each!r} is not WHAT=COLUMN")
        if what not in REQUIRED + OPTIONAL:
            known = ", ".join(REQUIRED + OPTIONAL)
            raise ValueError(f"{what!r} is nothing that a column can say, which are {known}")
        if what in found:
            raise ValueError(f"{what} is named twice")
        found[what] = name
    missing = [what for what in REQUIRED if what not in found]
    if missing:
        raise ValueError(f"no column is named for {', '.join(missing)}")
    return Columns(tuple(found.items()))
