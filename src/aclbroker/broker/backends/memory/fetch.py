"""Fetch, of a cluster in memory: reads partitions, waits for records, and keeps sessions (KIP-227).

The rights to read are asked for again after each wait, and for all partitions of a session, so that
a right that was taken away holds at once.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, NamedTuple

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.waiting import Reply, forget
from aclbroker.broker.gate.conditions import is_follower
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.log import PartitionLog, Read
from aclbroker.broker.memory.sessions import FetchedPartition, FetchSession, Key
from aclbroker.broker.memory.topics import Partition
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from aclbroker.protocol.pieces import Pieces
from aclbroker.turns import in_turns

_FIRST_VERSION_WITH_IDS: Final = 13
_FIRST_VERSION_WITH_LEADERS: Final = 12
_MOST_BYTES: Final = 55 << 20
"""What ``fetch.max.bytes`` of a broker is by default."""

_COPIED: Final = 16_384
_FINAL: Final = -1
_LONGEST_NAME: Final = 249


class _Asked(NamedTuple):
    """What a request asks for; ``session`` is None without one, and ``is_new`` if it begins it."""

    partitions: Collection[FetchedPartition]
    session: FetchSession | None
    is_new: bool


class _Answer:
    """The answer as far as it was read: the data of each partition, and how many bytes it has.

    ``logs`` are those that were read, each with where it ended then. ``refused`` is how many
    partitions are not there, or may not be read: as in Kafka they let a request wait for others.
    """

    def __init__(self) -> None:
        self.entries: list[tuple[FetchedPartition, PartitionData]] = []
        self.size = 0
        self.has_error = False
        self.refused = 0
        self.logs: list[tuple[PartitionLog, int]] = []
        self.leaders: set[int] = set()

    def add(self, asked: FetchedPartition, data: PartitionData, size: int = 0) -> None:
        """Add the data of a partition."""
        self.entries.append((asked, data))
        self.size += size
        self.has_error |= bool(data.error_code)

    def refuse(self, asked: FetchedPartition, data: PartitionData) -> None:
        """Add a partition that is not there, or may not be read."""
        self.entries.append((asked, data))
        self.refused += 1


def fetch(backend: MemoryBackend, rights: RequestRights, request: FetchRequest) -> FetchResponse:
    """Answer with records, as many as the request allows and as soon as there are enough."""
    memory = backend.cluster
    asked = _open(backend, rights, request)
    if isinstance(asked, ErrorCode):
        return FetchResponse(error_code=asked)
    refused = _refused_before(rights, request)
    partitions = [each for each in in_turns(asked.partitions) if each.key[0] not in refused]
    refused_at_first: int | None = None
    until = memory.clock.now_ms() + max(0, request.max_wait_ms)
    while True:
        unnamed = partitions if refused_at_first is not None or not asked.is_new else ()
        answer = _read_all(backend, rights, request, partitions, _denied(backend, rights, unnamed))
        if refused_at_first is None:
            refused_at_first = answer.refused
        left = until - memory.clock.now_ms()
        # Who was refused more while it waited is told at once.
        enough = answer.has_error or answer.refused > refused_at_first
        enough |= answer.size >= request.min_bytes or answer.refused == len(partitions)
        if enough or left <= 0 or memory.is_closed:
            break
        _wait(backend, answer, left)
    return _response(backend, rights, asked, answer)


def _open(
    backend: MemoryBackend, rights: RequestRights, request: FetchRequest
) -> _Asked | ErrorCode:
    """Return what is asked for, after what the session of the request says."""
    memory = backend.cluster
    now = memory.clock.now_ms()
    owner = rights.context.session.principals[0]
    by_ids = rights.context.api_version >= _FIRST_VERSION_WITH_IDS
    named = {each.key: each for each in in_turns(_named(rights.asked))}
    is_short = _is_short(named)
    forgotten: list[Key] = [
        (topic.topic or topic.topic_id, index)
        for topic in in_turns(request.forgotten_topics_data)
        for index in in_turns(topic.partitions)
    ]
    # Nothing pauses from here on: while others have their turn, the session may end.
    session = memory.fetch_sessions.get(request.session_id, owner)
    if request.session_epoch <= 0:
        if session is not None:
            memory.fetch_sessions.close(session)
        opened = None
        if request.session_epoch != _FINAL and not is_follower(request) and is_short:
            opened = memory.fetch_sessions.open(owner, named, now, by_ids=by_ids)
        return _Asked(named.values(), opened, is_new=True)
    if session is None:
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    if session.epoch != request.session_epoch:
        return ErrorCode.INVALID_FETCH_SESSION_EPOCH
    if session.by_ids != by_ids:
        return ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR
    kept = memory.fetch_sessions.change(session, named.values(), forgotten)
    memory.fetch_sessions.used(session, now)
    if not kept or not is_short:
        memory.fetch_sessions.close(session)
        return ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    return _Asked(list(session.partitions.values()), session, is_new=False)


def _named(request: FetchRequest) -> list[FetchedPartition]:
    named = []
    for topic in in_turns(request.topics):
        for entry in in_turns(topic.partitions):
            each = FetchedPartition(topic.topic, topic.topic_id, entry.partition)
            each.fetch_offset = entry.fetch_offset
            each.max_bytes = entry.partition_max_bytes
            each.current_epoch = entry.current_leader_epoch
            each.last_epoch = entry.last_fetched_epoch
            named.append(each)
    return named


def _is_short(named: dict[Key, FetchedPartition]) -> bool:
    """Tell whether a session may remember all names."""
    return all(len(key[0]) <= _LONGEST_NAME for key in in_turns(named))


def _refused_before(rights: RequestRights, request: FetchRequest) -> set[str | bytes]:
    """Return the topics that the gate has refused, which it puts into the answer itself."""
    allowed = {topic.topic or topic.topic_id for topic in in_turns(request.topics)}
    return {topic.topic or topic.topic_id for topic in in_turns(rights.asked.topics)} - allowed


def _topic(backend: MemoryBackend, rights: RequestRights, asked: FetchedPartition) -> str | None:
    """Return the name of the topic; None for an id that no topic has, such as zero."""
    if rights.context.api_version >= _FIRST_VERSION_WITH_IDS:
        return backend.cluster.topics.name_of(asked.topic_id)
    return asked.topic


def _denied(
    backend: MemoryBackend, rights: RequestRights, partitions: Collection[FetchedPartition]
) -> set[str | None]:
    """Return the topics that the session may not read now."""
    need = rights.declared("session")
    if need.when is not None and not need.when(rights.asked):
        return set()
    counts: dict[str | None, int] = {}
    for each in in_turns(partitions):
        name = _topic(backend, rights, each)
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return counts.keys() - rights.allowed("session", counts) if counts else set()


def _read_all(
    backend: MemoryBackend,
    rights: RequestRights,
    request: FetchRequest,
    partitions: Collection[FetchedPartition],
    denied: Collection[str | None],
) -> _Answer:
    answer = _Answer()
    room = min(request.max_bytes, _MOST_BYTES)
    for asked in in_turns(partitions):
        name = _topic(backend, rights, asked)
        partition = backend.cluster.topics.partition(name, asked.index)
        if name in denied and name is not None:
            answer.refuse(asked, _unread(asked, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
        elif partition is None:
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if name is None:
                unknown = ErrorCode.UNKNOWN_TOPIC_ID
            answer.refuse(asked, _unread(asked, unknown))
        elif (code := _wrong_leader(backend, rights, asked, partition)) is not None:
            data = _error(asked, code)
            if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                _tell_leader(rights, partition, data, answer)
            answer.add(asked, data)
        else:
            before = answer.size
            _read(request, asked, partition, room, answer)
            room = max(0, room - (answer.size - before))
    return answer


def _wrong_leader(
    backend: MemoryBackend, rights: RequestRights, asked: FetchedPartition, partition: Partition
) -> ErrorCode | None:
    if partition.leader != backend.node(rights).node_id:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    if asked.current_epoch < 0 or asked.current_epoch == partition.log.leader_epoch:
        return None
    if asked.current_epoch < partition.log.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.UNKNOWN_LEADER_EPOCH


def _tell_leader(
    rights: RequestRights, partition: Partition, data: PartitionData, answer: _Answer
) -> None:
    if rights.context.api_version >= _FIRST_VERSION_WITH_LEADERS:
        data.current_leader = LeaderIdAndEpoch(partition.leader, partition.log.leader_epoch)
        answer.leaders.add(partition.leader)


def _read(
    request: FetchRequest,
    asked: FetchedPartition,
    partition: Partition,
    room: int,
    answer: _Answer,
) -> None:
    most = min(asked.max_bytes, room)
    if most < 0:
        answer.add(asked, _error(asked, ErrorCode.UNKNOWN_SERVER_ERROR))
        return
    try:
        diverging = _diverging(asked, partition.log)
        if diverging is not None:
            answer.add(asked, diverging)
            return
        read = partition.log.read(
            asked.fetch_offset, most, whole=not answer.size, committed=request.isolation_level == 1
        )
    except LogError as why:
        answer.add(asked, _error(asked, why.code))
        return
    answer.logs.append((partition.log, read.end_offset))
    answer.add(asked, _data(asked, read), read.size)


def _diverging(asked: FetchedPartition, log: PartitionLog) -> PartitionData | None:
    """Return where the log ends in an epoch that the client has read beyond it (KIP-595).

    Returns None if it has not. Raises `LogError` with OFFSET_OUT_OF_RANGE for an unknown epoch.
    """
    if asked.last_epoch < 0:
        return None
    epoch, end = log.epoch_end(asked.last_epoch)
    if end < 0:
        raise LogError(ErrorCode.OFFSET_OUT_OF_RANGE)
    if asked.fetch_offset <= end:
        return None
    return PartitionData(
        asked.index,
        ErrorCode.NONE,
        log.end_offset,
        log.last_stable_offset,
        log.start_offset,
        diverging_epoch=EpochEndOffset(epoch, end),
        aborted_transactions=None,
        records=b"",
    )


def _data(asked: FetchedPartition, read: Read) -> PartitionData:
    records: Any = Pieces(read.parts) if read.size > _COPIED else b"".join(read.parts)
    aborted = None
    if read.aborted is not None:
        aborted = [
            AbortedTransaction(each.producer_id, each.first_offset)
            for each in in_turns(read.aborted)
        ]
    return PartitionData(
        asked.index,
        ErrorCode.NONE,
        read.end_offset,
        read.last_stable_offset,
        read.start_offset,
        aborted_transactions=aborted,
        records=records,
    )


def _error(asked: FetchedPartition, code: ErrorCode) -> PartitionData:
    return PartitionData(
        asked.index, code, high_watermark=-1, aborted_transactions=None, records=b""
    )


def _unread(asked: FetchedPartition, code: ErrorCode) -> PartitionData:
    """Return the entry of a partition that Kafka refuses before it reads any partition."""
    data = _error(asked, code)
    data.aborted_transactions = []
    return data


def _wait(backend: MemoryBackend, answer: _Answer, milliseconds: float) -> None:
    """Wait for a change of any of the logs since they were read, or until the time is up."""
    reply: Reply[bool] = Reply(backend.cluster, milliseconds)

    def say() -> None:
        reply.say(True)

    try:
        for log, _ in in_turns(answer.logs):
            log.on_change.add(say)
        if any(log.end_offset != end for log, end in in_turns(answer.logs)):
            say()
        reply.wait()
    finally:
        forget(backend.cluster.clock, [log.on_change for log, _ in answer.logs], say)


def _response(
    backend: MemoryBackend, rights: RequestRights, asked: _Asked, answer: _Answer
) -> FetchResponse:
    session = asked.session
    topics: dict[str | bytes, FetchableTopicResponse] = {}
    for each, data in in_turns(answer.entries):
        if session is not None and not _is_told(session, each, data, is_new=asked.is_new):
            continue
        topic = topics.get(each.key[0])
        if topic is None:
            topic = FetchableTopicResponse(each.topic, each.topic_id, [])
            topics[each.key[0]] = topic
        topic.partitions.append(data)  # type: ignore[attr-defined] # made as a list above
    response = FetchResponse(responses=list(in_turns(topics.values())))
    if session is not None and session.session_id in backend.cluster.fetch_sessions:
        response.session_id = session.session_id
    if answer.leaders:
        response.node_endpoints = [
            NodeEndpoint(*node) for node in backend.nodes(rights) if node.node_id in answer.leaders
        ]
    return response


def _is_told(
    session: FetchSession, each: FetchedPartition, data: PartitionData, *, is_new: bool
) -> bool:
    """Tell whether a session is told of a partition: of errors, records and what has changed."""
    changed = (
        bool(data.records)
        or each.high_watermark != data.high_watermark
        or each.start_offset != data.log_start_offset
    )
    # An error is told each time, and when it is over.
    each.high_watermark = -1 if data.error_code else data.high_watermark
    each.start_offset = data.log_start_offset
    if data.records:
        session.had_records(each.key)
    return is_new or changed or bool(data.error_code)
