"""One setting as it was written, with the place where it stands."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Setting:
    """One name with its value as text, and where it came from, such as "server.properties:12".

    ``written`` is what stands there, if that refers to a value elsewhere (see `providers`), which
    may be a secret; else None.
    """

    name: str
    value: str = field(repr=False)
    origin: str
    written: str | None = None
