"""A case: one request of the suite, with the versions and the roles in which it is sent."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.protocol.messages import ApiKey

DELETERS: Final = ("wildcards", "cluster", "super")
"""The roles that may delete anything; DELETE on the cluster is enough to delete topics."""


WRONG_PARTITION: Final = 3
INVALID: Final = 42
NOT_ATTEMPTED: Final = 55
NO_TOPIC_ID: Final = 100


class Case(NamedTuple):
    """One request; encoding it leaves out the fields that a version does not have."""

    key: ApiKey
    label: str
    """A name that is unique among the cases of the key."""
    message: Any
    versions: str = "0+"
    without: tuple[str, ...] = ()
    """The roles that do not send it, because it would destroy what later requests need."""
    answered: bool = True
    """Whether brokers answer the request; a Produce with acks=0 is not answered."""
    codes: tuple[int, ...] = ()
    """Codes that are compared beside the refusing ones.

    They do not depend on the data of a broker: they say that the request itself is wrong, or that
    it asks for something that no broker has.
    """
    advertised: bool = True
    """Whether brokers advertise the key; one that is not advertised is sent all the same."""

    @property
    def id(self) -> str:
        """Return the name of the case in recordings and reports."""
        return f"{self.key.name} {self.label}"
