"""Refusals whose entries repeat no single array of the request, so that no echo declares them."""

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
    """Refuse all partitions; the request groups its topics by directory, the answer does not."""
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
    """Refuse all changes, with one result for each user, sorted by name.

    A user may have several changes in a request, and the answer still has one entry for each user.
    """
    users = {change.name for change in (*request.deletions, *request.upsertions)}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, *denial) for user in sorted(users)]
    )
