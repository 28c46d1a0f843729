"""Names as long as a string of the protocol can be, in every request: each gets its answer."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from aclbroker.broker.backends.declared import DECLARED_LISTED
from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from tests.gate.requests import filled
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.client import Client
from tests.support.tables import check_each

LONGEST = "x" * 32_767
BROKER = 4
LOGS_IN = (ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), {"aclbroker.audit.level": "off"})
    broker.start()
    yield broker
    broker.terminate()


def connected(broker: Broker, user: str) -> Client:
    if not user:
        return Client(broker.listeners["PLAINTEXT"])
    client = Client(broker.listeners["SASL_PLAINTEXT"])
    client.handshake("PLAIN")
    client.authenticate(f"\0{user}\0{user}-secret".encode())
    return client


REQUESTS = [
    (key, user)
    for key in (*ANSWERED_HERE, *(listed.key for listed in DECLARED_LISTED))
    if key not in LOGS_IN
    for user in ("", "alice")
]
"""Each request, of a super user and of a user without rights."""


def test_the_longest_names_are_answered(broker: Broker, every_case: bool) -> None:
    def check(case: tuple[int, str]) -> None:
        key, user = case
        request = filled(key, [LONGEST, "y" * 32_767])
        before = len(failures(broker))
        versions = APIS[key].versions
        for version in versions if every_case else (versions[0], versions[-1]):
            # Some requests filled like that are malformed, or have no answer.
            with connected(broker, user) as client, suppress(ConnectionClosed):
                client.ask(key, version, request)
        assert not failures(broker)[before:]

    check_each(REQUESTS, check)


def test_the_name_of_another_broker_is_shortened_with_its_length(broker: Broker):
    resource = DescribeConfigsResource(BROKER, LONGEST, None)
    with connected(broker, "") as client:
        [result] = client.ask(
            ApiKey.DESCRIBE_CONFIGS, 4, DescribeConfigsRequest([resource])
        ).results
    assert result.error_message == f"This broker is 1, not {'x' * 256}... (32767 characters)."


def failures(broker: Broker) -> list[dict[str, Any]]:
    """Return what the log says of requests that an exception ended."""
    return [each for each in broker.events() if each["event"].startswith("request failed")]
