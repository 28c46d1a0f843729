"""A case: one request of the suite, at all versions that it makes sense at, in some roles."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.protocol.messages import ApiKey

DELETERS: Final = ("wildcards", "cluster", "super")
"""The roles that may delete whatever there is; DELETE on the cluster is enough for topics."""


WRONG_PARTITION: Final = 3
INVALID: Final = 42
NOT_ATTEMPTED: Final = 55
NO_TOPIC_ID: Final = 100


class Case(NamedTuple):
    """One request. Fields that a version lacks are left out when it is encoded."""

    key: ApiKey
    label: str
    """Unique among the cases of the key."""
    message: Any
    versions: str = "0+"
    without: tuple[str, ...] = ()
    """The roles that do not send it, because they would be allowed to destroy what is needed."""
    answered: bool = True
    """Whether the protocol has an answer; a Produce with acks=0 has none."""
    codes: tuple[int, ...] = ()
    """The codes that are compared besides those that refuse, since they do not depend on what a
    broker holds: that the request itself is wrong, or asks for what is nowhere."""
    advertised: bool = True
    """Whether brokers advertise the key; if not it is sent all the same."""

    @property
    def id(self) -> str:
        """Return what the case is known by in recordings and reports."""
        return f"{self.key.name} {self.label}"
