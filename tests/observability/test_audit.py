"""The audit log: which decisions, in which form, where, and what if it cannot be written."""

import errno
import io
import json
import os
import re
import resource
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from aclbroker.acl.authorizer import (
    ANY_RESOURCE,
    Action,
    Decision,
    Position,
    RequestContext,
    Rule,
    RuleKind,
    Session,
)
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasons import AclChange, NearMiss
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.broker.config import load
from aclbroker.broker.observability import logs
from aclbroker.broker.observability.audit import Audit, Explain
from aclbroker.broker.observability.audit_file import AuditFile
from aclbroker.protocol.messages import ApiKey

ACL = AclBinding(
    ResourceType.TOPIC,
    "pay.",
    PatternType.PREFIXED,
    "User:alice",
    "127.0.0.1",
    AclOperation.ALL,
    AclPermission.ALLOW,
)
WHY = WhyDenied([NearMiss(ACL, "it is for host 127.0.0.1")], AclChange((ACL,)))
ALLOWED = Decision(True, Rule(RuleKind.MATCHING_ACL, ACL))
DENIED = Decision(False, Rule(RuleKind.DEFAULT_DENY))
SUPER_USER = Decision(True, Rule(RuleKind.SUPER_USER))
READ = Action(AclOperation.READ, ResourceType.TOPIC, "pay.in")
FORGERY = "x\n[2026-11-21 00:00:00,000] DEBUG Principal = User:mallory is Allowed"


@pytest.fixture
def stream() -> io.StringIO:
    return io.StringIO()


def audit_of(
    stream: io.StringIO,
    log_form: str = "json",
    log_level: str = "info",
    explain: Explain | None = None,
    **settings: str,
) -> Audit:
    """An audit with `aclbroker.audit.*` settings whose log goes to the stream.

    Without others it records each decision for itself.
    """
    settings = {"rollup.seconds": "0", **settings}
    overrides = {f"aclbroker.audit.{name}": value for name, value in settings.items()}
    return Audit(
        load(None, {"node.id": "7", **overrides}),
        "cluster-1",
        logs.configure(log_level, log_form, stream),
        explain,
    )


def context_of(
    principal: str = "User:alice", host: str = "127.0.0.1", api_key: int = ApiKey.METADATA
) -> RequestContext:
    session = Session((principal,), host, "INTERNAL")
    return RequestContext(session, api_key, 3, "client-1", 42)


def record(
    audit: Audit,
    context: RequestContext,
    action: Action,
    decision: Decision,
    acls: Position | None = None,
) -> None:
    """Record one decision, if its kind is wanted, as the gate does."""
    loud = action.log_if_denied
    if decision.allowed in audit.wanted(log_if_denied=loud):
        decided = [(action.resource_name, action.reference_count, decision)]
        asked = context, action.operation, action.resource_type
        audit.record(*asked, decided, log_if_denied=loud, acls=acls)


