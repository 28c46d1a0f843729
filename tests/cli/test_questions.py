"""The commands that answer questions about ACLs, as they are typed."""

import asyncio
import csv
import io
import json

import pytest
import yaml

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.broker.stores import open_store
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import ALTER, CLUSTER, DESCRIBE, GROUP, PREFIXED, READ, WRITE, allow, deny
from tests.pipeline import json_lines
from tests.stores.origins import ORIGIN

TXN_ID = ResourceType.TRANSACTIONAL_ID
ACLS = [
    allow("User:payments", WRITE, "pii-", pattern_type=PREFIXED),
    deny("User:payments", WRITE, "pii-raw"),
    allow("User:etl", READ, "orders"),
    allow("User:etl", READ, "app", resource_type=GROUP),
    allow("User:etl", WRITE, "orders"),
    allow("User:etl", WRITE, "tx", resource_type=TXN_ID),
    allow("User:bob", READ, "orders", host="10.0.0.8"),
    allow("User:admin", ALTER, "kafka-cluster", resource_type=CLUSTER),
]
LISTING = """\
Current ACLs for resource `ResourcePattern(resourceType=TOPIC, name=orders, patternType=LITERAL)`: 
 \t(principal=User:etl, host=*, operation=READ, permissionType=ALLOW)
"""  # noqa: W291


@pytest.fixture
def policy(tmp_path):
    path = tmp_path / "policy.yaml"
    write_policy(Policy(ACLS), path)
    return str(path)


@pytest.fixture
def store(tmp_path):
    """The URL of a store with the ACLs of the policy."""
    url = f"sqlite:///{tmp_path}/acls.db"

    async def fill():
        opened = open_store(url)
        await opened.open()
        await opened.apply(ACLS, [], ORIGIN)
        await opened.close()

    asyncio.run(fill())
    return url


