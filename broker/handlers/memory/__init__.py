"""The handlers of a broker with a cluster in memory; all other keys are answered as without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.handlers import HANDLERS
from aclbroker.broker.handlers.memory import fetch, metadata, offsets, produce, transactions
from aclbroker.broker.handlers.services import Handler
from aclbroker.protocol.messages import ApiKey

MEMORY_HANDLERS: Final[Mapping[int, Handler]] = {
    **HANDLERS,
    ApiKey.PRODUCE: produce.produce,
    ApiKey.FETCH: fetch.fetch,
    ApiKey.LIST_OFFSETS: offsets.list_offsets,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.FIND_COORDINATOR: metadata.find_coordinator,
    ApiKey.DELETE_RECORDS: offsets.delete_records,
    ApiKey.OFFSET_FOR_LEADER_EPOCH: offsets.offset_for_leader_epoch,
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_cluster,
    ApiKey.INIT_PRODUCER_ID: transactions.init_producer_id,
    ApiKey.ADD_PARTITIONS_TO_TXN: transactions.add_partitions_to_txn,
    ApiKey.ADD_OFFSETS_TO_TXN: transactions.add_offsets_to_txn,
    ApiKey.END_TXN: transactions.end_txn,
    ApiKey.DESCRIBE_TRANSACTIONS: transactions.describe_transactions,
    ApiKey.LIST_TRANSACTIONS: transactions.list_transactions,
}
"""The handler of each API key."""
