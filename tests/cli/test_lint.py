"""`aclbroker lint` as it is typed: what it prints, its exit status, and what CI reads."""

import csv
import io
import json
import shlex

import pytest
import yaml

from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.acl.reasoning.lint.findings import CODES
from aclbroker.cli.arguments import ServeCommand, parse_arguments
from tests.acl.examples import (
    ALL,
    ALTER,
    CLUSTER,
    DESCRIBE,
    GROUP,
    PREFIXED,
    WRITE,
    allow,
    deny,
)
from tests.acl.reasoning.test_lint_exact import read

REDUNDANT = allow(operation=DESCRIBE, name="it's")
ACLS = [REDUNDANT, allow(name="it's"), deny("User:bob", name="x"), deny(host="laptop")]


def run(*words: str) -> int:
    command = parse_arguments(list(words))
    assert not isinstance(command, ServeCommand)
    return command.run()


@pytest.fixture
def lint(capsys, tmp_path):
    """Check ACLs; return the status, standard output and standard error."""
    policy = tmp_path / "policy.yaml"

    def lint(acls, *options):
        write_policy(Policy(acls), policy)
        status = run("lint", "--acls", str(policy), *options)
        return status, *capsys.readouterr()

    return lint


def test_nothing_found_ends_with_status_0(lint):
    assert lint([allow()]) == (0, "nothing found\n", "")


def test_a_note_ends_with_status_0_and_a_warning_with_1(lint):
    assert lint([deny("User:bob")])[0] == 0
    assert lint([allow(host="laptop")])[0] == 1


def test_each_finding_is_told_with_its_proof_and_its_fix(lint):
    status, out, _ = lint(ACLS)
    assert status == 1
    remove = 'aclbroker acls --bootstrap-server "$BOOTSTRAP" --remove --force'
    assert out.splitlines() == [
        "error: host-matches-nobody: DENY READ on TOPIC LITERAL orders to User:alice from laptop",
        "    Hosts are compared with the addresses of peers, and this is no address.",
        "    fix, which changes no decision:",
        f"        {remove} --deny-principal User:alice --deny-host laptop --operation Read "
        "--topic orders",
        "warning: impossible-name: ALLOW READ on TOPIC LITERAL it's to User:alice from *",
        "    Names of topics have 1 to 249 letters, digits, dots, underscores and hyphens.",
        "    fix:",
        f"        {remove} --allow-principal User:alice --operation Read --topic 'it'\"'\"'s'",
        "warning: redundant: ALLOW DESCRIBE on TOPIC LITERAL it's to User:alice from *",
        "    Without it nothing changes: others hold for all that it allows.",
        "    there is: ALLOW READ on TOPIC LITERAL it's to User:alice from *",
        "    fix, which changes no decision:",
        f"        {remove} --allow-principal User:alice --operation Describe --topic 'it'\"'\"'s'",
        "note: idle-deny: DENY READ on TOPIC LITERAL x to User:bob from *",
        "    It takes back nothing: no ACL allows any of it.",
        "    fix, which changes no decision:",
        f"        {remove} --deny-principal User:bob --operation Read --topic x",
        "4 findings: 1 error, 2 warnings, 1 note",
    ]


@pytest.mark.parametrize("form", ["json", "yaml", "csv"])
def test_programs_read_the_same(lint, form):
    _, out, _ = lint(ACLS, "--output", form)
    if form == "csv":
        rows = list(csv.DictReader(io.StringIO(out)))
    else:
        rows = json.loads(out) if form == "json" else yaml.safe_load(out)
    assert [row["code"] for row in rows] == [
        *("host-matches-nobody", "impossible-name", "redundant", "idle-deny")
    ]
    assert set(rows[0]) == {
        *("code", "severity", "acl", "proof", "because", "fix", "fix_changes_decisions", "no_fix")
    }
    if form != "csv":
        assert read(rows[2]["fix"]).remove == (REDUNDANT,)
        assert [row["fix_changes_decisions"] for row in rows] == [False, True, False, False]


def test_kinds_of_findings_can_be_left_out(lint):
    status, out, _ = lint(ACLS, "--ignore", "redundant", "--ignore", "host-matches-nobody",
                          "--ignore", "impossible-name")  # fmt: skip
    assert status == 0
    assert out.splitlines()[-1] == "1 finding: 0 errors, 0 warnings, 1 note"