@pytest.fixture
def ask(capsys):
    """Run a command; return its status, standard output and standard error."""

    def ask(*words):
        command = parse_arguments(words)
        assert isinstance(command, QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return ask


NOT_INCLUDED = (
    "aclbroker: Super users are not included: they are not among the ACLs. "
    "Name them with --super-user or --broker-properties FILE.\n"
)


def test_who_can_on_a_topic_lists_its_writers(ask, policy):
    assert ask("who-can", "WRITE", "topic", "pii-mail", "--acls", policy) == (
        0,
        "User:payments from any host\n",
        NOT_INCLUDED,
    )


@pytest.mark.parametrize(
    "question",
    [
        ("who-can", "READ", "topic", "orders"),
        ("what-can", "User:etl"),
        ("explain", "User:etl", "READ", "topic", "orders"),
        ("explain", "--line", json_lines.record(resource_name="orders")),
        ("can", "User:etl", "describe-topic", "topic", "orders"),
    ],
)
def test_a_source_without_settings_is_said_not_to_have_super_users(
    ask, policy, tmp_path, store, question
):
    """The sources are a file of ACLs and a store named by its URL, also with default settings."""
    settings = tmp_path / "empty.properties"
    settings.write_text("# none\n")
    for source in (["--acls", policy], ["--acls", store]):
        assert ask(*question, *source)[2] == NOT_INCLUDED
        assert ask(*question, *source, "--super-user", "User:admin")[2] == ""
        assert ask(*question, *source, "--broker-properties", str(settings))[2] == ""


def test_super_users_that_one_side_alone_names_are_left_out_of_a_difference(
    ask, policy, tmp_path, store
):
    settings = tmp_path / "server.properties"
    path = store.removeprefix("sqlite:///")
    settings.write_text(
        f"aclbroker.store=sqlite:///{path}\nsuper.users=User:admin;User:etl\n"
        "broker.users=User:payments\nlisteners=PLAINTEXT://127.0.0.1:9092\n"
    )
    less = tmp_path / "less.yaml"
    write_policy(Policy(ACLS[1:]), less)
    lost = ask("diff", policy, str(less))[1]
    assert lost.startswith("- User:payments: WRITE")
    for other in (policy, store):
        note = (
            f"aclbroker: Super users are left out of the comparison: {other} does not name them. "
            "Name them with --super-user or --broker-properties FILE.\n"
        )
        assert ask("diff", str(settings), other) == (0, "no difference\n", note)
        assert ask("diff", other, str(settings)) == (0, "no difference\n", note)
    # The ACLs of a super user are compared like any other ACLs.
    assert ask("diff", str(settings), str(less))[1] == lost
    with settings.open("a") as file:
        file.write("allow.everyone.if.no.acl.found=true\n")
    assert "does not tell allow.everyone.if.no.acl.found" in ask("diff", str(settings), policy)[2]
    everyone = "--allow-everyone-if-no-acl-found"
    assert ask("diff", str(settings), policy, everyone)[:2] == (0, "no difference\n")
    both = ("--broker-properties", str(settings))
    assert ask("diff", str(settings), policy, *both) == (0, "no difference\n", "")
    assert ask("diff", policy, policy) == (0, "no difference\n", "")


def test_who_can_on_a_prefix_says_on_which_names(ask, policy):
    status, out, _ = ask("who-can", "write", "TOPIC", "pii-*", "--acls", policy)
    assert (status, out) == (
        0,
        "User:payments from any host, some names, such as pii-example\n",
    )


def test_who_can_shows_a_name_that_a_topic_can_have_if_there_is_one(ask, tmp_path):
    path = tmp_path / "policy.yaml"
    impossible, possible = allow("User:a", READ, "pii mail"), allow("User:a", READ, "pii-mail")
    words = ("who-can", "READ", "topic", "pii*", "--acls", str(path))
    for acls, example in (([impossible, possible], "pii-mail"), ([impossible], "pii mail")):
        write_policy(Policy(acls), path)
        assert ask(*words)[1] == f"User:a from any host, some names, such as {example}\n"


def test_who_can_tells_super_users_and_hosts(ask, policy):
    words = ("who-can", "READ", "topic", "orders", "--acls", policy, "--super-user", "User:root")
    assert ask(*words)[1].splitlines() == [
        "User:bob from 10.0.0.8",
        "User:etl from any host",
        "User:root from any host",
    ]
    assert "User:bob" not in ask(*words, "--host", "10.0.0.9")[1]


def test_who_can_on_the_cluster_needs_no_name(ask, policy):
    assert ask("who-can", "ALTER", "cluster", "--acls", policy)[1] == "User:admin from any host\n"


def test_what_can_lists_all_rights(ask, policy):
    assert ask("what-can", "User:payments", "--acls", policy)[1] == (
        "WRITE, DESCRIBE on TOPIC PREFIXED pii- but LITERAL pii-raw from any host\n"
        "DESCRIBE on TOPIC LITERAL pii-raw from any host\n"
    )
    assert ask("what-can", "User:nobody", "--acls", policy)[1] == "nothing\n"


def test_explain_tells_the_decision_and_the_change(ask, policy):
    status, out, _ = ask(
        "explain", "User:bob", "READ", "topic", "orders", "--host", "10.0.0.9", "--acls", policy
    )
    assert status == 0
    assert out.splitlines() == [
        "User:bob from 10.0.0.9: READ on TOPIC orders: denied (DefaultDeny)",
        "nearly allows: ALLOW READ on TOPIC LITERAL orders to User:bob from 10.0.0.8: "
        "it is for host 10.0.0.8",
        "would be allowed after: add ALLOW READ on TOPIC LITERAL orders to User:bob from 10.0.0.9",
    ]


def test_explain_names_the_acl_that_decides(ask, policy):
    out = ask("explain", "User:payments", "WRITE", "topic", "pii-raw", "--acls", policy)[1]
    assert out.splitlines()[1:3] == [
        "decided by: DENY WRITE on TOPIC LITERAL pii-raw to User:payments from *",
        "matches: ALLOW WRITE on TOPIC PREFIXED pii- to User:payments from *",
    ]


def test_can_tells_each_right_of_an_activity(ask, policy):
    words = ("can", "User:etl", "produce", "topic", "orders", "--acls", policy)
    assert ask(*words)[0] == 0
    status, out, _ = ask(
        "can", "User:etl", "produce", "--transactional", "topic", "orders",
        "transactional-id", "other", "--acls", policy,
    )  # fmt: skip
    assert status == 1
    assert out.splitlines()[0] == "no"
    assert "denied: WRITE on TRANSACTIONAL_ID other for INIT_PRODUCER_ID" in out


def test_can_asks_about_the_cluster_without_a_name(ask, policy):
    status, out, _ = ask("can", "User:admin", "change-acls", "cluster", "--acls", policy)
    assert (status, out.splitlines()[0]) == (0, "yes")
    assert ask("can", "User:etl", "change-acls", "cluster", "--acls", policy)[0] == 1


def test_diff_lists_rights_and_not_acls(ask, policy, tmp_path):
    other = tmp_path / "other.yaml"
    told_otherwise = [*ACLS, allow("User:etl", DESCRIBE, "orders")]
    write_policy(Policy(told_otherwise), other)
    assert ask("diff", policy, str(other)) == (0, "no difference\n", "")
    write_policy(Policy(ACLS[1:]), other)
    status, out, _ = ask("diff", policy, str(other))
    assert status == 1
    assert out.splitlines() == [
        "- User:payments: WRITE, DESCRIBE on TOPIC PREFIXED pii- but LITERAL pii-raw from any host",
        "    such as User:payments from 192.0.2.1: WRITE on TOPIC pii-example",
        "- User:payments: DESCRIBE on TOPIC LITERAL pii-raw from any host",
        "    such as User:payments from 192.0.2.1: DESCRIBE on TOPIC pii-raw",
    ]


def test_a_listing_of_kafkas_tool_is_read_as_well(ask, tmp_path):
    path = tmp_path / "listing.txt"
    path.write_text(LISTING)
    out = ask("who-can", "READ", "topic", "orders", "--acls", str(path))[1]
    assert out == "User:etl from any host\n"


def test_the_store_of_a_configuration_is_read_while_it_is_in_use(ask, tmp_path):
    config = tmp_path / "server.properties"
    config.write_text(
        f"aclbroker.store=sqlite:///{tmp_path}/acls.db\nsuper.users=User:root\n"
        "listeners=PLAINTEXT://127.0.0.1:0\n"
    )
    words = ("who-can", "READ", "topic", "orders", "--config", str(config))
    status, _, problem = ask(*words)
    assert status == 2
    assert "there is no ACL store" in problem

    async def in_use():
        store = open_store(f"sqlite:///{tmp_path}/acls.db")
        await store.open()
        await store.apply([*ACLS, allow("User:gone")], [], ORIGIN)
        await store.apply([], [allow("User:gone")], ORIGIN)
        found = ask(*words)
        await store.close()
        return found

    assert asyncio.run(in_use())[1].splitlines() == [
        "User:bob from 10.0.0.8",
        "User:etl from any host",
        "User:root from any host",
    ]


def test_the_settings_of_another_brokers_file_count(ask, policy, tmp_path):
    config = tmp_path / "kafka.properties"
    config.write_text("super.users=User:root\nallow.everyone.if.no.acl.found=true\n")
    words = ("who-can", "READ", "topic", "new", "--acls", policy)
    assert ask(*words)[1] == "nobody\n"
    assert ask(*words, "--broker-properties", str(config))[1] == "everyone from any host\n"
    assert ask(*words, "--allow-everyone-if-no-acl-found")[1] == "everyone from any host\n"


def test_answers_come_as_json_yaml_and_csv(ask, policy):
    words = ("who-can", "READ", "topic", "orders", "--acls", policy, "--output")
    rows = json.loads(ask(*words, "json")[1])
    assert rows[0] == {
        "principal": "User:bob",
        "hosts": ["10.0.0.8"],
        "example": "User:bob from 10.0.0.8: READ on TOPIC orders",
    }
    assert yaml.safe_load(ask(*words, "yaml")[1]) == rows
    [first, _] = csv.DictReader(io.StringIO(ask(*words, "csv")[1]))
    assert first == {**rows[0], "hosts": "10.0.0.8"}
    nobody = ("who-can", "READ", "topic", "none", "--acls", policy, "--output")
    assert ask(*nobody, "csv")[1] == ""
    assert json.loads(ask(*nobody, "json")[1]) == []


def test_a_name_cannot_command_the_terminal(ask, tmp_path):
    path = tmp_path / "policy.yaml"
    write_policy(Policy([allow(name="a\x1b[2J", resource_type=GROUP)]), path)
    out = ask("what-can", "User:alice", "--acls", str(path))[1]
    assert out == "READ, DESCRIBE on GROUP LITERAL a\\x1b[2J from any host\n"


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("who-can", "REED", "topic", "a"), "operation 'REED' is not one of READ, WRITE, CREATE"),
        (("who-can", "READ", "topik", "a"), "resource type 'topik' is not one of topic, group"),
        (("who-can", "READ", "topic"), "expected the name of a TOPIC behind its type"),
        (("who-can", "WRITE", "group", "g"), "no GROUP has the operation WRITE"),
        (("what-can", "User:a", "--host", "laptop"), "'laptop' is no address"),
        (("explain", "User:a", "READ", "topic", "a", "--host", "x"), "'x' is no address"),
        (("can", "User:a", "produce", "topic"), "expected the name of a TOPIC"),
        (("can", "User:a", "produce", "cluster"), "needs to know its topic: add 'topic NAME'"),
        (("can", "User:a", "fly", "cluster"), "'fly' is not one of produce, consume"),
        (
            ("can", "User:a", "produce", "topic", "a", "--transactional"),
            "produce needs to know its transactional-id",
        ),
    ],
)
def test_a_question_with_a_mistake_says_what_there_is(ask, policy, words, problem):
    status, out, error = ask(*words, "--acls", policy)
    assert (status, out) == (2, "")
    assert error.startswith("aclbroker: ")
    assert problem in error


