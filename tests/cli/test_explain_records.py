"""`aclbroker explain` of a record of the audit log."""

import io
import json
import sys

import pytest

from aclbroker.broker.policy import Policy, write_policy
from aclbroker.cli import records
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import PREFIXED, WRITE, allow, deny
from tests.pipeline import json_lines, kafka_lines

ACLS = [
    allow(host="10.0.0.5"),
    allow("Group:staff", WRITE, "pay"),
    deny("User:alice", name="secret.", pattern_type=PREFIXED),
    allow("User:alice", name="secret.", pattern_type=PREFIXED),
]
DENIED = {"allowed": False, "rule": "DefaultDeny", "acl": None, "level": "info"}
RESERVED = {"rule": "ReservedTopic"}
ASKED = {"operation": "READ", "host": "10.0.0.6", "api_name": "Fetch"}
LINE = json_lines.record(**DENIED, **ASKED)
EXPLAINED = [
    "User:alice from 10.0.0.6: READ on TOPIC orders: denied (DefaultDeny)",
    "recorded: denied (DefaultDeny) at 2026-11-21T07:48:42.328104Z for Fetch",
    "nearly allows: ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.5: "
    "it is for host 10.0.0.5",
    "would be allowed after: add ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.6",
]
CONSOLE = (
    "2026-11-21T07:48:42.328104Z [info   ] authorization cluster_id=abc node_id=1 listener=SASL "
    "principal=User:alice host=10.0.0.6 operation=READ resource_type=TOPIC pattern_type=LITERAL "
    "resource_name=orders resource_ref_count=4 api_name=Fetch api_version=9 client_id=null "
    'correlation_id=7 allowed=false rule=DefaultDeny acl=null nearest=[{"host":"a b"}]'
)


@pytest.fixture
def ask(tmp_path, capsys):
    """Explain under some ACLs; return status, the lines of the answer, and standard error."""

    def ask(*words, acls=ACLS):
        policy = tmp_path / "policy.yaml"
        write_policy(Policy(acls), policy)
        command = parse_arguments(["explain", *words, "--acls", str(policy)])
        assert isinstance(command, QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return ask


def of_kafka(**parts):
    texts = {"operation": "READ", "host": "10.0.0.6", "resource": "Topic:LITERAL:orders"}
    return kafka_lines.line(**texts | parts)


def test_a_line_of_json_is_explained(ask):
    assert ask("--line", LINE) == (0, EXPLAINED, "")


def test_a_line_for_a_console_is_explained(ask):
    assert ask("--line", CONSOLE) == (0, EXPLAINED, "")


def test_a_line_for_a_console_that_is_cut_off_behind_all_that_decides_is_explained(ask):
    assert ask("--line", CONSOLE[:-5]) == (0, EXPLAINED, "")


def test_a_line_of_kafkas_form_is_explained(ask):
    status, lines, _ = ask("--line", of_kafka())
    assert (status, [lines[0], *lines[2:]]) == (0, [EXPLAINED[0], *EXPLAINED[2:]])
    assert lines[1] == "recorded: denied (DefaultDeny) at 2026-11-21 07:48:42,328 for Metadata"


def test_a_name_with_blanks_is_read_from_a_line_for_a_console(ask):
    line = CONSOLE.replace("resource_name=orders", 'resource_name="a b=\\"c\\""')
    assert ask("--line", line)[1][0] == (
        'User:alice from 10.0.0.6: READ on TOPIC a b="c": denied (DefaultDeny)'
    )
    line = CONSOLE.replace("resource_name=orders", "resource_name={a}")
    assert "on TOPIC {a}:" in ask("--line", line)[1][0]


def test_the_last_denial_of_a_file_is_explained(ask, tmp_path):
    log = tmp_path / "audit.jsonl"
    before = json_lines.record(**DENIED, resource_name="before")
    allowed = json_lines.record(operation="READ")
    quiet = json_lines.record(**DENIED | {"level": "trace"}, resource_name="filtered")
    change = '{"event":"change","timestamp":"2026-11-21T07:48:42.328104Z"}'
    log.write_text("".join(f"{each}\n" for each in (before, LINE, quiet, change, allowed, "{cut")))
    assert ask("--record", str(log)) == (0, EXPLAINED, "")


class Pipe(io.BytesIO):
    """What has no end that one could begin at."""

    def seekable(self):
        return False


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
def test_the_last_denial_of_standard_input_is_explained(ask, monkeypatch, kind):
    lines = (of_kafka(operation="WRITE"), LINE, of_kafka(host="?"), json_lines.record())
    text = "".join(f"{each}\n" for each in lines)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(kind(text.encode())))
    assert ask("--record", "-") == (0, EXPLAINED, "")


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
def test_an_empty_input_has_no_denial(ask, monkeypatch, kind):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(kind()))
    assert "standard input: there is no record of a denial" in ask("--record", "-")[2]


@pytest.mark.parametrize("block", [1, 7, 500, 1 << 20])
def test_a_file_is_read_from_its_end_however_its_lines_lie(ask, tmp_path, monkeypatch, block):
    monkeypatch.setattr(records, "_BLOCK", block)
    log = tmp_path / "audit.log"
    other = json_lines.record(**DENIED, resource_name="other")
    allowed = json_lines.record()
    for lines in ([other, LINE], [LINE, *[allowed] * 9], [LINE, ""], [other, "", LINE, "", ""]):
        log.write_text("\n".join(lines))
        assert ask("--record", str(log))[1] == EXPLAINED


