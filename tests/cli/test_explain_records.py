"""`aclbroker explain` of a record of the audit log."""

import bz2
import gzip
import io
import json
import sys

import pytest

from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.cli import record_files
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from aclbroker.pipeline.ingest.kafka_line import TAIL
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
ROOT = ("--super-user", "User:root")
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
        command = parse_arguments(["explain", *words, "--acls", str(policy), *ROOT])
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
    """A log has one form, because a client can put a line of another form into a log of Kafka."""
    ours = (json_lines.record(**DENIED), LINE, json_lines.record(), of_kafka(host="10.9.9.9"))
    kafkas = (of_kafka(operation="WRITE"), of_kafka(), of_kafka(host="?"), LINE)
    for lines in (ours, kafkas):
        text = "".join(f"{each}\n" for each in lines)
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(kind(text.encode())))
        status, out, _ = ask("--record", "-")
        assert (status, out[0]) == (0, EXPLAINED[0])


@pytest.mark.parametrize("kind", [io.BytesIO, Pipe])
def test_an_empty_input_has_no_denial(ask, monkeypatch, kind):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(kind()))
    assert "standard input: there is no record of a denial" in ask("--record", "-")[2]


@pytest.mark.parametrize("block", [1, 7, 500, 1 << 20])
def test_a_file_is_read_from_its_end_however_its_lines_lie(ask, tmp_path, monkeypatch, block):
    monkeypatch.setattr(record_files, "_BLOCK", block)
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


MESSAGE = of_kafka().split(" ", 3)[3].removesuffix(TAIL)
PASTED = {
    "the message alone": MESSAGE,
    "with its logger": f" {MESSAGE}{TAIL}\r\n",
    "from a console of Kafka": f"2026-11-21 07:48:42 INFO  [main] kafka.authorizer: {MESSAGE}",
    "Strimzi": f"2026-11-21 07:48:42,328 INFO {MESSAGE}{TAIL} [request-handler-7]",
    "a log viewer": f"Nov 21, 2026 @ 07:48:42.328 kafka-0 {MESSAGE}",
    "syslog": f"Nov 21 07:48:42 b1 kafka[7]: {of_kafka()}",
    "Docker": json.dumps({"log": f"{of_kafka()}\n", "stream": "stdout"}),
    "a JSON layout": json.dumps(
        {
            "@timestamp": "2026-11-21T07:48:42.328Z",
            "level": "INFO",
            "logger_name": "kafka.authorizer.logger",
            "message": MESSAGE,
        }
    ),
    "our own log in a pod": f"2026-11-21T07:48:42.3281Z stdout F {LINE}",
    "our own console in a pod": f"2026-11-21T07:48:42.3281Z stdout F {CONSOLE}",
}


@pytest.mark.parametrize("kind", PASTED)
def test_a_line_is_explained_as_people_paste_it(ask, kind):
    status, lines, err = ask("--line", PASTED[kind])
    assert (status, [lines[0], *lines[2:]], err) == (0, [EXPLAINED[0], *EXPLAINED[2:]], "")
    assert lines[1].startswith("recorded: denied (DefaultDeny)")
    assert ("2026-11-21" in lines[1]) is ("2026-11-21" in PASTED[kind])


@pytest.mark.parametrize(
    "line",
    [
        of_kafka(resource=f"Group:LITERAL:{MESSAGE}"),
        of_kafka(principal=f"User:{MESSAGE}"),
        f"[GroupCoordinator 0]: Preparing to rebalance group {MESSAGE} in state Stable (kafka.x)",
        json.dumps({"log": of_kafka(resource=f"Group:LITERAL:x {MESSAGE}")}),
    ],
)
def test_a_name_like_a_record_is_not_explained_as_one(ask, line):
    status, lines, err = ask("--line", line)
    assert (status, lines) == (2, [])
    assert err.startswith("aclbroker: --line: ")


LAYOUTS = {
    "strimzi.log": lambda text: (
        text.replace("[", "", 1).replace("]", "", 1) + " [data-plane-kafka-request-handler-7]"
    ),
    "cri.log": lambda text: f"2026-11-21T07:48:42.328104412Z stdout F {text}",
    "docker-json.log": lambda text: json.dumps({"log": f"{text}\n", "stream": "stdout"}),
    "syslog.log": lambda text: f"Nov 21 07:48:42 b1 kafka[7]: {text}",
    "filebeat.json": lambda text: json.dumps({"log": {"offset": 0}, "message": text}),
}
NOISE = "[2026-11-21 07:48:42,328] INFO Starting (kafka.server.KafkaServer)"


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("pack", [None, gzip.compress, bz2.compress])
def test_a_log_is_read_in_the_forms_that_audit_reads(ask, tmp_path, name, pack):
    lines = [of_kafka(operation="WRITE"), of_kafka(), of_kafka(host="?"), NOISE]
    text = "".join(f"{LAYOUTS[name](each)}\n" for each in lines).encode()
    end = {None: "", gzip.compress: ".gz", bz2.compress: ".bz2"}[pack]
    log = tmp_path / f"{name}{end}"
    log.write_bytes(text if pack is None else pack(text))
    status, lines, err = ask("--record", str(log))
    assert (status, [lines[0], *lines[2:]]) == (0, [EXPLAINED[0], *EXPLAINED[2:]])
    assert lines[1] == "recorded: denied (DefaultDeny) at 2026-11-21 07:48:42,328 for Metadata"
    assert err == "aclbroker: 1 line looks like a denial and could not be read (no host)\n"


