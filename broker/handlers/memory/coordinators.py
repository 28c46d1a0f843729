"""Which node coordinates a group or a transactional id."""

from __future__ import annotations

from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Services


def is_elsewhere(services: Services, rights: RequestRights, key: str) -> bool:
    """Tell whether another node coordinates a group or a transactional id."""
    return services.memory.coordinator(key) != services.node(rights).node_id
