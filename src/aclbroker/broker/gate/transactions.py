"""AddPartitionsToTxn: the codes of the partitions that are allowed beside refused ones."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.gate.engine import Verdict, check_needs
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.turns import in_turns

_LAST_VERSION_OF_CLIENTS: Final = 3


def check_add_partitions(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check AddPartitionsToTxn, which adds all partitions or none.

    As in Kafka, beside a refused partition an allowed one that does not exist gets
    UNKNOWN_TOPIC_OR_PARTITION (3), and one that exists OPERATION_NOT_ATTEMPTED (55).
    """
    verdict = check_needs(request, rights, topics)
    if verdict.request is None and rights.context.api_version <= _LAST_VERSION_OF_CLIENTS:
        for topic in in_turns(verdict.response.results_by_topic_v3_and_below):
            for partition in in_turns(topic.results_by_partition):
                is_spared = partition.partition_error_code == ErrorCode.OPERATION_NOT_ATTEMPTED
                if is_spared and not topics.has_partition(topic.name, partition.partition_index):
                    partition.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return verdict
