"""Refusals of whole requests that no echo declares, since they gather what the request spreads."""

from __future__ import annotations

from typing import Any

from aclbroker.broker.gate.echo import Denial
from aclbroker.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)


def refuse_alter_replica_log_dirs(request: Any, denial: Denial) -> AlterReplicaLogDirsResponse:
    """Refuse the partitions of all directories in one list of topics."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    AlterReplicaLogDirPartitionResult(partition, denial[0])
                    for partition in topic.partitions
                ],
            )
            for directory in request.dirs
            for topic in directory.topics
        ]
    )


def refuse_alter_scram_credentials(
    request: Any, denial: Denial
) -> AlterUserScramCredentialsResponse:
    """Refuse each user once, in the order of their names, whatever was to be changed of them."""
    users = {change.name for change in (*request.deletions, *request.upsertions)}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, *denial) for user in sorted(users)]
    )
