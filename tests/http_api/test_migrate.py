"""Moves of ACLs to a server of the HTTP API, and back."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding, AclOperation, ResourceType
from aclbroker.acl.hosts import host_fault
from tests.acl.examples import allow, deny
from tests.conftest import StartBroker
from tests.http_api.api import MDS, api_address, held
from tests.migrate.running import contents, fill, migrate
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.random_acls import random_acls

CLUSTER = "lkc-A"


@pytest.fixture
def server(start_broker: StartBroker) -> Broker:
    return start_broker({**MDS, **held(CLUSTER)})


def config(directory: Path, user: str = "admin", password: str = PASSWORDS["admin"]) -> str:
    """A client's settings with a login, in a file."""
    file = directory / f"{user}.properties"
    file.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\nsasl.jaas.config="
        "org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{user}" password="{password}";\n'
    )
    return str(file)


def url_of(server: Broker, cluster: str = CLUSTER) -> str:
    return f"mds+http://{api_address(server)}/{cluster}"


def is_of_mds(acl: AclBinding) -> bool:
    return (
        acl.resource_type
        in (
            ResourceType.TOPIC,
            ResourceType.GROUP,
            ResourceType.CLUSTER,
            ResourceType.TRANSACTIONAL_ID,
        )
        and acl.operation <= AclOperation.IDEMPOTENT_WRITE
        and all(acl.principal.partition(":")[:2])
        and host_fault(acl.host, cidr=False) is None
    )


def test_what_the_api_can_hold_comes_to_it_and_back(
    server: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    acls = random_acls(Random(5), 2000)
    kept = {acl for acl in acls if is_of_mds(acl)}
    source = fill(f"file:{tmp_path}/source.csv", acls)
    target, login = url_of(server), config(tmp_path)

    # Denials would be lost, so that nothing is moved before somebody has agreed to it.
    assert migrate(source, target, "--to-config", login) == 1
    assert "MDS has no" in capsys.readouterr().err
    back = f"file:{tmp_path}/back.csv"
    assert migrate(source, target, "--to-config", login, "--accept-lost-denies") == 1
    assert migrate(target, back, "--from-config", login) == 0
    assert contents(back) == kept


def test_a_move_is_made_again_with_what_has_changed(server: Broker, tmp_path: Path) -> None:
    target, login = url_of(server), config(tmp_path)
    first = fill(f"file:{tmp_path}/first.csv", [allow(), deny("User:bob")])
    second = fill(f"file:{tmp_path}/second.csv", [allow(), allow("User:carol")])
    back = f"file:{tmp_path}/back.csv"
    assert migrate(first, target, "--to-config", login) == 0
    assert migrate(second, target, "--to-config", login, "--prune") == 0
    assert migrate(target, back, "--from-config", login) == 0
    assert contents(back) == {allow(), allow("User:carol")}


def test_trouble_is_named(
    server: Broker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = fill(f"file:{tmp_path}/source.csv", [allow()])
    login = config(tmp_path)

    def told(target: str, *options: str) -> str:
        assert migrate(source, target, *options) == 1
        return capsys.readouterr().err

    wrong = config(tmp_path, "bob", "guessed")
    assert "the login failed: 401" in told(url_of(server), "--to-config", wrong)
    alice = config(tmp_path, "alice", PASSWORDS["alice"])
    assert "It needs DESCRIBE on the cluster" in told(url_of(server), "--to-config", alice)
    assert CLUSTER in told(url_of(server, "lkc-Z"), "--to-config", login)
    assert "a login is needed" in told(url_of(server))
    secure = Path(config(tmp_path, "secure", "x"))
    secure.write_text(secure.read_text().replace("SASL_PLAINTEXT", "SASL_SSL"))
    assert "asks for TLS" in told(url_of(server), "--to-config", str(secure))
    assert "cannot be reached" in told("mds+http://127.0.0.1:1/x", "--to-config", login)
    assert "expected mds+https://HOST:PORT/CLUSTER_ID" in told("mds+https://host/x")
