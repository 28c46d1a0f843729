"""Every client logs in with SCRAM, and those that can with delegation tokens; Kafka's tools work.

Users are made with kafka-configs.sh, tokens with kafka-delegation-tokens.sh.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from aiokafka import AIOKafkaConsumer
from aiokafka.errors import KafkaConnectionError

from tests.clients.acl_command import Commands, Printed, command_config
from tests.clients.conftest import DriverOf
from tests.clients.drivers import WITH_PATTERN_TYPES, Answer, parameters
from tests.clients.story import EVERYTHING, READ_ORDERS
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka

MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
USER, PASSWORD = "scram-admin", "s=cr,et"
CONFIGS = "kafka.admin.ConfigCommand"
TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
LITERALS = "ANY,,LITERAL,,,ANY,ANY"
CLIENTS = (*WITH_PATTERN_TYPES, "kafka-clients-1.1.1")
"""Without kafka-clients 0.11, whose SCRAM needs a class that Java has no more since Java 11."""

Tool = Callable[..., Printed]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("commands") / "stderr")
    yield commands
    commands.close()


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory, commands: Commands) -> Iterator[Broker]:
    """A broker where `USER` is a super user with SCRAM credentials, and tokens are enabled."""
    overrides = {
        "sasl.enabled.mechanisms": f"PLAIN,{','.join(MECHANISMS)}",
        "super.users": f"User:admin;User:ANONYMOUS;User:{USER}",
        "delegation.token.secret.key": "the secret key of all tokens",
    }
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), overrides)
    broker.start()
    for mechanism in MECHANISMS:
        added = configs(
            commands, broker, "--alter", "--add-config", f"{mechanism}=[password={PASSWORD}]"
        )
        assert added == Printed(f"Completed updating config for user {USER}.\n", 0)
    yield broker
    broker.terminate()


def configs(commands: Commands, server: Broker | Kafka, *words: str, user: str = USER) -> Printed:
    bootstrap = ("--bootstrap-server", server.listeners["PLAINTEXT"])
    entity = ("--entity-type", "users", "--entity-name", user)
    return commands.run(*bootstrap, *words, *entity, tool=CONFIGS)


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("client", parameters(CLIENTS))
def test_a_client_logs_in_and_manages_acls(
    client: str, mechanism: str, broker: Broker, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    address = broker.listeners["SASL_PLAINTEXT"]
    assert driver.step("connect", address, USER, PASSWORD, mechanism) == Answer(None)
    assert driver.step("create", READ_ORDERS) == Answer([None])
    assert driver.step("list", LITERALS) == Answer([READ_ORDERS])
    assert driver.step("delete", LITERALS) == Answer([[READ_ORDERS]])


@pytest.mark.parametrize("mechanism", MECHANISMS)
async def test_aiokafka_logs_in(mechanism: str, broker: Broker) -> None:
    consumer = aiokafka_consumer(broker, mechanism, PASSWORD)
    await consumer.start()
    try:
        assert await consumer.topics() == set()
    finally:
        await consumer.stop()


async def test_aiokafka_is_refused_with_a_wrong_password(broker: Broker) -> None:
    consumer = aiokafka_consumer(broker, "SCRAM-SHA-512", "guessed")
    try:
        with pytest.raises(KafkaConnectionError):
            await consumer.start()
    finally:
        await consumer.stop()


def aiokafka_consumer(broker: Broker, mechanism: str, password: str) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=broker.listeners["SASL_PLAINTEXT"],
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism=mechanism,
        sasl_plain_username=USER,
        sasl_plain_password=password,
    )


@pytest.mark.parametrize("client", parameters(["kafka-clients-4.3.0", "kafka-clients-2.0.1"]))
@pytest.mark.parametrize("user", [USER, "nobody"])
def test_a_wrong_password_and_an_unknown_user_are_the_same_error(
    client: str, user: str, broker: Broker, driver_of: DriverOf
) -> None:
    driver = driver_of(client)
    driver.step("connect", broker.listeners["SASL_PLAINTEXT"], user, "guessed", "SCRAM-SHA-512")
    assert driver.step("list", EVERYTHING) == Answer(None, "SaslAuthenticationException")


def test_kafka_acls_lists_with_scram_credentials(
    broker: Broker, commands: Commands, tmp_path: Path
) -> None:
    config = command_config(tmp_path, USER, PASSWORD, "SCRAM-SHA-512")
    listener = broker.listeners["SASL_PLAINTEXT"]
    listed = commands.run("--bootstrap-server", listener, "--command-config", config, "--list")
    assert listed == Printed("\n", 0) or listed == Printed("", 0)


CONFIG_EXAMPLES = (
    ("--alter", "--add-config", "SCRAM-SHA-512=[iterations=8192,password=x]"),
    ("--describe",),
    ("--alter", "--add-config", "SCRAM-SHA-256=[password=x]"),
    ("--describe",),
    ("--alter", "--add-config", "SCRAM-SHA-256=[password=x],SCRAM-SHA-512=[password=x]"),
    ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=4095,password=x]"),
    ("--alter", "--add-config", "SCRAM-SHA-256=[iterations=16385,password=x]"),
    ("--alter", "--delete-config", "SCRAM-SHA-512"),
    ("--describe",),
    ("--alter", "--delete-config", "SCRAM-SHA-512"),
    ("--alter", "--delete-config", "SCRAM-SHA-256"),
    ("--describe",),
)
"""What an operator does to a user's credentials with kafka-configs.sh."""


