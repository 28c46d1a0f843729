"""Requests of members of share groups (KIP-932), and how one of these comes to read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aclbroker.conformance.behaviour.story import StoryEnded, Teller
from aclbroker.protocol.messages import (
    ApiKey,
    incremental_alter_configs,
    share_acknowledge,
    share_fetch,
)
from aclbroker.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest

_GROUP: Final = 32
_SET: Final = 0
_MOST_BEATS: Final = 1_000

Said = tuple[int, int, Sequence[int]]
"""The first and the last offset of records, and what is said of them."""


def beat(teller: Teller, member_id: str, epoch: int, **changes: Any) -> Any:
    """Return a ShareGroupHeartbeat; with the epoch 0 that of a new member that reads orders."""
    request = ShareGroupHeartbeatRequest(teller.group_id, member_id, epoch)
    if epoch == 0:
        request.subscribed_topic_names = [teller.name("orders")]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def configured(teller: Teller, **configs: str) -> None:
    """Give the story's group settings, as the super user: their names with underscores."""
    m = incremental_alter_configs
    changes = [
        m.AlterableConfig(f"share.{name.replace('_', '.')}", _SET, value)
        for name, value in configs.items()
    ]
    resource = m.AlterConfigsResource(_GROUP, teller.group_id, changes)
    teller.admin(ApiKey.INCREMENTAL_ALTER_CONFIGS, m.IncrementalAlterConfigsRequest([resource]), 1)
    teller.settle()


def joined(teller: Teller, member_id: str, **changes: Any) -> int:
    """Let a member join and wait for its partitions; returns its epoch.

    Only the answer that has them is kept: in Kafka partitions can be shared a moment later. Raises
    `StoryEnded` if it may not join.
    """
    key = ApiKey.SHARE_GROUP_HEARTBEAT
    answer = teller.quietly(key, beat(teller, member_id, 0, **changes), 1)
    for _ in range(_MOST_BEATS):
        if answer.error_code or (answer.assignment and answer.assignment.topic_partitions):
            break
        answer = teller.quietly(key, beat(teller, member_id, answer.member_epoch), 1)
    teller.keep(key, answer, f"{member_id} joins", 1)
    if answer.error_code:
        raise StoryEnded
    epoch: int = answer.member_epoch
    return epoch


def fetch(
    teller: Teller,
    member_id: str,
    epoch: int,
    said: Sequence[Said] | None = None,
    **changes: Any,
) -> Any:
    """Return a ShareFetch; ``said`` is said of records of the partition 0 of orders.

    Without it no partition is named, but for the first request of a session.
    """
    m = share_fetch
    request = m.ShareFetchRequest(teller.group_id, member_id, epoch)
    request.max_wait_ms = 10_000 if epoch == 0 else 0
    request.min_bytes, request.max_bytes = 1, 1 << 20
    request.max_records = request.batch_size = 500
    if said is not None or epoch == 0:
        batches = [m.AcknowledgementBatch(*each) for each in said or ()]
        partitions = [m.FetchPartition(0, batches)]
        request.topics = [m.FetchTopic(teller.ids["orders"], partitions)]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


def acknowledge(
    teller: Teller,
    member_id: str,
    epoch: int,
    *said: Said,
    partition: int = 0,
    **changes: Any,
) -> Any:
    """Return a ShareAcknowledge of records of a partition of orders."""
    m = share_acknowledge
    request = m.ShareAcknowledgeRequest(teller.group_id, member_id, epoch)
    batches = [m.AcknowledgementBatch(*each) for each in said]
    request.topics = [
        m.AcknowledgeTopic(teller.ids["orders"], [m.AcknowledgePartition(partition, batches)])
    ]
    for name, value in changes.items():
        setattr(request, name, value)
    return request


class Session:
    """A share session of a member, which counts its requests."""

    def __init__(self, teller: Teller, member_id: str) -> None:
        self._teller = teller
        self._member_id = member_id
        self._epoch = 0

    def fetch(
        self, about: str, said: Sequence[Said] | None = None, version: int = 2, **changes: Any
    ) -> Any:
        """Fetch with the next epoch."""
        request = fetch(self._teller, self._member_id, self._epoch, said, **changes)
        self._epoch += 1
        return self._teller.ask(ApiKey.SHARE_FETCH, request, about, version)

    def say(self, about: str, *said: Said, version: int = 2, **changes: Any) -> Any:
        """Acknowledge with the next epoch."""
        request = acknowledge(self._teller, self._member_id, self._epoch, *said, **changes)
        self._epoch += 1
        return self._teller.ask(ApiKey.SHARE_ACKNOWLEDGE, request, about, version)

    def renew(self, about: str, *said: Said, **changes: Any) -> Any:
        """Acknowledge with the next epoch, and say that it renews."""
        return self.say(about, *said, is_renew_ack=True, **changes)
