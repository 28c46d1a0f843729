"""The suite's topics, groups and transactional ids, each named after the rights on it.

All names begin with `PREFIX`, so that the suite neither changes nor compares anything else.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclOperation as Op

PREFIX: Final = "conformance-"


class Rights(NamedTuple):
    """The operations that the role ``resources`` is allowed and denied on one resource."""

    allowed: tuple[Op, ...] = ()
    denied: tuple[Op, ...] = ()
    prefixed: bool = False
    """Whether the allowing ACLs are prefixed ones, on a prefix of the name."""


TOPIC_RIGHTS: Final[Mapping[str, Rights]] = {
    "read": Rights((Op.READ,)),
    "write": Rights((Op.WRITE,)),
    "create": Rights((Op.CREATE,)),
    "delete": Rights((Op.DELETE,)),
    "alter": Rights((Op.ALTER,)),
    "describe": Rights((Op.DESCRIBE,)),
    "describe-configs": Rights((Op.DESCRIBE_CONFIGS,)),
    "alter-configs": Rights((Op.ALTER_CONFIGS,)),
    "all": Rights((Op.ALL,)),
    "all-denied-read": Rights((Op.ALL,), denied=(Op.READ,)),
    "prefixed": Rights((Op.READ, Op.WRITE), prefixed=True),
    "prefixed-denied": Rights((Op.READ, Op.WRITE), denied=(Op.ALL,), prefixed=True),
    "closed": Rights(),
}
"""The rights on topics, by the last part of their names."""

GROUP_RIGHTS: Final[Mapping[str, Rights]] = {
    "read": Rights((Op.READ,)),
    "delete": Rights((Op.DELETE,)),
    "describe": Rights((Op.DESCRIBE,)),
    "describe-configs": Rights((Op.DESCRIBE_CONFIGS,)),
    "alter-configs": Rights((Op.ALTER_CONFIGS,)),
    "all": Rights((Op.ALL,)),
    "prefixed": Rights((Op.READ,), prefixed=True),
    "prefixed-denied": Rights((Op.READ,), denied=(Op.ALL,), prefixed=True),
    "closed": Rights(),
}
"""The rights on groups, by the last part of their names."""

TRANSACTION_RIGHTS: Final[Mapping[str, Rights]] = {
    "write": Rights((Op.WRITE,)),
    "describe": Rights((Op.DESCRIBE,)),
    "two-phase-commit": Rights((Op.TWO_PHASE_COMMIT,)),
    "prefixed": Rights((Op.WRITE,), prefixed=True),
    "prefixed-denied": Rights((Op.WRITE,), denied=(Op.ALL,), prefixed=True),
    "closed": Rights(),
}
"""The rights on transactional ids, by the last part of them."""


def topic(right: str) -> str:
    """Return the name of the topic with these rights that exists from the beginning."""
    return f"{PREFIX}topic-{right}"


def absent_topic(right: str) -> str:
    """Return the name of the topic with these rights that never exists."""
    return f"{PREFIX}absent-topic-{right}"


def created_topic(right: str) -> str:
    """Return the name of the topic with these rights that Metadata requests may create."""
    return f"{PREFIX}created-topic-{right}"


def group(right: str) -> str:
    """Return the name of the classic group with these rights that exists from the beginning."""
    return f"{PREFIX}group-{right}"


def absent_group(right: str) -> str:
    """Return the name of the group with these rights that never exists."""
    return f"{PREFIX}absent-group-{right}"


def share_group(right: str) -> str:
    """Return the name of the share group with these rights that exists from the beginning."""
    return f"{PREFIX}share-group-{right}"


def transaction(right: str) -> str:
    """Return the transactional id with these rights."""
    return f"{PREFIX}transaction-{right}"


TOPICS: Final = tuple(map(topic, TOPIC_RIGHTS))
DELETED_TOPIC: Final = f"{PREFIX}deleted-topic"
"""A topic that the role ``resources`` may delete but not describe, and may really delete."""
GROUPS: Final = tuple(map(group, GROUP_RIGHTS))
SHARE_GROUPS: Final = tuple(map(share_group, GROUP_RIGHTS))
TRANSACTIONS: Final = tuple(map(transaction, TRANSACTION_RIGHTS))
ABSENT_TOPICS: Final = tuple(map(absent_topic, TOPIC_RIGHTS))
ABSENT_GROUPS: Final = tuple(map(absent_group, GROUP_RIGHTS))
LISTED: Final = frozenset((*TOPICS, *GROUPS, *SHARE_GROUPS, *TRANSACTIONS))
"""The names of everything that exists from the beginning."""

NOBODY: Final = f"{PREFIX}nobody"
"""A user who occurs only in requests, and on whom the role ``resources`` has no rights."""

SOMEBODY: Final = f"{PREFIX}somebody"
"""A user for whom the role ``resources`` may create and describe delegation tokens."""


def made_up_id(name: str) -> bytes:
    """Return a UUID made from a name, which no broker has given to a topic."""
    return sha256(name.encode()).digest()[:16]


class TopicIds:
    """Maps the suite's topics to their ids on one broker and back; absent ones have made-up ids."""

    def __init__(self, existing: Mapping[str, bytes]) -> None:
        absent = {name: made_up_id(name) for name in (*TOPICS, *ABSENT_TOPICS, DELETED_TOPIC)}
        self._ids = absent | dict(existing)
        self._names = {topic_id: name for name, topic_id in self._ids.items()}

    def id_of(self, name: str) -> bytes:
        """Return the id of a topic."""
        return self._ids[name]

    def name_of(self, topic_id: bytes) -> str:
        """Return the topic of an id, or ``?`` if it is not a topic of the suite."""
        return self._names.get(topic_id, "?")