def test_a_principal_without_a_type_is_refused(capsys):
    with pytest.raises(SystemExit) as exit_info:
        parse_arguments(["what-can", "alice"])
    assert exit_info.value.code == 2
    assert "expected Type:name, such as User:alice" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("place", "problem"),
    [
        (("--acls", "missing.yaml"), "missing.yaml: No such file or directory"),
        (("--acls", "server.properties"), "expected a policy or a listing"),
        (("--config", "policy.yaml"), "expected a file *.properties"),
        (("--config", "missing.properties"), "missing.properties"),
        (("--bootstrap-server", "127.0.0.1:1"), "kafka://127.0.0.1:1"),
    ],
)
def test_a_source_that_cannot_be_read_is_named(ask, place, problem):
    status, out, error = ask("what-can", "User:alice", *place)
    assert (status, out) == (2, "")
    assert problem in error


def test_a_policy_with_a_mistake_is_named_with_its_line(ask, tmp_path):
    path = tmp_path / "policy.yaml"
    path.write_text("version: 1\nacls:\n- principal: User:a\n  rules:\n  - topik: a\n")
    status, _, error = ask("what-can", "User:alice", "--acls", str(path))
    assert status == 2
    assert f"{path}: line 5, column " in error


GROUPS = "version: 1\ngroups:\n  staff: [User:zoe]\n"