def test_ci_reads_the_findings_as_sarif(lint, tmp_path):
    sarif = tmp_path / "out.sarif"
    lint(ACLS, "--sarif", str(sarif))
    [run] = json.loads(sarif.read_text())["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == list(CODES)
    assert [(each["ruleId"], each["level"]) for each in run["results"]] == [
        ("host-matches-nobody", "error"),
        ("impossible-name", "warning"),
        ("redundant", "warning"),
        ("idle-deny", "note"),
    ]
    redundant = run["results"][2]
    [location] = redundant["locations"]
    uri = location["physicalLocation"]["artifactLocation"]["uri"]
    assert uri.endswith("/policy.yaml")
    assert read(redundant["properties"]["fix"]).remove == (REDUNDANT,)
    prints = {each["partialFingerprints"]["acl/v1"] for each in run["results"]}
    assert len(prints) == len(run["results"])


def test_orphans_are_found_with_the_names_that_there_are(lint, tmp_path):
    topics, groups = tmp_path / "topics", tmp_path / "groups"
    topics.write_text("orders\n__consumer_offsets\n")
    groups.write_text("app\n")
    acls = [allow(), allow(name="gone"), allow(name="app", resource_type=GROUP)]
    assert lint(acls)[0] == 0
    _, out, _ = lint(acls, "--topics", str(topics), "--consumer-groups", str(groups))
    assert [line for line in out.splitlines() if "orphaned" in line] == [
        "warning: orphaned: ALLOW READ on TOPIC LITERAL gone to User:alice from *"
    ]


TOPICS_DESCRIBED = "Topic: orders\tTopicId: abc\tPartitionCount: 1\tReplicationFactor: 1\n"
GROUPS_DESCRIBED = "\nGROUP           TOPIC  PARTITION\napp             orders 0\n"


@pytest.mark.parametrize(
    ("option", "text", "line"),
    [
        ("--topics", TOPICS_DESCRIBED, 1),
        ("--topics", "orders\nError while executing topic command : timed out\n", 2),
        ("--topics", "[2026-11-28 10:00:00,000] WARN Couldn't connect\norders\n", 1),
        ("--topics", '["orders"]\n', 1),
        ("--topics", "orders,payments\n", 1),
        ("--topics", "Connection refused\n", 1),
        ("--topics", "NAME    PARTITIONS  REPLICAS\norders  1  1\n", 1),
        ("--topics", "o" * 250, 1),
        ("--topics", "version: 1\n", 1),
        ("--consumer-groups", GROUPS_DESCRIBED, 2),
        ("--consumer-groups", "Consumer group 'app' has no active members.\n", 1),
        ("--consumer-groups", "app\nError: Executing consumer group command failed: x\n", 2),
        ("--consumer-groups", "java.util.concurrent.TimeoutException: x\n", 1),
        ("--consumer-groups", "app\t1\n", 1),
    ],
)
def test_a_text_that_is_no_list_of_names_is_refused_with_its_line(
    lint, tmp_path, option, text, line
):
    file = tmp_path / "names"
    file.write_text(text)
    acls = [allow(), allow(name="app", resource_type=GROUP)]
    status, out, error = lint(acls, option, str(file))
    assert (status, out) == (2, "")
    assert error.startswith(f"aclbroker: {file}: line {line}: ")
    assert "expected one a line, as kafka-" in error


@pytest.mark.parametrize("text", ["", "\n", " \r\n", "\ufeff"])
def test_an_empty_list_of_names_counts_only_with_an_option(lint, tmp_path, text):
    file = tmp_path / "names"
    file.write_text(text)
    acls = [allow(), allow(name="app", resource_type=GROUP)]
    for option, noun in (("--topics", "topics"), ("--consumer-groups", "groups")):
        status, out, error = lint(acls, option, str(file))
        assert (status, out) == (2, "")
        assert f"{file}: it names no {noun}, so each ACL on {noun} would" in error
        assert "orphaned" in lint(acls, option, str(file), "--accept-empty-list")[1]
    # Without an ACL on groups, an empty list of groups is no error.
    assert lint([allow()], "--consumer-groups", str(file))[0] == 0


@pytest.mark.parametrize(
    "content",
    [
        b"orders\r\napp\r\n",
        b"orders \n\n app\t\n",
        "orders\napp\n".encode("utf-8-sig"),
        "orders\napp\n".encode("utf-16"),
        b"orders - marked for deletion\napp",
    ],
)
def test_names_are_read_in_each_encoding_and_with_blanks_around_them(lint, tmp_path, content):
    file = tmp_path / "names"
    file.write_bytes(content)
    status, out, _ = lint([allow(), allow(name="app"), allow(name="gone")], "--topics", str(file))
    assert (status, out.count("orphaned")) == (1, 1)


def test_a_blank_may_be_of_a_groups_name(lint, tmp_path):
    file = tmp_path / "names"
    file.write_text("app \nmy group\r\n")
    acls = [allow(name=name, resource_type=GROUP) for name in ("app", "app ", "my group")]
    assert "orphaned" not in lint(acls, "--consumer-groups", str(file))[1]


def test_settings_decide_what_is_found(lint):
    subnet = [allow(host="10.0.0.0/8")]
    status, out, _ = lint(subnet)
    assert status == 1
    assert "aclbroker.acl.host.cidr=true" in out
    assert lint(subnet, "--cidr") == (0, "nothing found\n", "")
    assert "super-user" in lint([allow()], "--super-user", "User:alice")[1]


@pytest.mark.parametrize(
    ("acls", "reason"),
    [
        ([allow(operation=WRITE, resource_type=GROUP)], "GROUP only supports operations"),
        ([allow(name="orders ")], "would take it for another one"),
        ([allow(name="or\tders")], "unprintable"),
    ],
)  # fmt: skip
def test_a_fix_that_no_command_can_say_is_told_as_that(lint, acls, reason):
    _, out, _ = lint(acls)
    assert "fix:" not in out
    assert reason in out.partition("no fix by a command: ")[2]


def test_an_acl_that_closes_names_has_no_fix(lint):
    _, out, _ = lint([allow(host="laptop")], "--allow-everyone-if-no-acl-found")
    assert "no fix by a command: all it does is to keep names closed" in out


def test_every_kind_of_acl_has_a_line_that_the_acls_command_reads(lint):
    acls = [
        allow(f"User:root-{number}", host="laptop", resource_type=kind, name=name, operation=ALL)
        for number, kind in enumerate(ResourceType)
        if kind > ResourceType.ANY
        for name in (["kafka-cluster"] if kind is CLUSTER else ["-x", "a b'\"$`\\", "é", "x"])
    ]
    acls += [each._replace(pattern_type=PREFIXED) for each in acls if each.resource_type != CLUSTER]
    rows = json.loads(lint(acls, "--output", "json")[1])
    assert {read(row["fix"]).remove for row in rows if row["fix"]} == {(each,) for each in acls}


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--ignore", "redundent"), "--ignore redundent: no code of redundant, shadowed"),
        (("--topics", "missing"), "missing: No such file"),
        (("--live",), "name it with --bootstrap-server"),
        (("--sarif", "/missing/out.sarif"), "/missing/out.sarif: No such file"),
    ],
)
def test_a_mistake_in_the_options_says_what_there_is(lint, options, problem):
    status, out, error = lint(ACLS, *options)
    assert (status, out) == (2, "")
    assert problem in error