def test_kafka_configs_prints_what_it_prints_with_a_real_kafka(
    broker: Broker, kafka: Kafka, commands: Commands
) -> None:
    printed = []
    for server in (kafka, broker):
        outputs = []
        for words in CONFIG_EXAMPLES:
            done = configs(commands, server, *words, user="configured")
            outputs.append(
                (words, done.status, sorted(re.findall(r"SCRAM-SHA-\d+=\w+=\d+", done.out)))
            )
        printed.append(outputs)
    assert printed[1] == printed[0]
    described = [found for words, _, found in printed[1] if words == ("--describe",)]
    assert described == [
        ["SCRAM-SHA-512=iterations=8192"],
        ["SCRAM-SHA-256=iterations=4096", "SCRAM-SHA-512=iterations=8192"],
        ["SCRAM-SHA-256=iterations=4096"],
        [],
    ]


@pytest.fixture
def tokens(broker: Broker, commands: Commands, tmp_path: Path) -> Tool:
    """kafka-delegation-tokens.sh as alice, who has logged in with PLAIN."""
    config = command_config(tmp_path, "alice", PASSWORDS["alice"])

    def run(*words: str) -> Printed:
        bootstrap = ("--bootstrap-server", broker.listeners["SASL_PLAINTEXT"])
        return commands.run(*bootstrap, "--command-config", config, *words, tool=TOKENS)

    return run


def created_token(tokens: Tool, *words: str) -> tuple[str, str]:
    """The id and the HMAC of a new token."""
    done = tokens("--create", "--max-life-time-period", "-1", *words)
    assert done.status == 0, done.out
    found = re.search(r"^(\S{22}) +(\S+==) +User:alice +User:alice ", done.out, re.MULTILINE)
    assert found, done.out
    return found[1], found[2]


def test_kafka_delegation_tokens_creates_describes_renews_and_expires(tokens: Tool) -> None:
    token_id, hmac = created_token(tokens, "--renewer-principal", "User:bob")
    described = tokens("--describe", "--owner-principal", "User:alice")
    assert "Total number of tokens : 1" in described.out
    assert re.search(rf"{re.escape(token_id)} .*\[User:bob\]", described.out)
    renewed = tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac)
    assert (renewed.status, "Completed renew operation" in renewed.out) == (0, True)
    expired = tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac)
    assert (expired.status, "Completed expire operation" in expired.out) == (0, True)
    assert "Total number of tokens : 0" in tokens("--describe").out
    assert tokens("--renew", "--renew-time-period", "-1", "--hmac", hmac).status == 1


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize(
    "client", parameters(["kafka-clients-4.3.0", "kafka-clients-2.0.1", "franz-go"])
)
def test_a_client_logs_in_with_a_delegation_token_as_its_owner(
    client: str, mechanism: str, broker: Broker, tokens: Tool, driver_of: DriverOf
) -> None:
    token_id, hmac = created_token(tokens)
    driver = driver_of(client)
    driver.step("connect", broker.listeners["SASL_PLAINTEXT"], token_id, hmac, mechanism, "token")
    refused = driver.step("list", EVERYTHING)
    assert refused == Answer(None, WITH_PATTERN_TYPES[client].refusal)
    driver.step("connect", broker.listeners["SASL_PLAINTEXT"], "admin", PASSWORDS["admin"])
    right = "CLUSTER,kafka-cluster,LITERAL,User:alice,*,DESCRIBE,ALLOW"
    assert driver.step("create", right) == Answer([None])
    driver.step("connect", broker.listeners["SASL_PLAINTEXT"], token_id, hmac, mechanism, "token")
    assert driver.step("list", EVERYTHING) == Answer([right])
    driver.step("connect", broker.listeners["SASL_PLAINTEXT"], "admin", PASSWORDS["admin"])
    assert driver.step("delete", EVERYTHING) == Answer([[right]])
    assert tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac).status == 0


def test_kafka_acls_lists_with_a_delegation_token_and_tokens_get_no_tokens(
    broker: Broker, commands: Commands, tokens: Tool, tmp_path: Path
) -> None:
    token_id, hmac = created_token(tokens)
    config = command_config(tmp_path, token_id, hmac, "SCRAM-SHA-256", ' tokenauth="true"')
    arguments = (
        "--bootstrap-server",
        broker.listeners["SASL_PLAINTEXT"],
        "--command-config",
        config,
    )
    refused = commands.run(*arguments, "--list")
    assert "ClusterAuthorizationException" in refused.out or refused.status == 1
    create = ("--create", "--max-life-time-period", "-1")
    assert commands.run(*arguments, *create, tool=TOKENS).status == 1
    assert tokens("--expire", "--expiry-time-period", "-1", "--hmac", hmac).status == 0
