"""ShareFetch: records for a member of a share group, as soon as there are some.

The rights to read the group and its topics are asked for again after each wait, and for all topics
of a session, so that a right that was taken away holds at once.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.share.answer import Answer
from aclbroker.broker.backends.memory.share.reading import Room, available, taken
from aclbroker.broker.backends.memory.share.said import (
    carry_out,
    partition_at,
    said_of,
    session_key,
)
from aclbroker.broker.backends.memory.waiting import Reply, forget
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups import GroupError
from aclbroker.broker.memory.log import PartitionLog
from aclbroker.broker.memory.share import ShareError, SharePartition, ShareSession
from aclbroker.broker.memory.share.partition import Wanted
from aclbroker.broker.memory.share.partitions import Place
from aclbroker.broker.memory.share.sessions import FINAL
from aclbroker.broker.memory.topics import Partition
from aclbroker.broker.turns import whole
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from aclbroker.turns import in_turns

_MOST_BYTES: Final = 55 << 20
"""What ``fetch.max.bytes`` of a broker is by default."""

_RECORD_LIMIT: Final = 1
"""The acquire mode in which a member gets no more records than it asks for (KIP-1206)."""

_Found = tuple[Place, PartitionLog, SharePartition]


def share_fetch(
    backend: MemoryBackend, rights: RequestRights, request: ShareFetchRequest
) -> ShareFetchResponse:
    """Let what a member says of its records count, and give it others."""
    memory = backend.cluster
    try:
        _check(request)
        session = _session(backend, rights, request)
    except ShareError as why:
        if why.code == ErrorCode.SHARE_SESSION_LIMIT_REACHED:
            # As in Kafka: a client that is told at once asks again at once.
            Reply[None](memory, max(0, request.max_wait_ms)).wait()
        return ShareFetchResponse(0, why.code, why.message)
    session.connection = rights.context.session.connection
    answer = Answer(backend, rights, session, is_new=request.share_session_epoch == 0)
    is_over = request.share_session_epoch == FINAL
    with whole():
        outcomes = carry_out(backend, rights, request, said_of(request.topics))
        if is_over:
            memory.end_share_session(session)
    if not is_over and not request.is_renew_ack and request.max_records:
        _fetch(backend, rights, request, answer)
    answer.add_outcomes(outcomes)
    return answer.response()


def _check(request: ShareFetchRequest) -> None:
    """Raise ShareError with INVALID_REQUEST if a request contradicts itself."""
    limits = (request.max_wait_ms, request.min_bytes, request.max_bytes, request.max_records)
    says_something = any(
        each.acknowledgement_batches
        for topic in in_turns(request.topics)
        for each in in_turns(topic.partitions)
    )
    why = None
    if request.share_acquire_mode not in (0, _RECORD_LIMIT):
        why = "ShareAcquireMode must be 0 or 1."
    elif request.is_renew_ack and any(limits):
        why = "A request that renews acknowledges only: it must ask for no records."
    elif request.share_session_epoch == 0 and says_something:
        why = "The first request of a session must acknowledge nothing."
    if why is not None:
        raise ShareError(ErrorCode.INVALID_REQUEST, why)


def _session(
    backend: MemoryBackend, rights: RequestRights, request: ShareFetchRequest
) -> ShareSession:
    """Return the session of a request, changed as it says; raises ShareError."""
    sessions = backend.cluster.share_sessions
    key = session_key(backend, rights, request)
    # Refused topics are part of the session, too: they may be allowed later.
    places: list[Place] = [
        (topic.topic_id, each.partition_index)
        for topic in in_turns(rights.asked.topics)
        for each in in_turns(topic.partitions)
    ]
    forgotten: list[Place] = [
        (topic.topic_id, index)
        for topic in in_turns(request.forgotten_topics_data)
        for index in in_turns(topic.partitions)
    ]
    # Nothing pauses from here on: while others have their turn, the session may be another.
    if request.share_session_epoch == 0:
        return sessions.open(key, places, rights.context.session.connection)
    session = sessions.expected(key, request.share_session_epoch)
    if request.share_session_epoch != FINAL:
        sessions.change(session, places, forgotten)
    return session


def _fetch(
    backend: MemoryBackend, rights: RequestRights, request: ShareFetchRequest, answer: Answer
) -> None:
    """Wait until there are records to acquire, and acquire them."""
    memory = backend.cluster
    refused_before = _refused_before(rights, request)
    places = [each for each in in_turns(answer.session.rotated()) if each[0] not in refused_before]
    until = memory.clock.now_ms() + max(0, request.max_wait_ms)
    refused_at_first: int | None = None
    while True:
        answer.entries.clear()
        if not rights.allowed("member", (request.group_id,)):
            for place in in_turns(places):
                answer.refuse(place, ErrorCode.GROUP_AUTHORIZATION_FAILED)
            return
        found = _found(backend, rights, request, places, answer)
        refused = len(answer.entries)
        left = until - memory.clock.now_ms()
        # Who was refused more while it waited is told at once.
        is_over = left <= 0 or memory.is_closed or not found
        is_over |= refused_at_first is not None and refused != refused_at_first
        refused_at_first = refused
        # Before anything is looked at: what changes after that is looked at again.
        seen = _seen(found)
        if _acquire(backend, request, found, answer, is_over=is_over) or is_over:
            return
        _wait(backend, found, seen, left)


def _refused_before(rights: RequestRights, request: ShareFetchRequest) -> set[bytes]:
    """Return the topics that the gate has refused, which it puts into the answer itself."""
    allowed = {topic.topic_id for topic in in_turns(request.topics)}
    return {topic.topic_id for topic in in_turns(rights.asked.topics)} - allowed


def _found(
    backend: MemoryBackend,
    rights: RequestRights,
    request: ShareFetchRequest,
    places: Sequence[Place],
    answer: Answer,
) -> list[_Found]:
    """Return the partitions that can be read; the answer tells why others cannot."""
    denied = _denied(backend, rights, places)
    found = []
    for place in in_turns(places):
        name = backend.cluster.topics.name_of(place[0])
        partition = partition_at(backend, place)
        if name in denied:
            answer.refuse(place, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        elif partition is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            answer.refuse(place, ErrorCode.UNKNOWN_TOPIC_ID if name is None else unknown)
        elif partition.leader != backend.node(rights).node_id:
            answer.refuse(place, ErrorCode.NOT_LEADER_OR_FOLLOWER)
        else:
            try:
                found.append((place, partition.log, _opened(backend, request, place, partition)))
            except GroupError as why:
                answer.refuse(place, why.code, why.message)
    return found


def _opened(
    backend: MemoryBackend, request: ShareFetchRequest, place: Place, partition: Partition
) -> SharePartition:
    shares = backend.cluster.share_partitions
    group_id = request.group_id or ""
    if not shares.is_shared(group_id, place):
        # As Kafka says it, whose share coordinator has no state of it.
        raise GroupError(
            ErrorCode.UNKNOWN_SERVER_ERROR, "The group has not begun to share the partition."
        )
    return shares.open(group_id, place, partition.log)


def _denied(
    backend: MemoryBackend, rights: RequestRights, places: Collection[Place]
) -> set[str | None]:
    """Return the topics of a session that it may not read now."""
    counts: dict[str | None, int] = {}
    for topic_id, _ in in_turns(places):
        name = backend.cluster.topics.name_of(topic_id)
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return counts.keys() - rights.allowed("session", counts) if counts else set()


def _acquire(
    backend: MemoryBackend,
    request: ShareFetchRequest,
    found: Sequence[_Found],
    answer: Answer,
    *,
    is_over: bool,
) -> bool:
    """Acquire records, if there are enough or the time is up; tell whether some were acquired."""
    if not found:
        return False
    committed = backend.cluster.share_partitions.reads_committed(request.group_id or "")
    max_bytes = min(request.max_bytes, _MOST_BYTES) // len(found)
    at_first = Room(max_bytes, whole=True)
    size = 0
    for _, log, shared in in_turns(found):
        size += available(log, shared, at_first, committed=committed)
        if size >= request.min_bytes:
            break
    if size < request.min_bytes and not is_over:
        return False
    count = size = 0
    for place, log, shared in in_turns(found, 1):
        if not shared.can_acquire:
            continue
        wanted = Wanted(
            request.member_id or "",
            request.max_records - count,
            request.batch_size,
            request.share_acquire_mode == _RECORD_LIMIT,
        )
        some = taken(log, shared, wanted, Room(max_bytes, whole=not size), committed=committed)
        size += some.size
        count += sum(each.last - each.first + 1 for each in some.acquired)
        answer.add(place, some)
    return count > 0


def _seen(found: Sequence[_Found]) -> list[tuple[int, int]]:
    """Return where each log ends, and what can be acquired of it first."""
    return [(log.end_offset, shared.next_offset) for _, log, shared in in_turns(found)]


def _wait(
    backend: MemoryBackend,
    found: Sequence[_Found],
    seen: Sequence[tuple[int, int]],
    milliseconds: float,
) -> None:
    """Wait for a change of any partition since it was seen, or until the time is up."""
    reply: Reply[bool] = Reply(backend.cluster, milliseconds)

    def say() -> None:
        reply.say(True)

    try:
        for _, log, shared in in_turns(found):
            log.on_change.add(say)
            shared.on_change.add(say)
        if seen != _seen(found):
            say()
        reply.wait()
    finally:
        changes = [
            called for _, log, shared in found for called in (log.on_change, shared.on_change)
        ]
        forget(backend.cluster.clock, changes, say)
