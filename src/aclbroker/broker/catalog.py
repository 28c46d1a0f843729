"""The topics and groups that a standalone broker is told it has, for trying rules out.

They are empty: nothing can be written to a topic, nobody is in a group.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import Final

METADATA_TOPIC: Final = "__cluster_metadata"
GROUPS_TOPIC: Final = "__consumer_offsets"
TRANSACTIONS_TOPIC: Final = "__transaction_state"
SHARES_TOPIC: Final = "__share_group_state"
INTERNAL_TOPICS: Final = frozenset((GROUPS_TOPIC, TRANSACTIONS_TOPIC, SHARES_TOPIC))


def java_order(name: str) -> bytes:
    """Return a key by which names sort as in Java, where UTF-16 code units are compared."""
    return name.encode("utf-16-be")


def new_topic_id() -> bytes:
    """Return a random UUID of 16 bytes.

    Whoever can work out a topic's id learns from the answers 29 and 100 whether the topic exists.
    """
    return uuid.uuid4().bytes


class Catalog:
    """Declared topics, with their number of partitions, and groups.

    ``node_id`` is the one broker's. With ``auto_creates``, who may not create a missing topic that
    is asked for is refused as in Kafka; it is not created all the same.
    """

    knows_at_once = True
    """Whether `known` never returns an awaitable."""

    def __init__(
        self,
        topics: Mapping[str, int] | None = None,
        groups: Iterable[str] = (),
        node_id: int = 1,
        *,
        auto_creates: bool = True,
        topic_ids: Mapping[str, bytes] | None = None,
    ) -> None:
        self.node_id = node_id
        self.auto_creates = auto_creates
        self.topics = dict(topics or {})
        self.groups = tuple(dict.fromkeys(groups))
        ids = topic_ids if topic_ids is not None else {name: new_topic_id() for name in self.topics}
        self._ids = {name: ids[name] for name in self.topics}
        self._names = {topic_id: name for name, topic_id in self._ids.items()}

    def take_id(self, name: str, topic_id: bytes) -> None:
        """Give a topic that there is another id."""
        self._names.pop(self._ids[name], None)
        self._ids[name] = topic_id
        self._names[topic_id] = name

    def known(self, _row: object, _request: object) -> Catalog:
        """Return what is known of the topics of a request: all that there is, at once."""
        return self

    def exists(self, name: str) -> bool:
        """Tell whether there is a topic of that name."""
        return name in self.topics

    def has_partition(self, name: str | None, partition: int) -> bool:
        """Tell whether there is a topic of that name with that partition."""
        return name is not None and 0 <= partition < self.topics.get(name, 0)

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic has it."""
        return self._names.get(topic_id)

    def keeps_session(self, _session_id: int) -> bool:
        """Tell that there are no sessions of Fetch requests: nothing can be fetched."""
        return False

    def id_of(self, name: str) -> bytes:
        """Return a topic's id of 16 bytes; raises KeyError if there is no such topic."""
        return self._ids[name]