def test_several_principals_of_a_session_count_as_recorded(ask):
    asked = {"operation": "WRITE", "resource_name": "pay", "host": "10.0.0.6"}
    alone = json_lines.record(**DENIED, **asked)
    assert ask("--line", alone)[1][0].endswith("denied (DefaultDeny)")
    both = json_lines.record(**DENIED, **asked, principals=["User:alice", "Group:staff"])
    status, lines, err = ask("--line", both)
    assert (status, err) == (0, "")
    assert lines[0].endswith("allowed (MatchingAcl)")
    assert lines[1].endswith("for Produce; these ACLs and settings decide otherwise")
    assert lines[2] == "decided by: ALLOW WRITE on TOPIC LITERAL pay to Group:staff from *"


def test_what_the_session_had_counts_and_not_the_groups_file(ask, tmp_path):
    groups = tmp_path / "groups.yaml"
    groups.write_text("version: 1\ngroups:\n  staff: [User:alice]\n")
    asked = {"operation": "WRITE", "resource_name": "pay", "host": "10.0.0.6"}
    words = ("--groups-file", str(groups), "--line")
    assert "denied" in ask(*words, json_lines.record(**DENIED, **asked))[1][0]
    # Kafka's form does not tell what the session had.
    line = of_kafka(operation="WRITE", resource="Topic:LITERAL:pay")
    assert "allowed" in ask(*words, line)[1][0]
    assert "--groups-file tells who is in them" in ask("--line", line)[2]


def test_a_denial_by_an_acl_names_it(ask):
    line = json_lines.record(**DENIED | {"rule": "MatchingAcl"}, **ASKED, resource_name="secret.x")
    assert ask("--line", line)[1][2:] == [
        "decided by: DENY READ on TOPIC PREFIXED secret. to User:alice from *",
        "matches: ALLOW READ on TOPIC PREFIXED secret. to User:alice from *",
        "would be allowed after: remove DENY READ on TOPIC PREFIXED secret. to User:alice from *",
    ]


def test_a_denial_that_any_topic_would_have_avoided_says_what_would_do(ask):
    line = json_lines.record(
        **DENIED, host="10.0.0.6", resource_name="(any)", api_name="InitProducerId"
    )
    assert ask("--line", line)[1] == [
        "User:alice from 10.0.0.6: WRITE on TOPIC (any): denied (DefaultDeny)",
        "recorded: denied (DefaultDeny) at 2026-11-21T07:48:42.328104Z for InitProducerId",
        "nearly allows: ALLOW READ on TOPIC PREFIXED secret. to User:alice from *: it allows READ",
        "nearly allows: ALLOW READ on TOPIC LITERAL orders to User:alice from 10.0.0.5: "
        "it is for host 10.0.0.5 and it allows READ",
        "would do: WRITE on any one topic, or IDEMPOTENT_WRITE on the cluster",
    ]


def test_a_broker_on_its_listener_may_do_everything(ask, tmp_path):
    settings = tmp_path / "server.properties"
    settings.write_text("broker.users=User:alice\ninter.broker.listener.name=SASL\n")
    words = ("--broker-properties", str(settings), "--line")
    assert ask(*words, LINE)[1][0].endswith("allowed (SuperUser)")
    elsewhere = json_lines.record(**DENIED, **ASKED, listener="OUTSIDE")
    assert ask(*words, elsewhere)[1][0].endswith("denied (DefaultDeny)")


def test_the_answer_is_rows_for_programs_too(ask):
    status, lines, _ = ask("--line", LINE, "--output", "json")
    [row] = json.loads("\n".join(lines))
    assert (status, row["decision"]) == (0, "denied")
    assert row["recorded"] == EXPLAINED[1].removeprefix("recorded: ")
    assert row["smallest_change"] == EXPLAINED[3].removeprefix("would be allowed after: ")


def test_a_record_that_has_the_beginning_of_a_name_alone_is_told_so(ask):
    line = json_lines.record(**DENIED, **ASKED, shortened={"resource_name": 300, "client_id": 400})
    note = "aclbroker: the record has only the beginning of its resource_name\n"
    assert ask("--line", line)[2] == note
    line = of_kafka(resource="Topic:LITERAL:orders...(300 characters)")
    assert "the beginning of its resource_name" in ask("--line", line)[2]


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--line", "nonsense"), "--line: does not begin as a record of the authorizer"),
        (("--line", "{}"), "--line: another event than authorization"),
        (("--line", '{"event":"change"}'), "--line: another event than authorization"),
        (("--line", json_lines.record(**DENIED, resource_name=None)), "named no resource"),
        (("--line", CONSOLE.replace("allowed=false ", "")), "--line: allowed: neither true"),
        (("--line", kafka_lines.line(**kafka_lines.PROBE)), "whether any topic is allowed"),
        (("--line", json_lines.record(**DENIED | RESERVED)), "--line: the topic keeps the ACLs"),
        (("--line", of_kafka(rule=" based on rule ReservedTopic")), "nobody may reach it"),
        (("--line", json_lines.record(host="laptop")), "'laptop' is no address"),
        (("--line", LINE, "--host", "10.0.0.1"), "nothing can be said besides"),
        (("User:a", "--line", LINE), "nothing can be said besides"),
        (("--record", "no/such/file"), "no/such/file: No such file or directory"),
        (("--record", __file__), "there is no record of a denial"),
        ((), "explain needs PRINCIPAL OPERATION TYPE [NAME], --record or --line"),
        (("User:a", "READ"), "explain needs PRINCIPAL OPERATION TYPE"),
    ],
)
def test_what_cannot_be_explained_is_told(ask, words, problem):
    status, lines, err = ask(*words)
    assert (status, lines) == (2, [])
    assert problem in err


def test_a_file_and_a_line_are_not_explained_at_once(capsys):
    with pytest.raises(SystemExit) as exit_info:
        parse_arguments(["explain", "--line", LINE, "--record", "-"])
    assert exit_info.value.code == 2
    assert "not allowed with argument" in capsys.readouterr().err