def events_in(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize(
    ("level", "recorded"),
    [
        ("off", []),
        ("denied", ["info"]),
        ("all", ["info", "debug", "debug"]),
        ("trace", ["info", "trace", "debug", "debug"]),
    ],
)
def test_the_level_selects_decisions_as_kafkas_levels_do(
    stream: io.StringIO, level: str, recorded: list[str]
):
    audit = audit_of(stream, level=level)
    quiet = READ._replace(log_if_denied=False)
    for decision in (DENIED, ALLOWED):
        for action in (READ, quiet):
            record(audit, context_of(), action, decision)
    assert [event["level"] for event in events_in(stream.getvalue())] == recorded


def test_a_json_record_has_the_documented_keys(stream: io.StringIO):
    before = datetime.now(UTC)
    action = READ._replace(reference_count=4)
    record(audit_of(stream, level="all"), context_of(), action, ALLOWED)
    [event] = events_in(stream.getvalue())
    assert before <= datetime.fromisoformat(event.pop("timestamp")) <= datetime.now(UTC)
    assert event == {
        "level": "debug",
        "event": "authorization",
        "cluster_id": "cluster-1",
        "node_id": 7,
        "listener": "INTERNAL",
        "principal": "User:alice",
        "host": "127.0.0.1",
        "operation": "READ",
        "resource_type": "TOPIC",
        "pattern_type": "LITERAL",
        "resource_name": "pay.in",
        "resource_ref_count": 4,
        "api_name": "Metadata",
        "api_version": 3,
        "client_id": "client-1",
        "correlation_id": 42,
        "allowed": True,
        "rule": "MatchingAcl",
        "acl": {
            "resource_type": "TOPIC",
            "resource_name": "pay.",
            "pattern_type": "PREFIXED",
            "principal": "User:alice",
            "host": "127.0.0.1",
            "operation": "ALL",
            "permission_type": "ALLOW",
        },
    }


def test_every_key_is_documented(stream: io.StringIO):
    session = Session(("User:alice", "Group:admins"), "::1", "INTERNAL")
    context = context_of()._replace(session=session)
    audit = audit_of(stream, explain=lambda *_: WHY, level="all", **{"rollup.seconds": "60"})
    for acls, client_id in enumerate(("x" * 257, "a", "b")):
        record(audit, context._replace(client_id=client_id), READ, DENIED, acls)
    producer = context._replace(api_key=ApiKey.INIT_PRODUCER_ID)
    record(audit, producer, READ._replace(resource_name=ANY_RESOURCE), DENIED)
    for position in range(3):
        record(audit, context, READ._replace(resource_name="x"), DENIED, (("ZK_ACL", position),))
    audit.close()
    event = {key: value for each in events_in(stream.getvalue()) for key, value in each.items()}
    assert event["principals"] == ["User:alice", "Group:admins"]
    page = (Path(__file__).parents[2] / "docs" / "audit.md").read_text()
    documented = re.findall(r"^\| `(\w+)` \| [sianob]", page, re.MULTILINE)
    assert set(event) == set(documented)
    assert all(f"`{key}`" in page for key in event["nearest"][0])


def test_what_is_not_there_is_null_in_json(stream: io.StringIO):
    context = context_of()._replace(client_id=None)
    action = READ._replace(resource_name=None)
    record(audit_of(stream), context, action, DENIED)
    [event] = events_in(stream.getvalue())
    assert (event["client_id"], event["resource_name"], event["acl"]) == (None, None, None)


KAFKA_LINES = [
    (
        context_of("User:admin", api_key=ApiKey.CREATE_ACLS),
        Action(AclOperation.ALTER, ResourceType.CLUSTER, "kafka-cluster"),
        SUPER_USER,
    ),
    (
        context_of(),
        Action(AclOperation.DESCRIBE, ResourceType.TOPIC, "orders"),
        Decision(
            True,
            Rule(
                RuleKind.MATCHING_ACL,
                AclBinding(
                    ResourceType.TOPIC,
                    "orders",
                    PatternType.LITERAL,
                    "User:alice",
                    "*",
                    AclOperation.WRITE,
                    AclPermission.ALLOW,
                ),
            ),
        ),
    ),
    (context_of(), Action(AclOperation.DESCRIBE, ResourceType.TOPIC, "orders.eu"), DENIED),
    (context_of(), Action(AclOperation.DESCRIBE, ResourceType.TOPIC, "pay.in"), ALLOWED),
]
# Verbatim lines of a Kafka 4.3.0's authorizer log, without the time.
VERBATIM = """\
DEBUG Principal = User:admin is Allowed operation = ALTER from host = 127.0.0.1 on resource = \
Cluster:LITERAL:kafka-cluster for request = CreateAcls with resourceRefCount = 1 based on rule \
SuperUser (kafka.authorizer.logger)
DEBUG Principal = User:alice is Allowed operation = DESCRIBE from host = 127.0.0.1 on resource = \
Topic:LITERAL:orders for request = Metadata with resourceRefCount = 1 based on rule \
MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=orders, patternType=LITERAL, \
principal=User:alice, host=*, operation=WRITE, permissionType=ALLOW]) (kafka.authorizer.logger)
INFO Principal = User:alice is Denied operation = DESCRIBE from host = 127.0.0.1 on resource = \
Topic:LITERAL:orders.eu for request = Metadata with resourceRefCount = 1 based on rule \
DefaultDeny (kafka.authorizer.logger)
DEBUG Principal = User:alice is Allowed operation = DESCRIBE from host = 127.0.0.1 on resource = \
Topic:LITERAL:pay.in for request = Metadata with resourceRefCount = 1 based on rule \
MatchingAcl(acl=StandardAcl[resourceType=TOPIC, resourceName=pay., patternType=PREFIXED, \
principal=User:alice, host=127.0.0.1, operation=ALL, permissionType=ALLOW]) \
(kafka.authorizer.logger)
"""


def test_kafkas_form_is_the_text_of_kafka_4_3(stream: io.StringIO):
    audit = audit_of(stream, level="all", format="kafka")
    for context, action, decision in KAFKA_LINES:
        record(audit, context, action, decision)
    lines = stream.getvalue().splitlines(keepends=True)
    assert "".join(line.partition("] ")[2] for line in lines) == VERBATIM
    for line in lines:
        assert re.match(r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] ", line)


@pytest.mark.parametrize(
    ("resource_type", "shown"),
    [
        (ResourceType.TRANSACTIONAL_ID, "TransactionalId"),
        (ResourceType.DELEGATION_TOKEN, "DelegationToken"),
        (ResourceType.GROUP, "Group"),
        (ResourceType.USER, "User"),
    ],
)
def test_kafkas_form_names_resource_types_as_kafka_does(
    stream: io.StringIO, resource_type: ResourceType, shown: str
):
    audit = audit_of(stream, format="kafka")
    record(audit, context_of(), READ._replace(resource_type=resource_type), DENIED)
    assert f" on resource = {shown}:LITERAL:pay.in for request = " in stream.getvalue()


@pytest.mark.parametrize(
    ("host", "shown"),
    [
        ("::1", "0:0:0:0:0:0:0:1"),
        ("2001:db8::ff00:42:8329", "2001:db8:0:0:0:ff00:42:8329"),
        ("::ffff:10.1.2.3", "10.1.2.3"),
        ("fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth0"),
        ("no:address", "no:address"),
    ],
)
def test_kafkas_form_prints_addresses_as_java_does(stream: io.StringIO, host: str, shown: str):
    record(audit_of(stream, format="kafka"), context_of(host=host), READ, DENIED)
    assert f" from host = {shown} on resource" in stream.getvalue()


def test_kafkas_form_prints_what_is_not_there_as_null(stream: io.StringIO):
    audit = audit_of(stream, level="all", format="kafka")
    record(audit, context_of(), READ._replace(resource_name=None), DENIED)
    record(audit, context_of(), READ, Decision(True, Rule(RuleKind.MATCHING_ACL)))
    denied, allowed = stream.getvalue().splitlines()
    assert "on resource = Topic:LITERAL:null for request" in denied
    assert allowed.endswith("based on rule MatchingAcl(acl=null) (kafka.authorizer.logger)")


def test_kafkas_form_escapes_what_could_forge_a_line(stream: io.StringIO):
    """Deliberate difference from Kafka, where such a name writes a second line."""
    binding = ACL._replace(resource_name=FORGERY, principal=f"User:{FORGERY}", host=FORGERY)
    decision = Decision(True, Rule(RuleKind.MATCHING_ACL, binding))
    action = READ._replace(resource_name="a\\n" + FORGERY)
    audit = audit_of(stream, level="all", format="kafka")
    record(audit, context_of(f"User:\x1b[31m{FORGERY}"), action, decision)
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()
    assert "Principal = User:\\x1b[31mx\\n[2026" in line
    assert "Topic:LITERAL:a\\\\nx\\n[2026" in line


@pytest.mark.parametrize("log_form", ["json", "console"])
def test_json_records_in_the_log_cannot_be_forged(stream: io.StringIO, log_form: str):
    audit = audit_of(stream, log_form)
    context = context_of(f"User:{FORGERY}")._replace(client_id="\x1b[31m\u2028")
    record(audit, context, READ._replace(resource_name=FORGERY), DENIED)
    [line] = stream.getvalue().splitlines()
    assert line.isprintable()


def test_on_the_console_json_records_have_the_form_of_the_console(stream: io.StringIO):
    record(audit_of(stream, "console"), context_of(), READ, DENIED)
    line = stream.getvalue()
    assert re.match(r"[-\dT:.]+Z \[info   \] authorization cluster_id=cluster-1 ", line)
    assert " principal=User:alice " in line
    assert " allowed=false rule=DefaultDeny acl=null" in line


def test_the_level_of_the_log_does_not_concern_audit_records(stream: io.StringIO):
    record(audit_of(stream, log_level="error", level="all"), context_of(), READ, ALLOWED)
    [event] = events_in(stream.getvalue())
    assert event["level"] == "debug"


@pytest.mark.parametrize("form", ["json", "kafka"])
def test_records_are_appended_to_the_file_at_once(stream: io.StringIO, tmp_path: Path, form: str):
    path = tmp_path / "audit"
    path.write_text("older\n")
    audit = audit_of(stream, format=form, file=str(path))
    record(audit, context_of("User:\ud800"), READ, DENIED)
    older, newer = path.read_text().splitlines()
    assert older == "older"
    assert "\\ud800" in newer
    assert stream.getvalue() == ""
    audit.close()


def test_a_file_that_cannot_be_opened_stops_the_start(stream: io.StringIO, tmp_path: Path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        audit_of(stream, file=str(tmp_path / "nowhere" / "audit"))


def test_nothing_is_opened_when_auditing_is_off(stream: io.StringIO, tmp_path: Path):
    audit = audit_of(stream, level="off", file=str(tmp_path / "audit"))
    record(audit, context_of(), READ, DENIED)
    audit.reopen()
    audit.close()
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_was_moved_away_is_opened_anew(stream: io.StringIO, tmp_path: Path):
    path, moved = tmp_path / "audit", tmp_path / "audit.1"
    audit = audit_of(stream, file=str(path))
    record(audit, context_of("User:one"), READ, DENIED)
    path.rename(moved)
    record(audit, context_of("User:two"), READ, DENIED)
    audit.reopen()
    record(audit, context_of("User:three"), READ, DENIED)
    audit.close()
    assert [event["principal"] for event in events_in(moved.read_text())] == [
        "User:one",
        "User:two",
    ]
    assert [event["principal"] for event in events_in(path.read_text())] == ["User:three"]


def test_if_reopening_fails_the_old_file_stays_in_use(stream: io.StringIO, tmp_path: Path):
    logs.configure(form="json", stream=stream)
    directory = tmp_path / "a"
    directory.mkdir()
    file = AuditFile(str(directory / "audit"))
    directory.rename(tmp_path / "b")
    file.reopen()
    file.write(["kept"])
    file.close()
    assert (tmp_path / "b" / "audit").read_text() == "kept\n"
    [event] = events_in(stream.getvalue())
    assert event["event"] == "audit file cannot be opened"
    assert event["error"] == os.strerror(errno.ENOENT)


def test_an_outage_is_logged_once_and_its_end_with_the_loss(stream: io.StringIO, tmp_path: Path):
    logs.configure(form="json", stream=stream)
    path, elsewhere = tmp_path / "audit", tmp_path / "elsewhere"
    path.symlink_to("/dev/full")
    file = AuditFile(str(path), retry_seconds=0)
    for _ in range(3):
        file.write(["lost"])
    [error] = events_in(stream.getvalue())
    assert (error["level"], error["file"]) == ("error", str(path))
    assert error["error"] == os.strerror(errno.ENOSPC)
    path.unlink()
    path.symlink_to(elsewhere)
    file.write(["after"])
    file.write(["and on"])
    file.close()
    [_, end] = events_in(stream.getvalue())
    assert (end["level"], end["lost_records"]) == ("warning", 3)
    assert elsewhere.read_text() == "after\nand on\n"


def test_while_the_file_is_away_opening_it_is_not_tried_at_each_record(
    stream: io.StringIO, tmp_path: Path
):
    logs.configure(form="json", stream=stream)
    path = tmp_path / "audit"
    file = AuditFile(str(path), retry_seconds=3600)
    file.close()
    path.unlink()
    path.mkdir()
    file.write(["lost"])
    path.rmdir()
    file.write(["lost too"])
    assert not path.exists()
    file.reopen()
    file.write(["written"])
    file.close()
    assert path.read_text() == "written\n"
    assert [event["event"] for event in events_in(stream.getvalue())] == [
        "audit file cannot be written; decisions go on unrecorded until it can",
        "audit file is written again",
    ]


def test_a_line_that_a_crash_cut_off_stays_on_its_own(tmp_path: Path):
    path = tmp_path / "audit"
    path.write_text('{"whole":1}\n{"cut')
    file = AuditFile(str(path))
    file.write(['{"next":1}'])
    file.close()
    assert path.read_text() == '{"whole":1}\n{"cut\n{"next":1}\n'


@pytest.mark.parametrize("form", ["json", "kafka"])
def test_decisions_recorded_together_are_the_lines_of_each(stream: io.StringIO, form: str):
    decided = [
        (name, count, decision)
        for count, name in enumerate(("a", None, FORGERY, "\x7f"), 1)
        for decision in (DENIED, ALLOWED, SUPER_USER)
    ] * 100
    audit = audit_of(stream, level="all", format=form)
    audit.record(context_of(), AclOperation.READ, ResourceType.TOPIC, decided)
    together = untimed(stream.getvalue())
    stream.seek(0)
    stream.truncate()
    for one in decided:
        audit.record(context_of(), AclOperation.READ, ResourceType.TOPIC, [one])
    assert together == untimed(stream.getvalue())
    assert len(together) == len(decided)


def untimed(text: str) -> list[str]:
    """Lines without the time at their beginning."""
    return [
        re.sub(r'^(\[[^\]]*\] |\{"timestamp":"[^"]*",)', "", line) for line in text.splitlines()
    ]


def test_lines_written_before_the_disk_is_full_are_not_counted_as_lost(
    stream: io.StringIO, tmp_path: Path
):
    logs.configure(form="json", stream=stream)
    path = tmp_path / "audit"
    file = AuditFile(str(path), retry_seconds=0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len("first\nsec"), before[1]))
    try:
        file.write(["first", "second", "third"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    file.write(["after"])
    file.close()
    assert path.read_text() == "first\nsec\nafter\n"
    [_, end] = events_in(stream.getvalue())
    assert end["lost_records"] == 2
