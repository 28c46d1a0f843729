"""The command config: who is logged in as whom, and what is said of what cannot be used."""

from pathlib import Path

import pytest

from aclbroker.broker.client.command_config import ClientLogin, CommandConfigError
from aclbroker.broker.conformance.options import read_keys, read_target
from aclbroker.broker.conformance.session import Target
from aclbroker.protocol.messages import APIS, ApiKey
from tests.conformance_tool.examples import command_config, jaas

SERVER = "broker.example.org:9092"
USER = "conformance.user."


def test_the_other_user_is_reached_as_the_super_user_is(tmp_path: Path):
    assert read_target(SERVER, command_config(tmp_path)) == Target(
        ClientLogin("broker.example.org", 9092, "admin", "admin-secret"),
        ClientLogin("broker.example.org", 9092, "alice", "alice-secret"),
    )


def test_a_super_user_may_be_anonymous_and_the_other_user_on_another_listener(tmp_path: Path):
    file = command_config(
        tmp_path,
        {
            "security.protocol": None,
            "sasl.jaas.config": None,
            f"{USER}bootstrap.servers": "[::1]:9093",
            f"{USER}security.protocol": "SASL_PLAINTEXT",
        },
    )
    assert read_target(SERVER, file) == Target(
        ClientLogin("broker.example.org", 9092), ClientLogin("::1", 9093, "alice", "alice-secret")
    )


@pytest.mark.parametrize(
    ("properties", "said"),
    [
        ({"security.protocol": "SASL_SSL"}, "security.protocol is SASL_SSL, not one of"),
        ({"security.protocol": None}, "must be SASL_PLAINTEXT"),
        ({"sasl.mechanism": None}, "sasl.mechanism is GSSAPI; only PLAIN"),
        ({"sasl.jaas.config": None}, "sasl.jaas.config is missing"),
        ({f"{USER}sasl.jaas.config": None}, f"{USER}sasl.jaas.config is missing"),
        ({f"{USER}sasl.jaas.config": jaas("admin")}, "must name another user"),
        ({"sasl.jaas.config": "x.PlainLoginModule required;"}, "is not PlainLoginModule"),
        ({"sasl.jaas.config": jaas("admin").replace("username", "user")}, "there is no username"),
        ({"sasl.jaas.config": jaas("admin").removesuffix(";")}, "sasl.jaas.config: at the end"),
    ],
)
def test_what_cannot_be_used_is_said_without_a_secret(
    tmp_path: Path, properties: dict[str, str | None], said: str
):
    with pytest.raises(CommandConfigError, match=r"^(?!.*secret)") as error:
        read_target(SERVER, command_config(tmp_path, properties))
    assert said in str(error.value)


@pytest.mark.parametrize("server", ["localhost", ":9092", "localhost:", "localhost:x", "a:65536"])
def test_a_server_is_a_host_and_a_port(tmp_path: Path, server: str):
    with pytest.raises(CommandConfigError, match="is not HOST:PORT"):
        read_target(server, command_config(tmp_path))


def test_a_command_config_that_is_not_there_is_said(tmp_path: Path):
    with pytest.raises(CommandConfigError, match="cannot be read"):
        read_target(SERVER, str(tmp_path / "absent"))


def test_cases_are_chosen_by_either_name_of_their_api():
    assert read_keys(["CreateAcls", "DESCRIBE_ACLS"]) == {ApiKey.CREATE_ACLS, ApiKey.DESCRIBE_ACLS}
    assert read_keys([]) == APIS.keys()
    with pytest.raises(CommandConfigError, match=r"--api Creates is unknown; .*CreateAcls, "):
        read_keys(["CreateAcls", "Creates"])
