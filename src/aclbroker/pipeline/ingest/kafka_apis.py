"""The requests that Kafka's log names, and the operations that Kafka authorizes for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

APIS: Final = frozenset(
    """
    AddOffsetsToTxn AddPartitionsToTxn AddRaftVoter AllocateProducerIds AlterClientQuotas
    AlterConfigs AlterIsr AlterPartition AlterPartitionReassignments AlterReplicaLogDirs
    AlterShareGroupOffsets AlterUserScramCredentials ApiVersions AssignReplicasToDirs
    BeginQuorumEpoch BrokerHeartbeat BrokerRegistration ConsumerGroupDescribe
    ConsumerGroupHeartbeat ControlledShutdown ControllerRegistration CreateAcls
    CreateDelegationToken CreatePartitions CreateTopics DeleteAcls DeleteGroups DeleteRecords
    DeleteShareGroupOffsets DeleteShareGroupState DeleteTopics DescribeAcls DescribeClientQuotas
    DescribeCluster DescribeConfigs DescribeDelegationToken DescribeGroups DescribeLogDirs
    DescribeProducers DescribeQuorum DescribeShareGroupOffsets DescribeTopicPartitions
    DescribeTransactions DescribeUserScramCredentials ElectLeaders EndQuorumEpoch EndTxn Envelope
    ExpireDelegationToken Fetch FetchSnapshot FindCoordinator GetTelemetrySubscriptions Heartbeat
    IncrementalAlterConfigs InitProducerId InitializeShareGroupState JoinGroup LeaderAndIsr
    LeaveGroup ListClientMetricsResources ListConfigResources ListGroups ListOffsets
    ListPartitionReassignments ListTransactions Metadata OffsetCommit OffsetDelete OffsetFetch
    OffsetForLeaderEpoch Produce PushTelemetry ReadShareGroupState ReadShareGroupStateSummary
    RemoveRaftVoter RenewDelegationToken SaslAuthenticate SaslHandshake ShareAcknowledge ShareFetch
    ShareGroupDescribe ShareGroupHeartbeat StopReplica StreamsGroupDescribe StreamsGroupHeartbeat
    SyncGroup TxnOffsetCommit UnregisterBroker UpdateFeatures UpdateMetadata UpdateRaftVoter Vote
    WriteShareGroupState WriteTxnMarkers
    """.split()  # noqa: SIM905
)
"""The names of API keys, by Kafka 2.4 to 4.3, as its log prints them."""

_TOPIC, _GROUP, _TXN = "TOPIC", "GROUP", "TRANSACTIONAL_ID"
_CLUSTER: Final = ("CLUSTER", "")

_ASKS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    **dict.fromkeys(("JoinGroup", "SyncGroup", "Heartbeat", "LeaveGroup"), ((_GROUP, "READ"),)),
    **dict.fromkeys(("Metadata", "DescribeTopicPartitions"), ((_TOPIC, ""), _CLUSTER)),
    **dict.fromkeys(("ListOffsets", "OffsetForLeaderEpoch"), ((_TOPIC, ""), _CLUSTER)),
    **dict.fromkeys(("CreateTopics", "DeleteTopics", "CreatePartitions"), ((_TOPIC, ""), _CLUSTER)),
    **dict.fromkeys(("DescribeGroups", "DeleteGroups", "ListGroups"), ((_GROUP, ""), _CLUSTER)),
    **dict.fromkeys(("DescribeTransactions", "ListTransactions"), ((_TXN, ""), (_TOPIC, ""))),
    **dict.fromkeys(("Fetch", "DeleteRecords", "DescribeProducers"), ((_TOPIC, ""), _CLUSTER)),
    **dict.fromkeys(("BrokerHeartbeat", "BrokerRegistration", "AlterPartition"), (_CLUSTER,)),
    "Produce": ((_TOPIC, ""), (_TXN, "WRITE"), _CLUSTER),
    "FindCoordinator": ((_GROUP, "DESCRIBE"), (_TXN, "DESCRIBE"), _CLUSTER),
    "OffsetCommit": ((_GROUP, "READ"), (_TOPIC, "")),
    "OffsetFetch": ((_GROUP, "DESCRIBE"), (_TOPIC, "")),
    "EndTxn": ((_TXN, "WRITE"),),
    "AddOffsetsToTxn": ((_TXN, "WRITE"), (_GROUP, "READ")),
    "AddPartitionsToTxn": ((_TXN, "WRITE"), (_TOPIC, ""), _CLUSTER),
    "TxnOffsetCommit": ((_TXN, "WRITE"), (_GROUP, "READ"), (_TOPIC, "")),
    "InitProducerId": ((_TXN, "WRITE"), (_TOPIC, ""), _CLUSTER),
}
"""Resource types and operations that frequent requests need; "" stands for any operation."""


def may_ask(api: str, resource_type: str, operation: str) -> bool:
    """Tell whether a request may need an operation on a resource type.

    True for every request without an entry in `_ASKS`.
    """
    asks = _ASKS.get(api)
    return asks is None or any(
        kind == resource_type and named in ("", operation) for kind, named in asks
    )