@pytest.mark.parametrize("block", [300, 1 << 20])
@pytest.mark.parametrize("name", ["", *LAYOUTS])
def test_what_a_client_writes_between_the_pieces_of_a_record_is_passed_over(
    ask, tmp_path, monkeypatch, name, block
):
    monkeypatch.setattr(record_files, "_BLOCK", block)
    wrap = LAYOUTS.get(name, str)
    begin, end = of_kafka(resource="Group:LITERAL:a\nb").split("\n")
    lines = [of_kafka(), begin, of_kafka(principal="User:forged"), end]
    log = tmp_path / "kafka.log"
    # In Strimzi's layout, a cut-off line ends without the logger and the thread.
    text = [begin if each == begin and name == "strimzi.log" else wrap(each) for each in lines]
    if name == "strimzi.log":
        text[1] = text[1].replace("[", "", 1).replace("]", "", 1)
    log.write_text("".join(f"{each}\n" for each in text))
    status, lines, err = ask("--record", str(log))
    assert (status, lines[0]) == (0, EXPLAINED[0])
    assert "could not be read" in err


def test_a_log_in_an_unknown_layout_says_how_many_lines_look_like_denials(ask, tmp_path):
    log = tmp_path / "kafka.log"
    log.write_text(f"INFO|2026-11-21T07:48:42.328|{MESSAGE}\n" * 3)
    status, _, err = ask("--record", str(log))
    assert (status, err.startswith(f"aclbroker: {log}: 3 lines look like denials")) == (2, True)
    assert "--pattern" in err
    assert "%d{ISO8601} %p %m (%c) [%t]%n" in err
    pattern = "%p|%d{yyyy-MM-dd'T'HH:mm:ss.SSS}|%m%n"
    status, lines, err = ask("--record", str(log), "--pattern", pattern)
    assert (status, lines[0], err) == (0, EXPLAINED[0], "")


@pytest.mark.parametrize("name", ["cri.log", "docker-json.log", "syslog.log"])
def test_our_own_log_behind_a_collector_is_read(ask, tmp_path, name):
    log = tmp_path / name
    lines = [json_lines.record(**DENIED, resource_name="before"), LINE, json_lines.record()]
    log.write_text("".join(f"{LAYOUTS[name](each)}\n" for each in lines))
    assert ask("--record", str(log)) == (0, EXPLAINED, "")


def test_a_log_whose_first_record_is_behind_much_else_is_read(ask, tmp_path):
    log = tmp_path / "kafka.log"
    lines = [NOISE] * 2_000 + [LAYOUTS["cri.log"](of_kafka())] + [NOISE] * 5
    log.write_text("".join(f"{each}\n" for each in lines))
    assert ask("--record", str(log))[1][0] == EXPLAINED[0]


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("kafka.log", of_kafka().encode("utf-16"), "the log is UTF-16: convert it with iconv"),
        ("kafka.log.zst", b"x", "zstd -dc"),
        ("kafka.log.gz", b"no gzip", "Not a gzipped file"),
        ("kafka.log.gz", gzip.compress(b"x" * 99, mtime=0)[:-9], "end-of-stream marker"),
    ],
)
def test_a_log_that_cannot_be_read_says_why(ask, tmp_path, name, content, problem):
    log = tmp_path / name
    log.write_bytes(content)
    status, _, err = ask("--record", str(log))
    assert (status, err.startswith(f"aclbroker: {log}: ")) == (2, True)
    assert problem in err


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--line", "nonsense"), "--line: does not begin as a record of the authorizer"),
        (("--line", "{}"), "--line: event: missing, or no name"),
        (("--line", '{"event":"change"}'), "--line: another event than authorization"),
        (("--line", json_lines.record(**DENIED, resource_name=None)), "named no resource"),
        (("--line", CONSOLE.replace("allowed=false ", "")), "--line: allowed: neither true"),
        (("--line", kafka_lines.line(**kafka_lines.PROBE)), "whether any topic is allowed"),
        (("--line", json_lines.record(**DENIED | RESERVED)), "--line: the topic keeps the ACLs"),
        (("--line", of_kafka(rule=" based on rule ReservedTopic")), "nobody may reach it"),
        (("--line", json_lines.record(host="laptop")), "--line: host: missing, or no address"),
        (("--line", LINE, "--host", "10.0.0.1"), "nothing can be said besides"),
        (("User:a", "--line", LINE), "nothing can be said besides"),
        (("--record", "no/such/file"), "no/such/file: No such file or directory"),
        (("--record", io.__file__), "there is no record of a denial"),
        (("--line", LINE, "--pattern", "%m"), "--pattern is the layout of the log"),
        (("--record", __file__, "--pattern", "%m"), "expected the time, %d"),
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
