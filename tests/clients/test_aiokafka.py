"""aiokafka, which has no methods for ACLs, connects, logs in and fetches metadata."""

from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaConnectionError

from tests.clients.conftest import Target
from tests.support.accounts import PASSWORDS


def _login(address: str, user: str, password: str) -> dict[str, Any]:
    return {
        "bootstrap_servers": address,
        "security_protocol": "SASL_PLAINTEXT",
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": user,
        "sasl_plain_password": password,
    }


@pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
async def test_the_admin_client_learns_of_one_broker_at_the_address_it_connected_to(
    listener: str, target: Target
) -> None:
    address = target.listeners[listener]
    login = _login(address, "admin", PASSWORDS["admin"]) if listener != "PLAINTEXT" else {}
    admin = AIOKafkaAdminClient(**{"bootstrap_servers": address, **login})
    await admin.start()
    try:
        cluster = await admin.describe_cluster()
    finally:
        await admin.close()
    assert [f"{each['host']}:{each['port']}" for each in cluster["brokers"]] == [address]
    assert cluster["controller_id"] == cluster["brokers"][0]["node_id"]
    assert cluster["cluster_id"]


async def test_a_consumer_without_rights_starts_and_sees_no_topics(target: Target) -> None:
    login = _login(target.listeners["SASL_PLAINTEXT"], "alice", PASSWORDS["alice"])
    consumer = AIOKafkaConsumer(**login)
    await consumer.start()
    try:
        assert await consumer.topics() == set()
    finally:
        await consumer.stop()


async def test_a_wrong_password_is_refused(target: Target) -> None:
    consumer = AIOKafkaConsumer(**_login(target.listeners["SASL_PLAINTEXT"], "alice", "guessed"))
    try:
        with pytest.raises(KafkaConnectionError):
            await consumer.start()
    finally:
        await consumer.stop()
