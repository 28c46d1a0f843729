"""Cases about the cluster itself: brokers, log directories, the quorum, features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.conformance.case import INVALID, Case
from aclbroker.conformance.resources import ABSENT_TOPICS, TOPICS
from aclbroker.protocol.messages import (
    ApiKey,
    add_raft_voter,
    alter_replica_log_dirs,
    describe_cluster,
    describe_log_dirs,
    describe_quorum,
    get_telemetry_subscriptions,
    push_telemetry,
    remove_raft_voter,
    unregister_broker,
    update_features,
)
from aclbroker.protocol.primitives import ZERO_UUID

_ALL_TOPICS: Final = (*TOPICS, *ABSENT_TOPICS)
_OTHER_CLUSTER: Final = "another-cluster"
_NO_BROKER: Final = 2_147_483_647


def cases() -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    for include in (False, True):
        yield Case(
            ApiKey.DESCRIBE_CLUSTER,
            "with authorized operations" if include else "brokers",
            describe_cluster.DescribeClusterRequest(include, endpoint_type=1),
        )
    yield from _log_dirs()
    yield from _telemetry()
    yield Case(
        ApiKey.DESCRIBE_QUORUM,
        "of the metadata",
        describe_quorum.DescribeQuorumRequest(
            [
                describe_quorum.RequestTopicData(name, [describe_quorum.RequestPartitionData(0)])
                for name in ("__cluster_metadata",)
            ]
        ),
    )
    yield Case(
        ApiKey.UPDATE_FEATURES,
        "that are unknown",
        update_features.UpdateFeaturesRequest(
            timeout_ms=1000,
            feature_updates=[
                update_features.FeatureUpdateKey("conformance.version", 1, upgrade_type=1)
            ],
            validate_only=True,
        ),
    )
    yield Case(
        ApiKey.UNREGISTER_BROKER,
        "that is not there",
        unregister_broker.UnregisterBrokerRequest(_NO_BROKER),
    )
    listeners = [add_raft_voter.Listener("CONTROLLER", "127.0.0.1", 1)]
    yield Case(
        ApiKey.ADD_RAFT_VOTER,
        "of another cluster",
        add_raft_voter.AddRaftVoterRequest(
            _OTHER_CLUSTER, 1000, _NO_BROKER, ZERO_UUID, listeners, ack_when_committed=True
        ),
    )
    yield Case(
        ApiKey.REMOVE_RAFT_VOTER,
        "of another cluster",
        remove_raft_voter.RemoveRaftVoterRequest(_OTHER_CLUSTER, _NO_BROKER, ZERO_UUID),
    )


def _telemetry() -> Iterator[Case]:
    yield Case(
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        "of a new client",
        get_telemetry_subscriptions.GetTelemetrySubscriptionsRequest(ZERO_UUID),
        advertised=False,
    )
    yield Case(
        ApiKey.PUSH_TELEMETRY,
        "of no client",
        push_telemetry.PushTelemetryRequest(ZERO_UUID),
        codes=(INVALID,),
        advertised=False,
    )


def _log_dirs() -> Iterator[Case]:
    topics = [describe_log_dirs.DescribableLogDirTopic(name, [0]) for name in _ALL_TOPICS]
    for label, asked in (("of each topic", topics), ("of all topics", None), ("of no topic", ())):
        yield Case(ApiKey.DESCRIBE_LOG_DIRS, label, describe_log_dirs.DescribeLogDirsRequest(asked))
    m = alter_replica_log_dirs
    yield Case(
        ApiKey.ALTER_REPLICA_LOG_DIRS,
        "that are not there",
        m.AlterReplicaLogDirsRequest(
            [
                m.AlterReplicaLogDir(
                    "/conformance/absent",
                    [m.AlterReplicaLogDirTopic(name, [0]) for name in _ALL_TOPICS],
                )
            ]
        ),
    )
