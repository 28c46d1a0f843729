"""The keys of transactions: from requests to `memory.transactions`.

Below some version a client does not know PRODUCER_FENCED, and is told INVALID_PRODUCER_EPOCH.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.coordinators import is_elsewhere
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.name_regex import NameRegex, NameRegexError
from aclbroker.broker.memory.transaction import (
    NO_EPOCH,
    NO_PRODUCER_ID,
    Outcome,
    Producer,
    Transaction,
)
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.add_offsets_to_txn import (
    AddOffsetsToTxnRequest,
    AddOffsetsToTxnResponse,
)
from aclbroker.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
)
from aclbroker.protocol.messages.describe_transactions import (
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    TopicData,
)
from aclbroker.protocol.messages.describe_transactions import TransactionState as DescribedState
from aclbroker.protocol.messages.end_txn import EndTxnRequest, EndTxnResponse
from aclbroker.protocol.messages.init_producer_id import (
    InitProducerIdRequest,
    InitProducerIdResponse,
)
from aclbroker.protocol.messages.list_transactions import (
    ListTransactionsRequest,
    ListTransactionsResponse,
)
from aclbroker.protocol.messages.list_transactions import TransactionState as ListedState
from aclbroker.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from aclbroker.turns import in_turns

_FENCED_IN_INIT: Final = 4
_FENCED: Final = 2
_LAST_OF_CLIENTS: Final = 3
_SECOND_VERSION_IN_END: Final = 5
_SECOND_VERSION_IN_COMMIT: Final = 5
_ABORTABLE_IN_COMMIT: Final = 4

_STATES: Final = frozenset(
    (
        *("Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
        *("Empty", "Dead", "PrepareEpochFence"),
    )
)
"""The names of states that Kafka knows; a cluster in memory has no PrepareEpochFence, no Dead."""


def init_producer_id(
    backend: MemoryBackend, rights: RequestRights, request: InitProducerIdRequest
) -> InitProducerIdResponse:
    """Give a producer its id and epoch; without a transactional id always a new one."""
    outcome = _initialized(backend, rights, request)
    code = _told(outcome.code, rights, _FENCED_IN_INIT)
    return InitProducerIdResponse(0, code, *outcome.producer)


def _initialized(
    backend: MemoryBackend, rights: RequestRights, request: InitProducerIdRequest
) -> Outcome:
    transactional_id, expected = request.transactional_id, None
    if (request.producer_id, request.producer_epoch) != (NO_PRODUCER_ID, NO_EPOCH):
        if request.producer_id == NO_PRODUCER_ID or request.producer_epoch == NO_EPOCH:
            return Outcome(ErrorCode.INVALID_REQUEST)
        expected = Producer(request.producer_id, request.producer_epoch)
    if transactional_id is None:
        return Outcome(ErrorCode.NONE, Producer(next(backend.cluster.producer_ids), 0))
    if transactional_id and is_elsewhere(backend, rights, transactional_id):
        return Outcome(ErrorCode.NOT_COORDINATOR)
    timeout_ms = request.transaction_timeout_ms
    return backend.cluster.transactions.initialize(transactional_id, timeout_ms, expected)


def add_partitions_to_txn(
    backend: MemoryBackend, rights: RequestRights, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse:
    """Add partitions to a transaction, all of them or none; brokers also ask whether they are in.

    Beside one that does not exist the others get OPERATION_NOT_ATTEMPTED.
    """
    if rights.context.api_version <= _LAST_OF_CLIENTS:
        producer = Producer(request.v3_and_below_producer_id, request.v3_and_below_producer_epoch)
        return AddPartitionsToTxnResponse(
            results_by_topic_v3_and_below=_added(
                backend,
                rights,
                request.v3_and_below_transactional_id,
                producer,
                request.v3_and_below_topics,
            )
        )
    return AddPartitionsToTxnResponse(
        results_by_transaction=[
            AddPartitionsToTxnResult(
                each.transactional_id,
                _added(
                    backend,
                    rights,
                    each.transactional_id,
                    Producer(each.producer_id, each.producer_epoch),
                    each.topics,
                    verifies=each.verify_only,
                ),
            )
            for each in in_turns(request.transactions)
        ]
    )


def _added(
    backend: MemoryBackend,
    rights: RequestRights,
    transactional_id: str,
    producer: Producer,
    topics: Sequence[AddPartitionsToTxnTopic],
    *,
    verifies: bool = False,
) -> list[AddPartitionsToTxnTopicResult]:
    known, transactions = backend.cluster.topics, backend.cluster.transactions
    # What is kept of many requests has each name once.
    asked = [
        (sys.intern(topic.name), index)
        for topic in in_turns(topics)
        for index in in_turns(topic.partitions)
    ]
    missing = {each for each in in_turns(asked) if not known.has_partition(*each)}
    if missing:
        return _results(
            topics,
            lambda each: (
                ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                if each in missing
                else ErrorCode.OPERATION_NOT_ATTEMPTED
            ),
        )
    if transactional_id and is_elsewhere(backend, rights, transactional_id):
        return _results(topics, lambda _: ErrorCode.NOT_COORDINATOR)
    if verifies:
        return _results(
            topics, lambda each: transactions.verify(transactional_id, producer, partition=each)
        )
    code = _told(transactions.add(transactional_id, producer, asked), rights, _FENCED)
    return _results(topics, lambda _: code)


def _results(
    topics: Sequence[AddPartitionsToTxnTopic], code_of: Callable[[tuple[str, int]], ErrorCode]
) -> list[AddPartitionsToTxnTopicResult]:
    return [
        AddPartitionsToTxnTopicResult(
            topic.name,
            [
                AddPartitionsToTxnPartitionResult(index, code_of((topic.name, index)))
                for index in in_turns(topic.partitions)
            ],
        )
        for topic in in_turns(topics)
    ]


def add_offsets_to_txn(
    backend: MemoryBackend, rights: RequestRights, request: AddOffsetsToTxnRequest
) -> AddOffsetsToTxnResponse:
    """Add a group to a transaction, which may then commit offsets of it."""
    if request.transactional_id and is_elsewhere(backend, rights, request.transactional_id):
        return AddOffsetsToTxnResponse(0, ErrorCode.NOT_COORDINATOR)
    producer = Producer(request.producer_id, request.producer_epoch)
    code = backend.cluster.transactions.add(
        request.transactional_id, producer, groups=[request.group_id]
    )
    return AddOffsetsToTxnResponse(0, _told(code, rights, _FENCED))


def end_txn(
    backend: MemoryBackend, rights: RequestRights, request: EndTxnRequest
) -> EndTxnResponse:
    """Commit or abort a transaction; from version 5 on the producer has another epoch then."""
    if request.transactional_id and is_elsewhere(backend, rights, request.transactional_id):
        return EndTxnResponse(0, ErrorCode.NOT_COORDINATOR)
    outcome = backend.cluster.transactions.end(
        request.transactional_id,
        Producer(request.producer_id, request.producer_epoch),
        commits=request.committed,
        by_second_version=rights.context.api_version >= _SECOND_VERSION_IN_END,
    )
    return EndTxnResponse(0, _told(outcome.code, rights, _FENCED), *outcome.producer)


def txn_offset_commit(
    backend: MemoryBackend, rights: RequestRights, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse:
    """Keep offsets of topics and partitions that exist until a transaction ends."""
    # While others have their turn a topic may come or go: it is there now, or is not.
    known = {
        (topic.name, each.partition_index): backend.cluster.topics.id_of(topic.name)
        for topic in in_turns(request.topics)
        for each in in_turns(topic.partitions)
        if backend.cluster.topics.has_partition(topic.name, each.partition_index)
    }
    new = [
        NewOffset(
            topic.name,
            each.partition_index,
            each.committed_offset,
            each.committed_leader_epoch,
            each.committed_metadata or "",
            known[topic.name, each.partition_index],
        )
        for topic in in_turns(request.topics)
        for each in in_turns(topic.partitions)
        if (topic.name, each.partition_index) in known
    ]
    codes = iter(_pended(backend, rights, request, new) if new else ())

    def code(topic: str, partition: int) -> ErrorCode:
        if (topic, partition) in known:
            return next(codes)
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return TxnOffsetCommitResponse(
        topics=[
            TxnOffsetCommitResponseTopic(
                topic.name,
                [
                    TxnOffsetCommitResponsePartition(
                        each.partition_index, code(topic.name, each.partition_index)
                    )
                    for each in in_turns(topic.partitions)
                ],
            )
            for topic in in_turns(request.topics)
        ]
    )


def _pended(
    backend: MemoryBackend,
    rights: RequestRights,
    request: TxnOffsetCommitRequest,
    new: Sequence[NewOffset],
) -> list[ErrorCode]:
    """Return the code of each offset; all have the same one unless each is looked at."""
    version, group_id = rights.context.api_version, request.group_id
    offsets, transactions = backend.cluster.groups.offsets, backend.cluster.transactions
    producer = Producer(request.producer_id, request.producer_epoch)
    if is_elsewhere(backend, rights, group_id):
        return [ErrorCode.NOT_COORDINATOR] * len(new)
    if version >= _SECOND_VERSION_IN_COMMIT:
        code = transactions.add(
            request.transactional_id, producer, groups=[group_id], by_second_version=True
        )
    else:
        code = transactions.verify(request.transactional_id, producer, group_id=group_id)
    if code is ErrorCode.PRODUCER_FENCED:
        code = ErrorCode.INVALID_PRODUCER_EPOCH
    elif code is ErrorCode.TRANSACTION_ABORTABLE and version < _ABORTABLE_IN_COMMIT:
        code = ErrorCode.INVALID_TXN_STATE
    if not code:
        code = offsets.check_txn_commit(
            group_id,
            request.member_id,
            request.generation_id,
            request.group_instance_id,
            [(each.topic, each.partition) for each in in_turns(new)],
        )
    return [code] * len(new) if code else offsets.pend(producer.producer_id, group_id, new)


def describe_transactions(
    backend: MemoryBackend, rights: RequestRights, request: DescribeTransactionsRequest
) -> DescribeTransactionsResponse:
    """Describe transactional ids, with the topics that the session may describe."""
    return DescribeTransactionsResponse(
        transaction_states=[
            _described(backend, rights, each) for each in in_turns(request.transactional_ids)
        ]
    )


def _described(
    backend: MemoryBackend, rights: RequestRights, transactional_id: str
) -> DescribedState:
    if not transactional_id:
        return DescribedState(ErrorCode.INVALID_REQUEST, transactional_id)
    if is_elsewhere(backend, rights, transactional_id):
        return DescribedState(ErrorCode.NOT_COORDINATOR, transactional_id)
    found = backend.cluster.transactions.find(transactional_id)
    if found is None:
        return DescribedState(ErrorCode.TRANSACTIONAL_ID_NOT_FOUND, transactional_id)
    partitions = list(found.partitions)
    seen = set(rights.visible("show", dict.fromkeys(name for name, _ in in_turns(partitions))))
    topics: dict[str, list[int]] = {}
    for name, index in in_turns(partitions):
        if name in seen:
            topics.setdefault(name, []).append(index)
    return DescribedState(
        ErrorCode.NONE,
        transactional_id,
        found.state.value,
        found.timeout_ms,
        found.started_ms,
        *found.producer,
        [TopicData(name, indexes) for name, indexes in in_turns(topics.items())],
    )


def list_transactions(
    backend: MemoryBackend, rights: RequestRights, request: ListTransactionsRequest
) -> ListTransactionsResponse:
    """List the transactional ids of this node that the filters let through.

    Unlike in Kafka, the rights come before the filters, because the time of a filter would reveal
    hidden ids.
    """
    try:
        wanted = _wanted(backend, rights, request)
    except NameRegexError:
        return ListTransactionsResponse(error_code=ErrorCode.INVALID_REGULAR_EXPRESSION)
    return ListTransactionsResponse(
        unknown_state_filters=sorted(set(request.state_filters) - _STATES),
        transaction_states=[
            ListedState(each.transactional_id, each.producer_id, each.state.value)
            for each in in_turns(wanted)
        ],
    )


def _wanted(
    backend: MemoryBackend, rights: RequestRights, request: ListTransactionsRequest
) -> list[Transaction]:
    """Return the transactions that the session may see and that the filters let through."""
    ids, states = set(request.producer_id_filters), set(request.state_filters)
    now = backend.cluster.clock.now_ms()
    # Kafka has RE2/J match whole ids, as it does with names of topics.
    pattern = request.transactional_id_pattern and NameRegex(request.transactional_id_pattern)
    transactions = backend.cluster.transactions
    here = [
        each for each in in_turns(transactions.ids()) if not is_elsewhere(backend, rights, each)
    ]
    seen = [transactions.find(each) for each in in_turns(rights.visible("show", here))]

    def is_wanted(each: Transaction) -> bool:
        return not (
            (ids and each.producer_id not in ids)
            or (states and each.state.value not in states)
            or (0 <= request.duration_filter >= now - each.started_ms)
            or (pattern and not pattern.matches(each.transactional_id))
        )

    return [each for each in in_turns(seen) if each is not None and is_wanted(each)]


def _told(code: ErrorCode, rights: RequestRights, first_version: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED and rights.context.api_version < first_version:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    return code
