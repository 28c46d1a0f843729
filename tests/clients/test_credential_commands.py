"""`aclbroker scram` and `aclbroker tokens` on a running cluster: this broker, and a real Kafka."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aclbroker.cli.arguments import ServeCommand, parse_arguments
from tests.clients.acl_command import Commands, command_config
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka, running_kafka

TOKENS = "org.apache.kafka.tools.DelegationTokenCommand"
SCRAM_LOGIN = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
SETTINGS = {
    **{
        f"listener.name.sasl_plaintext.scram-sha-{bits}.sasl.jaas.config": SCRAM_LOGIN
        for bits in (256, 512)
    },
    "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512",
    "delegation.token.secret.key": "the secret key of all tokens",
}
SECRETS = re.compile(r"[\w+/]{80,}={0,2}|[\w-]{22}|\d{4}-\d\d-\d\dT\d\d:\d\d")

LOGIN = ("--bootstrap-server", "h:1", "--command-config", "c")

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("commands") / "stderr")
    yield commands
    commands.close()


@pytest.fixture(scope="module")
def our_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), SETTINGS)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture(scope="module")
def token_kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    with running_kafka(tmp_path_factory.mktemp("token-kafka"), SETTINGS) as kafka:
        yield kafka


@pytest.fixture(params=["our_broker", pytest.param("token_kafka", marks=pytest.mark.thorough)])
def server(request: pytest.FixtureRequest) -> Broker | Kafka:
    found: Broker | Kafka = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command line of `aclbroker`; gives its status, and what it printed."""

    def command(*words: str, typed: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.StringIO(typed))
        found = parse_arguments(words)
        assert not isinstance(found, ServeCommand)
        return found.run(), *capsys.readouterr()

    return command


def test_users_are_added_listed_and_removed_and_log_in_meanwhile(
    server: Broker | Kafka, run: Run, tmp_path: Path
) -> None:
    bootstrap = ("--bootstrap-server", server.listeners["PLAINTEXT"])
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        options = ("--mechanism", mechanism, "--iterations", "8192")
        added = run("scram", "add", *bootstrap, "zoe", *options, typed="zoes-secret\n")
        assert added == (0, f"'zoe' may log in with {mechanism}.\n", "")
    both = "'zoe': SCRAM-SHA-256 with 8192 iterations, SCRAM-SHA-512 with 8192 iterations\n"
    assert _soon(run, "scram", "list", *bootstrap, "zoe", until=both)
    assert both in run("scram", "list", *bootstrap)[1]
    login = command_config(tmp_path, "zoe", "zoes-secret", "SCRAM-SHA-512")
    with_login = ("--bootstrap-server", server.listeners["SASL_PLAINTEXT"])
    status, _, err = run("scram", "list", *with_login, "--command-config", login)
    assert status == 1
    assert "ClusterAuthorizationException" in err

    one = run("scram", "remove", *bootstrap, "zoe", "--mechanism", "SCRAM-SHA-256")
    assert one == (0, "'zoe' may not log in with SCRAM-SHA-256 any more.\n", "")
    left = "'zoe': SCRAM-SHA-512 with 8192 iterations\n"
    assert _soon(run, "scram", "list", *bootstrap, "zoe", until=left)
    assert run("scram", "remove", *bootstrap, "zoe")[0] == 0
    assert _soon(run, "scram", "list", *bootstrap, until="")
    status, out, err = run("scram", "remove", *bootstrap, "zoe")
    assert (status, out) == (1, "")
    assert "ResourceNotFoundException" in err


def _soon(run: Run, *words: str, until: str) -> bool:
    """Tell whether a command prints this within many tries: Kafka shows a change a little later."""
    return any(run(*words)[1] == until for _ in range(2000))


def test_tokens_are_created_renewed_described_and_expired_as_by_kafkas_tool(
    server: Broker | Kafka, run: Run, commands: Commands, tmp_path: Path
) -> None:
    config = command_config(tmp_path, "admin")
    login = ("--bootstrap-server", server.listeners["SASL_PLAINTEXT"], "--command-config", config)
    printed: list[list[str]] = []
    for ours in (False, True):

        def tool(*words: str, ours: bool = ours) -> str:
            if ours:
                status, out, err = run("tokens", *login, *words)
            else:
                answer = commands.run_whole(*login, *words, tool=TOKENS)
                status, out, err = answer["status"], answer["out"], answer["err"]
            assert status == 0, err
            return out

        created = tool(
            "--create", "--max-life-time-period", "-1", "--renewer-principal", "User:bob"
        )
        [token_id] = re.findall(r"tokenId : (\S+)", created)
        [hmac] = re.findall(r"\S{80,}", created)
        owner = ("--owner-principal", "User:admin")
        for _ in range(2000):
            described = tool("--describe", *owner)
            if token_id in described:
                break
        outputs = [
            created,
            described,
            tool("--renew", "--hmac", hmac, "--renew-time-period", "3600000"),
            tool("--expire", "--hmac", hmac, "--expiry-time-period", "-1"),
        ]
        for _ in range(2000):
            described = tool("--describe", *owner)
            if token_id not in described:
                break
        printed.append([SECRETS.sub("-", each).rstrip() for each in [*outputs, described]])
    assert printed[0] == printed[1]


def test_who_has_no_token_gets_the_error_of_the_cluster(
    server: Broker | Kafka, run: Run, tmp_path: Path
) -> None:
    config = command_config(tmp_path, "alice")
    login = ("--bootstrap-server", server.listeners["SASL_PLAINTEXT"], "--command-config", config)
    words = ("--expire", "--hmac", "c2VjcmV0", "--expiry-time-period", "-1")
    status, _, err = run("tokens", *login, *words)
    assert (status, err) == (
        1,
        "aclbroker: DelegationTokenNotFoundException: Delegation Token is not found on server.\n",
    )


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["scram", "add", "f", "u", "--bootstrap-server", "h:1"], "and not both"),
        (["scram", "add", "u", "--command-config", "c"], "either FILE or --bootstrap-server"),
        (["scram", "add", "f", "u", "--command-config", "c"], "is for --bootstrap-server"),
        (["scram", "list"], "required: --bootstrap-server"),
        (["tokens", "--create"], "required: --bootstrap-server, --command-config"),
        (["tokens", "--create", *LOGIN], "needs --max-life-time-period"),
        (["tokens", "--renew", *LOGIN], "needs --hmac"),
        (["tokens", "--describe", "--hmac", "YQ==", *LOGIN], "--hmac is not for --describe"),
        (["tokens", "--hmac", "the secret"], "expected a token's HMAC in base64"),
        (["tokens", "--owner-principal", "alice"], "such as User:alice"),
        (["tokens", "--renew-time-period", "soon"], "expected a number of milliseconds"),
        (["tokens", "--create", "--renew"], "not allowed with argument --create"),
    ],
)
def test_what_does_not_go_together_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        parse_arguments(words)
    assert end.value.code == 2
    message = capsys.readouterr().err
    assert said in message
    assert "the secret" not in message.partition("error:")[2]
