"""Requests of transactional producers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from aclbroker.conformance.behaviour.stories.batches import batch, now_ms
from aclbroker.conformance.behaviour.stories.requests import write
from aclbroker.conformance.behaviour.story import Teller
from aclbroker.protocol.messages import (
    ApiKey,
    add_offsets_to_txn,
    add_partitions_to_txn,
    describe_transactions,
    end_txn,
    init_producer_id,
    list_transactions,
    txn_offset_commit,
)


class Writer:
    """A producer with a transactional id, an id and an epoch; its requests, by default in order.

    ``changes`` are fields of a request that are otherwise; ``version`` is the version at which it
    is sent, and with ``each`` it is sent at each.
    """

    def __init__(self, teller: Teller, name: str = "writer") -> None:
        self.transactional_id = teller.name(name)
        self.producer_id = -1
        self.epoch = -1
        self.sequences: dict[str, int] = {}
        self._teller = teller

    def begin(self, about: str = "", **changes: Any) -> None:
        """Get a producer id, or another epoch."""
        request = init_producer_id.InitProducerIdRequest(self.transactional_id, 60_000)
        for name, value in changes.items():
            setattr(request, name, value)
        answer = self._teller.quietly(ApiKey.INIT_PRODUCER_ID, request)
        self._teller.call(answer.producer_id, "producer")
        self._teller.keep(ApiKey.INIT_PRODUCER_ID, answer, about)
        if not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self.sequences.clear()

    def add(self, topics: dict[str, Sequence[int]], about: str = "", **changes: Any) -> None:
        """Add partitions to the transaction, as clients did before KIP-890."""
        request = add_partitions_to_txn.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                add_partitions_to_txn.AddPartitionsToTxnTopic(self._teller.name(name), indexes)
                for name, indexes in topics.items()
            ],
        )
        self._ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, about, changes, "v3_and_below_")

    def write(self, topic: str, *values: bytes, about: str = "", **changes: Any) -> None:
        """Write a batch to the partition 0 of a topic."""
        sequence = changes.pop("sequence", self.sequences.get(topic, 0))
        producer = changes.pop("producer_id", self.producer_id), changes.pop("epoch", self.epoch)
        transactional_id = changes.pop("transactional_id", self.transactional_id)
        made = batch(*values, producer=(*producer, sequence), transactional=True, time_ms=now_ms())
        request = write(self._teller, topic, made, transactional_id=transactional_id)
        version = changes.pop("version", None)
        answer = self._teller.ask(ApiKey.PRODUCE, request, about, version)
        if not answer.responses[0].partition_responses[0].error_code:
            self.sequences[topic] = sequence + len(values)

    def add_group(self, group_id: str, about: str = "", **changes: Any) -> None:
        """Add the offsets of a group to the transaction."""
        request = add_offsets_to_txn.AddOffsetsToTxnRequest(
            self.transactional_id, self.producer_id, self.epoch, group_id
        )
        self._ask(ApiKey.ADD_OFFSETS_TO_TXN, request, about, changes)

    def commit_offsets(
        self,
        group_id: str,
        offset: int,
        about: str = "",
        topics: Sequence[str] = ("orders",),
        **changes: Any,
    ) -> None:
        """Commit an offset of the partition 0 of topics in the transaction."""
        m = txn_offset_commit
        partition = m.TxnOffsetCommitRequestPartition(0, offset, committed_metadata="note")
        request = m.TxnOffsetCommitRequest(
            self.transactional_id,
            group_id,
            self.producer_id,
            self.epoch,
            topics=[
                m.TxnOffsetCommitRequestTopic(self._teller.name(each), [partition])
                for each in topics
            ],
        )
        self._ask(ApiKey.TXN_OFFSET_COMMIT, request, about, changes)

    def end(self, about: str = "", *, commits: bool, **changes: Any) -> None:
        """End the transaction, and wait until that is done."""
        request = end_txn.EndTxnRequest(
            self.transactional_id, self.producer_id, self.epoch, commits
        )
        answer = self._ask(ApiKey.END_TXN, request, about, changes)
        if answer is not None and not answer.error_code:
            if getattr(answer, "producer_id", -1) >= 0:
                self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
                self.sequences.clear()
            self.wait()

    def _ask(
        self, key: ApiKey, request: Any, about: str, changes: dict[str, Any], prefix: str = ""
    ) -> Any:
        """Send a request with some fields changed, at a version or, what is refused, at each."""
        version, each = changes.pop("version", None), changes.pop("each", False)
        for name, value in changes.items():
            setattr(request, prefix + name, value)
        if each:
            return self._teller.ask_each(key, request, about)
        return self._teller.ask(key, request, about, version)

    def wait(self) -> None:
        """Wait until no end of a transaction is under way."""
        request = describe_transactions.DescribeTransactionsRequest([self.transactional_id])

        def is_so(answer: Any) -> bool:
            return not str(answer.transaction_states[0].transaction_state).startswith("Prepare")

        self._teller.until(is_so, ApiKey.DESCRIBE_TRANSACTIONS, request)

    def describe(self, about: str = "") -> None:
        """Describe the transaction, and list it."""
        ids = [self.transactional_id]
        self._teller.ask(
            ApiKey.DESCRIBE_TRANSACTIONS,
            describe_transactions.DescribeTransactionsRequest(ids),
            about,
        )
        listed = list_transactions.ListTransactionsRequest()
        self._teller.ask(ApiKey.LIST_TRANSACTIONS, listed, about)