@pytest.fixture
def of_staff(tmp_path):
    """A policy that allows a group to read orders, and a file that says who is in it."""
    path, groups = tmp_path / "of-staff.yaml", tmp_path / "groups.yaml"
    write_policy(Policy([allow("Group:staff", READ, "orders")]), path)
    groups.write_text(GROUPS)
    return str(path), str(groups)


def test_members_of_a_group_have_the_rights_of_the_group(ask, of_staff, tmp_path):
    acls, groups = of_staff
    zoe = ("explain", "User:zoe", "READ", "topic", "orders", "--acls", acls)
    assert "denied" in ask(*zoe)[1]
    assert "allowed" in ask(*zoe, "--groups-file", groups)[1]
    settings = tmp_path / "server.properties"
    settings.write_text(f"aclbroker.groups.file={groups}\n")
    assert "allowed" in ask(*zoe, "--broker-properties", str(settings))[1]
    status, out, _ = ask(
        "who-can", "READ", "topic", "orders", "--acls", acls, "--groups-file", groups
    )
    assert status == 0
    assert "User:zoe" in out
    assert "Group:staff" in out


@pytest.mark.parametrize(
    ("text", "problem"),
    [(None, "No such file"), ("version: 1\ngroups: [a]\n", "line 2, column 9")],
)
def test_a_groups_file_that_cannot_be_read_is_named(ask, of_staff, tmp_path, text, problem):
    path = tmp_path / "other.yaml"
    if text is not None:
        path.write_text(text)
    question = ("what-can", "User:zoe", "--acls", of_staff[0], "--groups-file", str(path))
    status, _, error = ask(*question)
    assert status == 2
    assert str(path) in error
    assert problem in error


def test_a_change_is_for_all_hosts_unless_a_host_is_asked_about(ask, policy):
    question = ("explain", "User:bob", "WRITE", "topic", "orders", "--acls", policy)
    _, anywhere, _ = ask(*question)
    assert "add ALLOW WRITE on TOPIC LITERAL orders to User:bob from *" in anywhere
    _, here, _ = ask(*question, "--host", "10.0.0.8")
    assert "add ALLOW WRITE on TOPIC LITERAL orders to User:bob from 10.0.0.8" in here


def test_acls_that_say_nothing_of_the_operation_do_not_match(ask, policy):
    bob = ("explain", "User:bob", "WRITE", "topic", "orders", "--host", "10.0.0.8")
    _, out, _ = ask(*bob, "--acls", policy)
    assert "matches:" not in out
    assert "nearly allows: ALLOW READ on TOPIC LITERAL orders to User:bob" in out


def test_it_is_said_where_the_members_of_groups_would_matter_and_are_not_known(ask, of_staff):
    acls, groups = of_staff
    note = "--groups-file tells who is in them"
    for question in (
        ("explain", "User:zoe", "READ", "topic", "orders"),
        ("what-can", "User:zoe"),
        ("can", "User:zoe", "consume", "topic", "orders"),
    ):
        assert note in ask(*question, "--acls", acls)[2]
        assert ask(*question, "--acls", acls, "--groups-file", groups)[2] == NOT_INCLUDED
    assert note not in ask("explain", "User:zoe", "READ", "topic", "other", "--acls", acls)[2]
    assert note in ask("diff", acls, acls)[2]
