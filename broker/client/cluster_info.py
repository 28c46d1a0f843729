"""What a cluster tells about itself."""

from __future__ import annotations

from aclbroker.broker.client.session import Session
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest


def cluster_id(session: Session) -> str | None:
    """Return the id of the cluster, None if the broker does not tell it. Raises `ClientError`."""
    answer = session.ask(ApiKey.METADATA, MetadataRequest(topics=[]))
    found: str | None = answer.cluster_id
    return found
