"""Checks that a topic keeps all messages, that it has lost none, and that none was missed.

Compaction never removes the beginning of a topic. So a topic whose first offset is above 0 has lost
messages: its cleanup.policy was not compact for a time, or a client has used DeleteRecords. It
counts as damaged until an operator confirms its use. A record in the topic keeps the confirmation,
so it holds for all brokers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.contents import Contents
from aclbroker.broker.stores.kafka.freshness import Freshness, Moment
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.topic import (
    Topic,
    policy_problem,
    retention_ms,
    warn_of_unknown_settings,
)
from aclbroker.broker.stores.store import StoreError, StoreUnavailable

log = get_logger()

KIND: Final = "topic"
"""The kind of the record with an operator's confirmation of the topic's first offset."""

_NAME: Final = "begin"
_LOOK_S: Final = 5.0
_BEHIND_S: Final = 20.0

Records = Mapping[tuple[str, str], str]


class TopicDamaged(StoreError):
    """A topic has lost messages."""


def confirmation(topic_id: str, begin: int) -> dict[tuple[str, str], str | None]:
    """Return the record by which an operator confirms that a topic begins at an offset."""
    return {(KIND, _NAME): f"{topic_id}:{begin}"}


def begin_problem(place: Place, topic_id: str, begin: int, records: Records) -> str:
    """Return why a topic with these records must not begin at an offset; "" if it may."""
    of_topic, _, confirmed = records.get((KIND, _NAME), "").rpartition(":")
    if begin == 0 or (of_topic == topic_id and confirmed.isdecimal() and begin <= int(confirmed)):
        return ""
    return (
        f"{place}: the messages before offset {begin} were deleted, so ACLs may be missing, DENYs "
        "among them. Compaction never does that: cleanup.policy was another for a time, or "
        "somebody used DeleteRecords. Restore a backup (aclbroker store restore); then confirm "
        f"that the topic is to be used as it is: aclbroker store accept --store {place}"
    )


class TopicHealth:
    """Checks that a topic is still the opened one, has all messages, and was read in time.

    With ``accepts_loss`` the settings and the first offset are not checked.
    """

    def __init__(self, place: Place, *, accepts_loss: bool = False) -> None:
        self._place = place
        self._accepts_loss = accepts_loss
        self._freshness = Freshness()
        self._is_damaged = False
        self._next = self._looked_s = 0.0
        self.topic: Topic | None = None
        """The topic that was opened."""

        self.problem = ""
        """Why changes are refused while reading goes on; "" if nothing is wrong."""

    @property
    def kept_ms(self) -> int | None:
        """How long the topic keeps removals; None if that is not known."""
        return self._freshness.kept_ms

    def begin(self, moment: Moment, kept_ms: int | None, connection: object) -> None:
        """Note that all messages committed before a moment were read, from the beginning on."""
        self._freshness.begin(moment, kept_ms, connection)
        self._next, self._looked_s = 0.0, Moment.now().boot_s
        if self._is_damaged:
            self._is_damaged = False
            self._tell("")

    def age_s(self, reader: Reader) -> float:
        """Return the seconds since all committed messages were known."""
        return self._freshness.age_s(reader.connection)

    def is_outdated(self, reader: Reader) -> bool:
        """Return whether Kafka may have dropped removals that were not read."""
        return self._freshness.is_over(reader.connection)

    def is_behind(self, reader: Reader) -> bool:
        """Return whether the reader was not at the end of the topic for long, within reach or not.

        The settings of the topic may have changed since.
        """
        return self.is_outdated(reader) or Moment.now().boot_s - self._looked_s > _BEHIND_S

    def require_fresh(self, reader: Reader) -> None:
        """Raise `StoreUnavailable` if Kafka may have dropped removals that were not read."""
        if self.is_outdated(reader):
            raise StoreUnavailable(self.why_outdated(reader))

    def why_outdated(self, reader: Reader) -> str:
        """Return why the topic is read anew."""
        kept = "not known" if self.kept_ms is None else self.kept_ms
        return (
            f"{self._place}: nothing was read for {self.age_s(reader):.0f} seconds, and the topic "
            f"may have dropped revokes since (its delete.retention.ms: {kept}); it is read anew "
            "from its beginning"
        )

    async def require_same(self, reader: Reader) -> None:
        """Raise `StoreError` if the topic of that name is not the one that was opened.

        A consumer asks by name, and would go on with the other one at the old offset.
        """
        wanted = self._topic_id
        if wanted and await reader.topic_id() not in ("", wanted):
            raise StoreError(
                f"{self._place}: the topic was deleted and made anew, so it is another one; start "
                "the broker anew to use it"
            )

    def require_whole(self, begin: int, records: Records) -> None:
        """Raise `TopicDamaged` if messages before an offset are missing without a confirmation."""
        problem = begin_problem(self._place, self._topic_id, begin, records)
        if problem and not self._accepts_loss:
            raise TopicDamaged(problem)

    async def look(
        self, reader: Reader, contents: Contents, read_up_to: Callable[[int], Awaitable[None]]
    ) -> None:
        """Check the topic, and note that all of it is known once it was ``read_up_to`` its end.

        Raises `StoreUnavailable`, and `StoreError` if the topic is another one, or must be read
        anew.
        """
        moment, connection = Moment.now(), reader.connection
        await self.require_same(reader)
        if not self._accepts_loss:
            await self._look_at_settings(reader, contents.records)
        await read_up_to(await reader.end())
        # The process may have been stopped meanwhile.
        self.require_fresh(reader)
        is_same = reader.connection is connection
        self._freshness.note(moment, connection if is_same else None)
        self._looked_s = moment.boot_s

    async def _look_at_settings(self, reader: Reader, records: Records) -> None:
        """Check the settings and the first offset, at most once in `_LOOK_S`."""
        now = asyncio.get_running_loop().time()
        # Settings that were read before a loss of contact may have changed.
        if now < self._next and self.age_s(reader) < _LOOK_S:
            return
        settings, begin = await reader.settings(), await reader.first()
        self._next = now + _LOOK_S
        if settings is None and self.kept_ms is not None:
            warn_of_unknown_settings(self._place)
        self._freshness.take_setting(retention_ms(settings))
        damage = begin_problem(self._place, self._topic_id, begin, records)
        if self._is_damaged and not damage:
            raise StoreError(f"{self._place}: it is read anew, since its beginning was confirmed")
        self._is_damaged = bool(damage)
        self._tell(damage or ("" if settings is None else policy_problem(self._place, settings)))

    @property
    def _topic_id(self) -> str:
        return "" if self.topic is None else self.topic.topic_id

    def _tell(self, problem: str) -> None:
        if problem and problem != self.problem:
            log.error("topic for ACLs loses messages", reason=problem)
        elif self.problem and not problem:
            log.info("topic for ACLs is as it must be again", store=str(self._place))
        self.problem = problem
