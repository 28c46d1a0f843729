"""The gateway's own login in the cluster upstream: TLS, passwords, and both with each protocol."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from aclbroker.protocol.messages.metadata import MetadataRequest
from tests.memory_cluster import raw
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.gateway import cluster_in_memory, gateway_before
from tests.support.tls import LISTENERS, pem_stores

PLAIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"
LISTENER = "aclbroker.upstream.security.protocol"


@pytest.fixture(scope="module")
def authority() -> Authority:
    return Authority()


@pytest.fixture(scope="module")
def cluster(authority: Authority, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A cluster in memory that a client must trust, and to which it shows a certificate."""
    directory = tmp_path_factory.mktemp("cluster")
    stores = pem_stores(directory, authority.issue(), authority)
    mutual = {"listener.name.ssl.ssl.client.auth": "required"}
    settings = {"sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"}
    broker = cluster_in_memory(directory, **(LISTENERS | stores | mutual | settings))
    admin = raw.admin(broker)
    for number, hash_name in ((1, "sha256"), (2, "sha512")):
        password = PASSWORDS["admin"].encode()
        salted = hashlib.pbkdf2_hmac(hash_name, password, b"salt of the admin", 4096)
        upsertion = ScramCredentialUpsertion("admin", number, 4096, b"salt of the admin", salted)
        request = AlterUserScramCredentialsRequest([], [upsertion])
        answer = admin.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
        assert [result.error_code for result in answer.results] == [0]
    yield broker
    broker.terminate()


def login(mechanism: str, module: str) -> dict[str, str]:
    password = PASSWORDS["admin"]
    return {
        "aclbroker.upstream.sasl.mechanism": mechanism,
        "aclbroker.upstream.sasl.jaas.config": (
            f'{module} required username="admin" password="{password}";'
        ),
    }


LOGINS = {
    "SSL": {},
    "PLAIN": login("PLAIN", PLAIN),
    "SCRAM-SHA-256": login("SCRAM-SHA-256", SCRAM),
    "SCRAM-SHA-512": login("SCRAM-SHA-512", SCRAM),
}


@pytest.mark.parametrize("kind", LOGINS)
def test_the_gateway_logs_in_over_tls(
    kind: str, cluster: Broker, authority: Authority, tmp_path: Path
):
    protocol = "SSL" if kind == "SSL" else "SASL_SSL"
    stores = pem_stores(tmp_path, authority.issue("CN=gateway"), authority)
    upstream = {f"aclbroker.upstream.{name}": value for name, value in stores.items()}
    address = cluster.listeners[protocol]
    gateway = gateway_before(address, tmp_path, **upstream, **LOGINS[kind], **{LISTENER: protocol})
    try:
        answer = raw.admin(gateway).ask(ApiKey.METADATA, 12, MetadataRequest(None))
        assert {"plain", "single"} <= {topic.name for topic in answer.topics}
        assert {(broker.host, broker.port) for broker in answer.brokers} == {
            ("127.0.0.1", int(gateway.listeners["PLAINTEXT"].rpartition(":")[2]))
        }
    finally:
        gateway.terminate()
