"""`aclbroker policy apply` brings a file's ACLs into a running cluster, and shows before what."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
)
from aclbroker.acl.bindings import ResourceType as Type
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls
from aclbroker.broker.client.cluster_info import cluster_id
from aclbroker.broker.client.own_principal import own_principal
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.cli.arguments import ServeCommand, parse_arguments
from aclbroker.cli.policy.lockout import Applier, applier, lockout
from aclbroker.cli.policy.plan import plan
from tests.clients.acl_command import command_config
from tests.conftest import StartBroker
from tests.support.broker import Broker
from tests.support.tables import check_each

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
READ, WRITE, ALTER = AclOperation.READ, AclOperation.WRITE, AclOperation.ALTER


def acl(
    principal: str,
    operation: AclOperation = READ,
    permission: AclPermission = ALLOW,
    name: str = "orders",
    kind: Type = Type.TOPIC,
    host: str = "*",
) -> AclBinding:
    return AclBinding(kind, name, PatternType.LITERAL, principal, host, operation, permission)


def on_cluster(
    principal: str, operation: AclOperation = ALTER, permission: AclPermission = ALLOW
) -> AclBinding:
    return acl(principal, operation, permission, "kafka-cluster", Type.CLUSTER)


OURS = acl("User:alice")
DENIED = acl("User:bob", WRITE, DENY)
OTHER = acl("User:carol", WRITE)

GAINED = (
    "Rights gained (+) and lost (-):\n"
    "  + User:alice: READ, DESCRIBE on TOPIC LITERAL orders from any host\n"
)

Apply = Callable[..., int]

PLAIN_LOGIN = (
    "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\nsasl.jaas.config="
    'org.example.Module required username="me" password="secret";'
)
TOKEN_LOGIN = (
    "security.protocol=SASL_SSL\nsasl.mechanism=OAUTHBEARER\n"
    "sasl.jaas.config=org.example.Module required;"
)
DELEGATION_TOKEN_LOGIN = (
    "security.protocol=SASL_SSL\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config="
    'org.example.Module required username="id" password="secret" tokenauth=true;'
)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    broker = Broker(tmp_path_factory.mktemp("broker"))
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def session(shared: Broker) -> Iterator[Session]:
    """A session with a broker that has no ACLs."""
    addresses = read_addresses(shared.listeners["PLAINTEXT"])
    with open_session(addresses, read_settings(None)) as opened:
        delete_acls(opened, [AclFilter()])
        yield opened


@pytest.fixture
def apply(shared: Broker, tmp_path: Path) -> Apply:
    def run(acls: list[AclBinding], *options: str, cluster: str | None = None) -> int:
        file = tmp_path / "policy.yaml"
        write_policy(Policy(acls, cluster), file)
        address = shared.listeners["PLAINTEXT"]
        words = ["policy", "apply", str(file), "--bootstrap-server", address, *options]
        command = parse_arguments(words)
        assert not isinstance(command, ServeCommand)
        return command.run()

    return run


def test_what_the_cluster_lacks_is_shown_and_created_and_the_rest_stays(
    session: Session, apply: Apply, capsys: pytest.CaptureFixture[str]
) -> None:
    create_acls(session, [OTHER])
    assert apply([OURS, DENIED], "--force") == 0
    assert capsys.readouterr().out == (
        "+ DENY User:bob WRITE topic orders\n"
        "+ ALLOW User:alice READ topic orders\n"
        f"{GAINED}"
        "2 ACLs created, 0 removed.\n"
    )
    assert set(describe_acls(session)) == {OURS, DENIED, OTHER}
    assert apply([OURS, DENIED]) == 0
    assert capsys.readouterr().out == "The cluster has these ACLs already.\n"


def test_with_prune_what_the_file_has_not_is_removed(
    session: Session, apply: Apply, capsys: pytest.CaptureFixture[str]
) -> None:
    create_acls(session, [OTHER, DENIED])
    assert apply([OURS], "--force", "--prune") == 0
    assert capsys.readouterr().out == (
        "+ ALLOW User:alice READ topic orders\n"
        "- ALLOW User:carol WRITE topic orders\n"
        "- DENY User:bob WRITE topic orders\n"
        f"{GAINED}"
        "  - User:carol: WRITE, DESCRIBE on TOPIC LITERAL orders from any host\n"
        "1 ACLs created, 2 removed.\n"
    )
    assert describe_acls(session) == [OURS]


def test_what_changes_no_right_says_so_and_of_many_rights_some_are_shown(
    session: Session, apply: Apply, capsys: pytest.CaptureFixture[str]
) -> None:
    create_acls(session, [acl("User:alice", AclOperation.ALL)])
    assert apply([OURS], "--dry-run") == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["This changes no right of anybody."]
    many = [acl("User:bob", name=f"topic-{number}") for number in range(30)]
    assert apply(many, "--dry-run") == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 30 + 1 + 20 + 1
    assert lines[-1] == "  and 10 more, which aclbroker diff shows"


def test_a_dry_run_changes_nothing(
    session: Session, apply: Apply, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply([OURS], "--dry-run") == 0
    assert capsys.readouterr().out == f"+ ALLOW User:alice READ topic orders\n{GAINED}"
    assert describe_acls(session) == []


@pytest.mark.parametrize(("answer", "status"), [("y\n", 0), ("n\n", 1), ("", 1)])
def test_it_asks_first(
    answer: str, status: int, session: Session, apply: Apply, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(answer))
    assert apply([OURS]) == status
    assert describe_acls(session) == ([OURS] if status == 0 else [])


def test_a_file_of_another_cluster_is_refused(
    session: Session, apply: Apply, capsys: pytest.CaptureFixture[str]
) -> None:
    assert apply([OURS], "--force", cluster="another") == 1
    assert "is of the cluster another" in capsys.readouterr().err
    assert describe_acls(session) == []
    assert apply([OURS], "--force", cluster=cluster_id(session)) == 0
    assert describe_acls(session) == [OURS]


def test_who_applies_it_is_not_locked_out_unless_told(
    start_broker: StartBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    broker = start_broker()
    alice = command_config(tmp_path, "alice")
    with open_session(read_addresses(broker.listeners["PLAINTEXT"]), read_settings(None)) as admin:
        create_acls(admin, [on_cluster("User:alice")])
        file = tmp_path / "policy.yaml"
        write_policy(Policy([on_cluster("User:bob")]), file)
        address = broker.listeners["SASL_PLAINTEXT"]
        words = ["policy", "apply", str(file), "--bootstrap-server", address, "--force"]
        words += ["--prune", "--command-config", alice]
        command = parse_arguments(words)
        assert not isinstance(command, ServeCommand)
        assert command.run() == 1
        assert "User:alice may ALTER the cluster now" in capsys.readouterr().err
        assert describe_acls(admin) == [on_cluster("User:alice")]
        command = parse_arguments([*words, "--may-lock-out"])
        assert not isinstance(command, ServeCommand)
        assert command.run() == 0
        assert describe_acls(admin) == [on_cluster("User:bob")]


LOCKOUTS = [
    ([], [], None),
    ([], [OURS], None),
    ([on_cluster("User:me")], [on_cluster("User:me"), OURS], None),
    ([on_cluster("User:me")], [on_cluster("User:*")], None),
    ([on_cluster("User:me")], [], "may ALTER the cluster now"),
    ([], [on_cluster("User:you")], "no ACL is about the cluster now"),
    ([on_cluster("User:you")], [on_cluster("User:you"), OURS], None),
    ([], [on_cluster("User:me", permission=DENY)], "an ACL denies User:me ALTER"),
    (
        [on_cluster("User:me")],
        [on_cluster("User:me"), on_cluster("User:*", AclOperation.DESCRIBE, DENY)],
        "may DESCRIBE the cluster now",
    ),
]


def test_a_lockout_is_what_takes_the_right_to_change_acls_away() -> None:
    def check(case: tuple[list[AclBinding], list[AclBinding], str | None]) -> None:
        before, after, said = case
        reason = lockout(Applier(("User:me",), "127.0.0.1"), Rules(before), Rules(after))
        assert reason is None if said is None else said in (reason or "")

    check_each(LOCKOUTS, check)


ADMINS, OPS = on_cluster("Group:admins"), on_cluster("Group:ops")
NO_ADMINS = on_cluster("Group:admins", permission=DENY)
NO_OPS = on_cluster("Group:ops", permission=DENY)
ME = on_cluster("User:me")
UNLESS = "may not afterwards, unless it is in Group:admins, which is not known here"
NOW = (
    "User:me may ALTER the cluster now and may not afterwards",
    None,
)
MAY_BE = "and whether User:me is in it is not known here"


UNKNOWN_GROUPS = [
    ([ADMINS], [ADMINS, OURS], None, None, None),
    ([ME], [ME, ADMINS], None, None, None),
    ([ME], [ADMINS], UNLESS, None, "may not afterwards"),
    ([ME], [ME, NO_ADMINS], MAY_BE, "may not afterwards", None),
    ([ME], [NO_ADMINS], "may not afterwards", "may not afterwards", "may not afterwards"),
    ([ADMINS], [], f"Group:admins may ALTER the cluster now and may not then, {MAY_BE}", *NOW),
    ([ADMINS], [OPS], "Group:admins may ALTER the cluster now and may not then", *NOW),
    ([ADMINS], [ADMINS, NO_OPS], "an ACL denies Group:ops ALTER on the cluster", None, None),
    ([ADMINS, NO_OPS], [ADMINS, NO_OPS, OURS], None, None, None),
    ([OURS], [NO_OPS], "no ACL is about the cluster now", "no ACL", "no ACL"),
    ([on_cluster("User:you")], [on_cluster("User:you"), NO_OPS], None, None, None),
    (
        [],
        [ADMINS],
        "do not allow User:me ALTER on it, unless it is in Group:admins",
        None,
        "do not allow User:me ALTER on it; unless that is a super user",
    ),
]


def test_what_a_group_gains_or_loses_is_told_where_nobody_knows_who_is_in_it() -> None:
    def check(
        case: tuple[list[AclBinding], list[AclBinding], str | None, str | None, str | None],
    ) -> None:
        before, after, unknown, member, no_member = case
        me, group = ("User:me",), ("User:me", "Group:admins")
        for who, said in (
            (Applier(me, "127.0.0.1"), unknown),
            (Applier(group, "127.0.0.1", may_be_in_more=False), member),
            (Applier(me, "127.0.0.1", may_be_in_more=False), no_member),
        ):
            reason = lockout(who, Rules(before), Rules(after))
            assert reason is None if said is None else said in (reason or ""), (who, reason)

    check_each(UNKNOWN_GROUPS, check)


def test_whoever_is_a_super_user_by_the_settings_is_not_locked_out() -> None:
    who = Applier(("User:me", "Group:admins"), "127.0.0.1", may_be_super=False)
    supers = frozenset({"Group:admins"})
    assert lockout(who, Rules([ME], supers), Rules([NO_ADMINS], supers)) is None


@pytest.mark.parametrize(
    ("told", "properties", "groups", "expected"),
    [
        ([], PLAIN_LOGIN, None, (("User:me",), True)),
        ([], PLAIN_LOGIN, {}, (("User:me",), False)),
        ([], PLAIN_LOGIN, {"User:me": ["Group:ops"]}, (("User:me", "Group:ops"), False)),
        ([], PLAIN_LOGIN, {"User:you": ["Group:ops"]}, (("User:me",), False)),
        (["Group:a"], PLAIN_LOGIN, None, (("User:me", "Group:a"), False)),
        (["User:x"], PLAIN_LOGIN, {"User:x": ["Group:ops"]}, (("User:x", "Group:ops"), False)),
        ([], TOKEN_LOGIN, {}, None),
        (["User:x"], TOKEN_LOGIN, {}, (("User:x",), True)),
        (["User:x"], DELEGATION_TOKEN_LOGIN, {}, (("User:x",), True)),
        (["Group:a", "User:x"], TOKEN_LOGIN, {}, (("User:x", "Group:a"), False)),
        (["User:x"], "security.protocol=SSL", {}, (("User:x",), False)),
    ],
)
def test_groups_are_known_from_a_file_unless_an_access_token_may_bring_more(
    told: list[str],
    properties: str,
    groups: dict[str, list[str]] | None,
    expected: tuple[tuple[str, ...], bool] | None,
    tmp_path: Path,
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    who = applier(told, read_settings(str(file)), "127.0.0.1", groups)
    assert (who and (who.principals, who.may_be_in_more)) == expected


@pytest.mark.parametrize("known_by", ["nothing", "groups file", "properties", "option"])
def test_a_member_of_the_groups_file_keeps_the_right_by_the_group(
    known_by: str, start_broker: StartBroker, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    groups = tmp_path / "groups.yaml"
    groups.write_text("version: 1\ngroups:\n  admins: [User:alice]\n")
    broker = start_broker({"aclbroker.groups.file": str(groups)})
    file = tmp_path / "policy.yaml"
    write_policy(Policy([ADMINS]), file)
    tells = {
        "nothing": [],
        "groups file": ["--groups-file", str(groups)],
        "properties": ["--broker-properties", str(tmp_path / "server.properties")],
        "option": ["--principal", "Group:admins"],
    }
    with open_session(read_addresses(broker.listeners["PLAINTEXT"]), read_settings(None)) as admin:
        create_acls(admin, [on_cluster("User:alice")])
        words = ["policy", "apply", str(file), "--prune", "--force", *tells[known_by]]
        words += ["--bootstrap-server", broker.listeners["SASL_PLAINTEXT"]]
        words += ["--command-config", command_config(tmp_path, "alice")]
        command = parse_arguments(words)
        assert not isinstance(command, ServeCommand)
        status = command.run()
        told = capsys.readouterr()
        if known_by == "nothing":
            assert status == 1
            assert "unless it is in Group:admins, which is not known here" in told.err
            assert "--may-lock-out applies it all the same" in told.err
            assert describe_acls(admin) == [on_cluster("User:alice")]
        else:
            assert (status, told.err) == (0, "")
            assert describe_acls(admin) == [ADMINS]
            assert command.run() == 0  # as Group:admins, she may still see and change them


def test_a_groups_file_that_cannot_be_read_is_told_before_anything_is_asked(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "policy.yaml"
    write_policy(Policy([OURS]), file)
    words = ["policy", "apply", str(file), "--bootstrap-server", "127.0.0.1:1"]
    command = parse_arguments([*words, "--groups-file", str(tmp_path / "absent.yaml")])
    assert not isinstance(command, ServeCommand)
    assert command.run() == 1
    assert "absent.yaml: No such file" in capsys.readouterr().err


def test_denies_are_created_first_and_removed_last() -> None:
    found = plan([OURS, DENIED], [OTHER, acl("User:bob", READ, DENY)], prune=True)
    assert [each.permission for each in found.create] == [DENY, ALLOW]
    assert [each.permission for each in found.remove] == [ALLOW, DENY]


@pytest.mark.parametrize(
    ("properties", "principal"),
    [
        ("", "User:ANONYMOUS"),
        ("security.protocol=SSL", None),
        (PLAIN_LOGIN, "User:me"),
        (DELEGATION_TOKEN_LOGIN, None),
        (
            "security.protocol=SASL_PLAINTEXT\nsasl.jaas.config="
            'org.example.Module required principal="me/host@REALM";',
            "User:me",
        ),
    ],
)
def test_the_settings_tell_who_logs_in_where_they_can(
    properties: str, principal: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "client.properties"
    file.write_text(properties)
    assert own_principal(read_settings(str(file))) == principal
