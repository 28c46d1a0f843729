"""The handlers of a broker with a cluster in memory; all other keys are answered as without one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from aclbroker.broker.handlers import HANDLERS
from aclbroker.broker.handlers.memory import metadata
from aclbroker.broker.handlers.services import Handler
from aclbroker.protocol.messages import ApiKey

MEMORY_HANDLERS: Final[Mapping[int, Handler]] = {
    **HANDLERS,
    ApiKey.METADATA: metadata.metadata,
    ApiKey.FIND_COORDINATOR: metadata.find_coordinator,
    ApiKey.DESCRIBE_CLUSTER: metadata.describe_cluster,
}
"""The handler of each API key."""
