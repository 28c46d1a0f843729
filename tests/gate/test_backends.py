"""What a client gets from a backend that answers with more rights than the client has."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest

from aclbroker.broker.backends.memory import MEMORY_HANDLERS
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.messages import APIS, ApiKey
from tests.gate.rights import ByRule, context, everything
from tests.handlers.memory_parts import ask, cluster_of
from tests.handlers.test_hidden_names import cluster, member_of

__all__ = ["cluster"]


class Powerful(MemoryBackend):
    """A cluster that answers every request as if a super user had sent it."""

    exceeds_rights = True


class PowerfulUnfiltered(MemoryBackend):
    """The same, if the gate did not know it."""


def powerful(parts: Services, cls: type[MemoryBackend]) -> Services:
    """Return a broker's parts with a backend that answers as if a super user had asked."""
    own = dataclasses.replace(parts, authorizer=ByRule(everything))

    def answering(key: int) -> Callable[..., Any]:
        def answer(backend: Any, rights: Any, request: Any) -> Any:
            all_rights = own.rights(GATE[key], rights.context)
            all_rights.asked, all_rights.is_whole = request, False
            return MEMORY_HANDLERS[key](backend, all_rights, request)

        return answer

    fields = {
        field.name: getattr(parts.backend, field.name)
        for field in dataclasses.fields(MemoryBackend)
    }
    fields["handlers"] = {key: answering(key) for key in MEMORY_HANDLERS}
    return dataclasses.replace(parts, backend=cls(**fields))


async def assigned(parts: Services, version: int) -> set[bytes]:
    """Return the topic ids that a heartbeat for a member with hidden topics is answered with."""
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    member = cluster_of(parts).groups.consumer_group("seen-consumer").members["m"]
    fields = "seen-consumer", "m", member.epoch
    request = APIS[key].request(*fields, rebalance_timeout_ms=60_000)
    request.topic_partitions, request.subscribed_topic_names = [], ["seen"]
    answer = await ask(parts, context(key, version).session, key, version, request)
    assert answer.error_code == 0, answer
    cluster_of(parts).groups.consumer_heartbeat(
        member_of("seen-consumer")._replace(member_id="m", epoch=0), list
    )
    return {topic.topic_id for topic in answer.assignment.topic_partitions}


@pytest.mark.parametrize("version", APIS[ApiKey.CONSUMER_GROUP_HEARTBEAT].versions)
async def test_the_gate_hides_topics_that_a_backend_shows_beyond_the_rights_of_the_client(
    cluster: Services, version: int
):
    seen = {cluster_of(cluster).topics.id_of("seen")}
    assert await assigned(powerful(cluster, PowerfulUnfiltered), version) > seen
    assert await assigned(powerful(cluster, Powerful), version) == seen
