"""What ShareFetch and ShareAcknowledge say of records that a member has."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.share import ShareError
from aclbroker.broker.memory.share.acknowledging import Acknowledgement, Kind, acknowledge
from aclbroker.broker.memory.share.partitions import Place
from aclbroker.broker.memory.share.sessions import Key
from aclbroker.broker.memory.topics import Partition
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns


class Outcome(NamedTuple):
    """What became of what was said of the records of a partition: a code, and a message."""

    code: int = ErrorCode.NONE
    message: str | None = None


DONE: Final = Outcome()


def session_key(backend: MemoryBackend, rights: RequestRights, request: Any) -> Key:
    """Return whose session a request is of."""
    return Key(backend.node(rights).node_id, request.group_id, request.member_id)


def said_of(topics: Iterable[Any]) -> dict[Place, Sequence[Any]]:
    """Return what a request says of records, by partition; what is said last of one counts."""
    return {
        (topic.topic_id, each.partition_index): each.acknowledgement_batches
        for topic in in_turns(list(topics))
        for each in in_turns(topic.partitions)
        if each.acknowledgement_batches
    }


def carry_out(
    backend: MemoryBackend,
    rights: RequestRights,
    request: Any,
    said: Mapping[Place, Sequence[Any]],
) -> dict[Place, Outcome]:
    """Let what a request says of records count; returns what became of it, by partition."""
    return {
        place: _carried_out(backend, rights, request, place, batches)
        for place, batches in in_turns(list(said.items()), 1)
    }


def _carried_out(
    backend: MemoryBackend,
    rights: RequestRights,
    request: Any,
    place: Place,
    batches: Sequence[Any],
) -> Outcome:
    memory = backend.cluster
    wanted = _valid(backend, rights, request, batches)
    if wanted is None:
        return Outcome(ErrorCode.INVALID_REQUEST, "The acknowledgement batches are invalid.")
    partition = partition_at(backend, place)
    shared = memory.share_partitions.find(request.group_id, place)
    if partition is None or shared is None:
        return Outcome(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    if partition.leader != backend.node(rights).node_id:
        return Outcome(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    try:
        acknowledge(shared, request.member_id, wanted)
    except ShareError as why:
        return Outcome(why.code, why.message)
    return DONE


def partition_at(backend: MemoryBackend, place: Place) -> Partition | None:
    """Return a partition of a topic's id, None if there is none."""
    topics = backend.cluster.topics
    return topics.partition(topics.name_of(place[0]), place[1])


def _valid(
    backend: MemoryBackend, rights: RequestRights, request: Any, batches: Sequence[Any]
) -> list[Acknowledgement] | None:
    """Return what is said of records, None if that is contradictory or not to be said."""
    allows = backend.cluster.groups.configs.flag(request.group_id, "share.renew.acknowledge.enable")
    most = Kind.RENEW if request.is_renew_ack and allows else Kind.REJECT
    behind = 0
    found = []
    for batch in in_turns(batches):
        kinds = batch.acknowledge_types
        count = batch.last_offset - batch.first_offset + 1
        # As in Kafka one batch may begin where the one before ends, which the partition refuses.
        is_possible = batch.first_offset >= behind and count > 0 and len(kinds) in (1, count)
        if not is_possible or not all(Kind.GAP <= kind <= most for kind in in_turns(kinds)):
            return None
        behind = batch.last_offset
        found.append(Acknowledgement(batch.first_offset, batch.last_offset, kinds))
    return found
