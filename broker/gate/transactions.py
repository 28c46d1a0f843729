"""AddPartitionsToTxn is all or nothing: what is said of the partitions beside refused ones."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.gate.engine import Verdict, check_needs
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode

_LAST_VERSION_OF_CLIENTS: Final = 3


def check_add_partitions(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Tell of partitions that do not exist beside refused ones: they are not just spared.

    As in Kafka, a topic that may be written and is missing gets 3, others 55.
    """
    verdict = check_needs(request, rights, topics)
    if verdict.request is None and rights.context.api_version <= _LAST_VERSION_OF_CLIENTS:
        for topic in verdict.response.results_by_topic_v3_and_below:
            for partition in topic.results_by_partition:
                is_spared = partition.partition_error_code == ErrorCode.OPERATION_NOT_ATTEMPTED
                if is_spared and not topics.has_partition(topic.name, partition.partition_index):
                    partition.partition_error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return verdict
