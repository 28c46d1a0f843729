"""Settings to try in place of those in force."""

from collections.abc import Callable
from pathlib import Path

import pytest

from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.errors import InputError
from tests.pipeline.command.test_arguments import LEAST, parsed

POLICY = """version: 1
cluster: {}
acls:
- {{principal: "User:a", rules: [{{topic: x, allow: READ}}]}}
"""

Sides = Callable[..., tuple[dict[str, Ruleset], dict[str, Ruleset]]]


@pytest.fixture
def sides(tmp_path: Path) -> Sides:
    """The rules in force and the proposed ones, by cluster, for options as a user gives them."""

    def read(*words: str) -> tuple[dict[str, Ruleset], dict[str, Ruleset]]:
        for cluster in ("eu", "us"):
            (tmp_path / f"{cluster}.yaml").write_text(POLICY.format(cluster))
        acls = ["--acls", str(tmp_path / "eu.yaml"), "--acls", str(tmp_path / "us.yaml")]
        rules = read_rules(parsed("what-if", *LEAST, *acls, *words), None)
        found = rules.by_cluster(["eu", "us"])
        return found.current, found.proposed

    return read


def test_without_proposed_acls_those_in_force_are_tried_with_the_settings(sides: Sides):
    now, then = sides(
        "--allow-everyone-if-no-acl-found", "--super-user", "User:root",
        "--proposed-allow-everyone-if-no-acl-found", "false",
    )  # fmt: skip
    assert now["eu"].allow_everyone_if_no_acl_found
    assert not then["eu"].allow_everyone_if_no_acl_found
    assert then["eu"].acls == now["eu"].acls
    assert then["eu"].super_users == {"User:root"}
    assert not then["us"].allow_everyone_if_no_acl_found


def test_a_setting_may_be_for_one_cluster(sides: Sides):
    now, then = sides(
        "--proposed-allow-everyone-if-no-acl-found", "eu=true", "--proposed-cidr", "us=true",
        "--super-user", "User:root", "--proposed-super-user", "us=User:admin",
    )  # fmt: skip
    assert then["eu"].allow_everyone_if_no_acl_found
    assert not then["us"].allow_everyone_if_no_acl_found
    assert (then["eu"].cidr, then["us"].cidr) == (False, True)
    assert then["eu"].super_users == now["us"].super_users == {"User:root"}
    assert then["us"].super_users == {"User:admin"}


def test_proposed_users_take_the_place_of_all_users_and_none_of_them_is_nobody(sides: Sides):
    _, then = sides(
        "--super-user", "User:root", "--broker-user", "User:b", "--broker-listener", "INTERNAL",
        "--proposed-super-user", "User:one", "--proposed-super-user", "User:two",
        "--proposed-broker-user", "none",
    )  # fmt: skip
    assert then["eu"].super_users == {"User:one", "User:two"}
    assert then["eu"].broker_users == BrokerUsers()
    _, then = sides(
        "--super-user", "User:root", "--proposed-super-user", "none",
        "--broker-user", "User:b", "--broker-listener", "INTERNAL",
        "--proposed-broker-user", "User:c",
    )  # fmt: skip
    assert then["eu"].super_users == frozenset()
    assert then["eu"].broker_users == BrokerUsers(frozenset(["User:c"]), "INTERNAL")


def test_a_proposed_file_stands_for_all_settings_and_options_go_before_it(
    sides: Sides, tmp_path: Path
):
    file = tmp_path / "server.properties"
    file.write_text("super.users=User:file\naclbroker.acl.host.cidr=true\n")
    given = ("--super-user", "User:root", "--allow-everyone-if-no-acl-found")
    _, then = sides(*given, "--proposed-properties", str(file))
    assert then["eu"].super_users == {"User:file"}
    assert not then["eu"].allow_everyone_if_no_acl_found
    assert then["eu"].cidr
    _, then = sides(*given, "--proposed-properties", f"us={file}", "--proposed-cidr", "false")
    assert then["eu"].super_users == {"User:root"}
    assert then["us"].super_users == {"User:file"}
    assert not then["us"].cidr


def test_broker_users_without_a_listener_are_refused_since_they_would_be_nowhere(sides: Sides):
    with pytest.raises(InputError, match="needs --proposed-broker-listener NAME: cluster eu"):
        sides("--proposed-broker-user", "User:b")
    _, then = sides("--proposed-broker-user", "User:b", "--proposed-broker-listener", "internal")
    assert then["eu"].broker_users == BrokerUsers(frozenset(["User:b"]), "INTERNAL")


def test_a_setting_for_an_unknown_cluster_is_refused(sides: Sides):
    with pytest.raises(InputError, match=r"^--proposed-cidr z: the log holds nothing"):
        sides("--proposed-cidr", "z=true")


def test_the_acls_of_a_broker_are_asked_for_once(tmp_path: Path):
    asked = []

    def describe(address: str, config: str | None) -> object:
        from aclbroker.acl.files.policy import Policy

        asked.append(address)
        return Policy([], "eu")

    options: AuditOptions = parsed(
        "what-if", *LEAST, "--acls", "kafka://h:1", "--proposed-cidr", "true"
    )
    read_rules(options, describe)  # type: ignore[arg-type]
    assert asked == ["kafka://h:1"]
