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
from aclbroker.turns import in_turns


def refuse_alter_replica_log_dirs(request: Any, denial: Denial) -> AlterReplicaLogDirsResponse:
    """Refuse all partitions; the request groups its topics by directory, the answer does not."""
    return AlterReplicaLogDirsResponse(
        results=[
            AlterReplicaLogDirTopicResult(
                topic.name,
                [
                    AlterReplicaLogDirPartitionResult(partition, denial[0])
                    for partition in in_turns(topic.partitions)
                ],
            )
            for directory in in_turns(request.dirs)
            for topic in in_turns(directory.topics)
        ]
    )


def refuse_alter_scram_credentials(
    request: Any, denial: Denial
) -> AlterUserScramCredentialsResponse:
    """Refuse all changes, with one result for each user, sorted by name.

    A user may have several changes in a request, and the answer still has one entry for each user.
    """
    users = {change.name for change in in_turns(request.deletions)}
    users |= {change.name for change in in_turns(request.upsertions)}
    return AlterUserScramCredentialsResponse(
        results=[AlterUserScramCredentialsResult(user, *denial) for user in in_turns(sorted(users))]
    )