def test_a_file_of_names_that_is_no_text_is_named(lint, tmp_path):
    topics = tmp_path / "topics"
    topics.write_bytes(b"\xff\n")
    assert str(topics) in lint(ACLS, "--topics", str(topics))[2]


def test_a_cluster_is_asked_for_its_acls_topics_and_groups(start_broker, capsys, tmp_path):
    broker = start_broker(
        {"aclbroker.catalog.topics": "orders:1", "aclbroker.catalog.groups": "app"}
    )
    gone = allow(name="gone")
    server = broker.listeners["PLAINTEXT"]
    config = tmp_path / "my client.properties"
    config.write_text("client.id=lint\n")
    add = ["acls", "--bootstrap-server", server, "--add", "--allow-principal", "User:alice",
           "--operation", "Read", "--topic", "gone", "--topic", "orders"]  # fmt: skip
    assert run(*add) == 0
    capsys.readouterr()
    words = ["lint", "--bootstrap-server", server, "--command-config", str(config)]
    assert run(*words) == 0
    assert capsys.readouterr().out == "nothing found\n"
    assert run(*words, "--live", "--output", "json") == 1
    [row] = json.loads(capsys.readouterr().out)
    assert row["code"] == "orphaned"
    assert read(row["fix"]).remove == (gone,)
    [line] = row["fix"]
    assert run(*shlex.split(line)[1:]) == 0
    capsys.readouterr()
    assert run(*words, "--live") == 0
    assert run("lint", "--bootstrap-server", "127.0.0.1:1", "--live") == 2


def test_a_risk_says_what_its_owner_might_do(lint):
    acl = allow("User:*", ALTER, "kafka-cluster", resource_type=CLUSTER)
    status, out, _ = lint([acl])
    assert status == 1
    assert "error: risky-cluster:" in out
    assert "change ACLs, and so give themselves any right" in out
