"""UpdateFeatures (KIP-584) and DescribeQuorum (KIP-595) of a cluster in memory.

The first node is the only voter of the metadata quorum, and the others observe it. The levels of
features are those of Kafka 4.3.0, and cannot be changed.
"""

from __future__ import annotations

from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.features import FEATURES
from aclbroker.broker.catalog import METADATA_TOPIC
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages import describe_quorum as quorum
from aclbroker.protocol.messages import update_features as updated
from aclbroker.turns import in_turns

_UPGRADE: Final = 1
_DOWNGRADES: Final = (2, 3)
_NO_TOPIC: Final = "This server does not host this topic-partition."
_EPOCH: Final = 1
_NOT_UPDATED: Final = (
    "The update failed for all features since the following feature had an error: "
)


def update_features(
    backend: MemoryBackend, rights: RequestRights, request: updated.UpdateFeaturesRequest
) -> updated.UpdateFeaturesResponse:
    """Confirm the current levels of features; refuse a request for other levels."""
    updates = list(in_turns(request.feature_updates))
    node_id = backend.node(rights).node_id
    for update in in_turns(updates):
        # Version 0 has a flag in place of the type.
        kind = 2 if update.allow_downgrade else update.upgrade_type
        why = _why_not(update.feature, update.max_version_level, kind, node_id)
        if why is not None:
            level = update.max_version_level
            message = f"Invalid update version {level} for feature {shown_name(update.feature)}. "
            return updated.UpdateFeaturesResponse(
                error_code=ErrorCode.INVALID_UPDATE_VERSION,
                error_message=f"{_NOT_UPDATED}{message}{why}",
            )
    return updated.UpdateFeaturesResponse(
        error_message=None,
        results=[
            updated.UpdatableFeatureResult(update.feature, ErrorCode.NONE, "NONE")
            for update in in_turns(updates)
        ],
    )


def _why_not(name: str, level: int, kind: int, node_id: int) -> str | None:
    """Return why a feature cannot have a level, None if it has it."""
    feature = FEATURES.get(name)
    if feature is None:
        return f"Local controller {node_id} does not support this feature."
    if kind not in (_UPGRADE, *_DOWNGRADES):
        return "The controller does not support the given upgrade type."
    if not feature.lowest <= level <= feature.highest:
        return (
            f"Local controller {node_id} only supports versions {feature.lowest}-{feature.highest}"
        )
    if level == feature.level:
        return None
    if kind == _UPGRADE:
        return (
            "Can't downgrade the version of this feature without setting the upgrade type to "
            "either safe or unsafe downgrade."
        )
    return f"A cluster in memory keeps its features: {name} stays at {feature.level}."


def describe_quorum(
    backend: MemoryBackend, _rights: RequestRights, request: quorum.DescribeQuorumRequest
) -> quorum.DescribeQuorumResponse:
    """Answer with the quorum of the metadata topic's only partition."""
    memory = backend.cluster
    topics = request.topics
    # Kafka describes this partition only, and only if the request names no other.
    is_known = (
        len(topics) == 1
        and topics[0].topic_name == METADATA_TOPIC
        and [part.partition_index for part in topics[0].partitions[:2]] == [0]
    )
    now_ms, end = memory.clock.now_ms(), memory.topics.version + 1
    voter, *observers = (
        quorum.ReplicaState(
            node_id,
            log_end_offset=end,
            last_fetch_timestamp=now_ms,
            last_caught_up_timestamp=now_ms,
        )
        for node_id in memory.node_ids
    )

    def partition(index: int) -> quorum.ResponsePartitionData:
        if not is_known:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return quorum.ResponsePartitionData(index, code, _NO_TOPIC)
        return quorum.ResponsePartitionData(
            index, ErrorCode.NONE, None, voter.replica_id, _EPOCH, end, [voter], observers
        )

    return quorum.DescribeQuorumResponse(
        error_message=None,
        topics=[
            quorum.ResponseTopicData(
                topic.topic_name,
                [partition(part.partition_index) for part in in_turns(topic.partitions)],
            )
            for topic in in_turns(topics)
        ],
    )
