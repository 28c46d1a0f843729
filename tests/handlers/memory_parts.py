"""A broker's parts with a cluster in memory, whose turns are always over, without a connection."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import AsyncIterator, Awaitable
from typing import Any

from aclbroker.acl.authorizer import Session
from aclbroker.broker.backends.backend import Node
from aclbroker.broker.backends.memory import MEMORY_HANDLERS, MEMORY_LISTED
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.config import load
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.memory import Clock, MemoryCluster, MemorySettings
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.dispatch import dispatch
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.wire import decode_response
from tests.gate.rights import everything, services
from tests.support.client import request_frame

TOPICS = [f"t{number}" for number in range(40)]


class Always(Turns):
    """Turns that are over whenever that is asked."""

    def is_over(self) -> bool:
        return True


async def running() -> AsyncIterator[Services]:
    """A broker's parts with a cluster in memory, of 40 topics of a partition each."""
    cluster = MemoryCluster(Clock(source=lambda: 1_000_000), [1], MemorySettings())
    for topic in TOPICS:
        cluster.topics.create(topic, 1)
    audit = Audit(
        load(None, {"aclbroker.audit.level": "off"}), "cluster", configure(stream=io.StringIO())
    )
    made = services(everything, cluster.topics, audit)
    assert made.authorizer is not None
    await made.authorizer.start()
    backend = MemoryBackend(
        cluster_id="cluster",
        catalog=cluster.topics,
        handlers=MEMORY_HANDLERS,
        listed=MEMORY_LISTED,
        advertised={"SASL_PLAINTEXT": Node(1, "localhost", 9092)},
        cluster=cluster,
    )
    yield dataclasses.replace(made, turns=Always(), backend=backend)
    await made.authorizer.close()


def cluster_of(parts: Services) -> MemoryCluster:
    """Return the cluster in memory behind the gate."""
    assert isinstance(parts.backend, MemoryBackend)
    return parts.backend.cluster


async def ask(parts: Services, session: Session, key: ApiKey, version: int, request: Any) -> Any:
    """Send a request; returns its answer."""
    answer = dispatch(parts, session, request_frame(key, version, request)[4:])
    frame: Any = await answer if isinstance(answer, Awaitable) else answer
    return decode_response(APIS[key], version, bytes(frame)[4:])[1]
