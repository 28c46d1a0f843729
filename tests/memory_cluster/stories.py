"""The same requests to two brokers: what they answer, without what is different each time."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.find_coordinator import FindCoordinatorRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.client import Client

_NOT_YET: Final = (
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    14,  # COORDINATOR_LOAD_IN_PROGRESS
)
_PATIENCE_SECONDS: Final = 60
_NEXT_TRY_SECONDS: Final = 0.1

Story = Callable[["Teller"], None]
"""Sends requests; what comes back is what the story is about."""


class Teller:
    """Sends a story's requests to a broker, in a group of its own, and keeps the answers."""

    def __init__(self, address: str, group_id: str) -> None:
        self.group_id = group_id
        self.answers: list[Any] = []
        self._address = address
        self._clients: list[Client] = []
        self._names: dict[Any, str] = {group_id: "<group>"}

    def client(self) -> Client:
        """Return a further connection."""
        client = Client(self._address)
        self._clients.append(client)
        return client

    def ask(self, key: int, version: int, message: Any) -> Any:
        """Send a request on a connection of its own, and keep and return what is answered."""
        return self.keep(self.client().ask(key, version, message))

    def later(self, key: int, version: int, message: Any) -> Callable[[], Any]:
        """Send a request; returns a function that waits for the answer, and keeps it."""
        client = self.client()
        client.request(key, version, message)
        return lambda: self.keep(client.response(key, version)[1])

    def keep(self, answer: Any) -> Any:
        """Keep an answer, as it is now."""
        self.answers.append(self._shown(answer))
        return answer

    def call(self, value: Any, name: str) -> Any:
        """Show a value that is different each time by a name."""
        self._names[value] = f"<{name}>"
        return value

    def topic_id(self, name: str) -> bytes:
        """Return the id of a topic."""
        request = MetadataRequest([MetadataRequestTopic(name=name)])
        topic = self.client().ask(ApiKey.METADATA, 12, request).topics[0]
        identifier: bytes = self.call(topic.topic_id, f"id of {name}")
        return identifier

    def wait_for_coordinator(self) -> None:
        """Wait until groups can be used, which a Kafka has to prepare."""
        until = time.monotonic() + _PATIENCE_SECONDS
        request = FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group_id])
        while time.monotonic() < until:
            [found] = self.client().ask(ApiKey.FIND_COORDINATOR, 4, request).coordinators
            if found.error_code not in _NOT_YET and self._is_loaded():
                return
            time.sleep(_NEXT_TRY_SECONDS)
        raise TimeoutError("there is no coordinator")

    def _is_loaded(self) -> bool:
        request = DescribeGroupsRequest([self.group_id])
        [group] = self.client().ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups
        return group.error_code not in _NOT_YET

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def _shown(self, value: Any) -> Any:
        if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return {
                field.name: self._shown(getattr(value, field.name))
                for field in dataclasses.fields(value)
            }
        if isinstance(value, str | bytes):
            return self._named(value)
        if isinstance(value, Sequence):
            return _sorted([self._shown(each) for each in value])
        return value

    def _named(self, value: Any) -> Any:
        if value in self._names:
            return self._names[value]
        if isinstance(value, str):
            for each, name in self._names.items():
                if isinstance(each, str) and each:
                    value = value.replace(each, name)
        return value


def _sorted(shown: list[Any]) -> list[Any]:
    """Return entries of an answer in one order, where Kafka's follows Java's hashes."""
    for key in ("member_id", "group_id", "partition_index"):
        if shown and isinstance(shown[0], dict) and key in shown[0]:
            return sorted(shown, key=lambda each: each[key])
    return shown


def told(address: str, story: Story, group_id: str) -> list[Any]:
    """Return what a broker answers in a story."""
    teller = Teller(address, group_id)
    try:
        teller.wait_for_coordinator()
        story(teller)
    finally:
        teller.close()
    return teller.answers
