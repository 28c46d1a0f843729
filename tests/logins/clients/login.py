"""Logs in with a Python library and asks for all ACLs, or for the brokers where it has no ACLs.

`login.py LIBRARY OAUTHBEARER ADDRESS TOKEN` or `login.py LIBRARY GSSAPI ADDRESS`; it prints
{"error": null}, or what the library says. It is a process of its own so that what a library leaves
open or warns of stays its own.
"""

import asyncio
import json
import sys
import time
from typing import Any

import confluent_kafka.admin as librdkafka
import kafka.admin as kafka_python
from aiokafka.abc import AbstractTokenProvider
from aiokafka.admin import AIOKafkaAdminClient
from confluent_kafka import KafkaError
from kafka.net.sasl.oauth import AbstractTokenProvider as KafkaPythonTokenProvider

SECONDS = 20


def with_confluent_kafka(mechanism: str, address: str, token: str = "") -> None:
    said: list[KafkaError] = []
    config: dict[str, Any] = {
        "bootstrap.servers": address,
        "security.protocol": "SASL_PLAINTEXT",
        "sasl.mechanism": mechanism,
        "oauth_cb": lambda _: (token, time.time() + 300),
        "error_cb": said.append,
    }
    admin = librdkafka.AdminClient(config)
    # Its types do not say that names, principals and hosts may be None.
    anything: tuple[Any, ...] = (
        librdkafka.ResourceType.ANY,
        None,
        librdkafka.ResourcePatternType.ANY,
        None,
        None,
        librdkafka.AclOperation.ANY,
        librdkafka.AclPermissionType.ANY,
    )
    wanted = librdkafka.AclBindingFilter(*anything)
    asked = admin.describe_acls(wanted, request_timeout=SECONDS)
    end = time.monotonic() + SECONDS
    # Tokens are asked for, and errors told, in poll.
    while not asked.done() and time.monotonic() < end and not said:
        admin.poll(0.05)
    if said:
        raise RuntimeError("; ".join(error.str() for error in said))
    asked.result(SECONDS)


def with_kafka_python(mechanism: str, address: str, token: str = "") -> None:
    class Provider(KafkaPythonTokenProvider):
        def token(self) -> str:
            return token

    login = {"sasl_oauth_token_provider": Provider()} if token else {}
    admin = kafka_python.KafkaAdminClient(
        bootstrap_servers=address,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        bootstrap_timeout_ms=5_000 if token else SECONDS * 1000,
        **login,
    )
    kinds = (kafka_python.ResourceType, kafka_python.ACLResourcePatternType)
    anything = kafka_python.ACLFilter(
        None,
        None,
        kafka_python.ACLOperation.ANY,
        kafka_python.ACLPermissionType.ANY,
        kafka_python.ResourcePatternFilter(kinds[0].ANY, None, kinds[1].ANY),
    )
    admin.describe_acls(anything)
    admin.close()


def with_aiokafka(mechanism: str, address: str, token: str = "") -> None:
    class Provider(AbstractTokenProvider):
        async def token(self) -> str:
            return token

    async def log_in() -> None:
        admin = AIOKafkaAdminClient(
            bootstrap_servers=address,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism=mechanism,
            **({"sasl_oauth_token_provider": Provider()} if token else {}),
        )
        try:
            await admin.start()
            await admin.describe_cluster()
        finally:
            await admin.close()

    asyncio.run(log_in())


LIBRARIES = {
    "confluent-kafka": with_confluent_kafka,
    "kafka-python": with_kafka_python,
    "aiokafka": with_aiokafka,
}


def main(library: str, *arguments: str) -> None:
    """Log in, and print what came of it."""
    try:
        LIBRARIES[library](*arguments)
    except Exception as error:  # noqa: BLE001 # whatever a library raises
        print(json.dumps({"error": f"{type(error).__name__}: {error}"}))
    else:
        print(json.dumps({"error": None}))


main(*sys.argv[1:])
