"""Synthetic audit data: true to the authorizer, in the broker's own form, the same by its seed."""

import gzip
import json
import re
from collections import Counter
from datetime import date, datetime
from io import StringIO

import pytest

from aclbroker.acl.authorizer import Action, RequestContext, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.files.policy import read_policy
from aclbroker.acl.index import AclIndex
from aclbroker.broker.config import load
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import LogOutput
from aclbroker.protocol.messages import APIS
from tools.audit_data.lines import CLUSTER_ID
from tools.audit_data.world import Sizes, World, make_acls
from tools.generate_audit import main

SMALL = [
    "--principals",
    "200",
    "--topics",
    "500",
    "--groups",
    "100",
    "--acls",
    "2000",
    "--days",
    "3",
    "--files",
    "3",
]
KAFKA_LINE = re.compile(
    r"\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3}\] (INFO|DEBUG|TRACE) Principal = (User:.+?) is "
    r"(Allowed|Denied) operation = ([A-Z_]+) from host = ([\d.]+) on resource = "
    r"(\w+):LITERAL:(\S+|User:.+?) for request = (\w+) with resourceRefCount = (\d+) based on rule "
    r"(SuperUser|DefaultDeny|MatchingAcl\(acl=StandardAcl\[resourceType=\w+, resourceName=.+, "
    r"patternType=\w+, principal=.+, host=[\d.*]+, operation=\w+, permissionType=\w+\]\)) "
    r"\(kafka\.authorizer\.logger\)"
)


def _generate(directory, *options):
    main([str(directory), *SMALL, *options])
    return json.loads((directory / "truth.json").read_text())


def _lines(directory):
    for path in sorted((directory / "log").iterdir()):
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        assert text.endswith("\n")
        yield from text.split("\n")[:-1]


def _bytes(directory):
    files = [path for path in directory.rglob("*") if path.is_file()]
    return {str(path.relative_to(directory)): path.read_bytes() for path in files}


def _authorizer(directory):
    policy = read_policy(directory / "acls.yaml")
    truth = json.loads((directory / "truth.json").read_text())
    return StandardAuthorizerData(AclIndex(policy.acls), truth["super_users"])


def _binding(acl):
    if acl is None:
        return None
    return AclBinding(
        ResourceType[acl["resource_type"]],
        acl["resource_name"],
        PatternType[acl["pattern_type"]],
        acl["principal"],
        acl["host"],
        AclOperation[acl["operation"]],
        AclPermission[acl["permission_type"]],
    )


@pytest.fixture(scope="module")
def mixed(tmp_path_factory):
    """A log of all there is: stray requests, ephemeral hosts, second principals, forgeries."""
    directory = tmp_path_factory.mktemp("mixed")
    options = "--events 20000 --forged 10 --ephemeral-hosts 0.3 --group-members 0.2 --seed 5"
    _generate(directory, *options.split())
    return directory


@pytest.mark.parametrize("form", ["jsonl", "kafka"])
def test_the_same_seed_gives_the_same_bytes(tmp_path, form):
    options = ["--events", "3000", "--format", form, "--forged", "5", "--gzip"]
    for directory, seed in (("a", "7"), ("b", "7"), ("c", "8")):
        _generate(tmp_path / directory, *options, "--seed", seed)
    first, second, other = (_bytes(tmp_path / directory) for directory in "abc")
    assert first == second
    assert all(first[name] != other[name] for name in first)


def test_the_events_are_the_same_however_they_are_cut_into_files(tmp_path):
    _generate(tmp_path / "a", "--events", "3000")
    main([str(tmp_path / "b"), *SMALL, "--events", "3000", "--files", "7", "--gzip"])
    assert list(_lines(tmp_path / "a")) == list(_lines(tmp_path / "b"))
    assert len(list((tmp_path / "b" / "log").iterdir())) == 7


def test_every_decision_and_rule_is_the_authorizers_own(mixed):
    authorizer = _authorizer(mixed)
    outcomes: Counter[tuple[bool, str, str | None]] = Counter()
    by_team = 0
    for line in _lines(mixed):
        try:
            event = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line that was cut; they are counted elsewhere
        principals = tuple(event.get("principals", [event["principal"]]))
        assert principals[0] == event["principal"]
        session = Session(principals, event["host"], event["listener"])
        action = Action(
            AclOperation[event["operation"]],
            ResourceType[event["resource_type"]],
            event["resource_name"],
        )
        decision = authorizer.decide(session, action)
        assert event["allowed"] == decision.allowed
        assert event["rule"] == decision.rule.kind.value
        assert _binding(event["acl"]) == decision.rule.binding
        permission = event["acl"] and event["acl"]["permission_type"]
        by_team += (
            bool(event["acl"]) and event["acl"]["principal"] == principals[-1] != principals[0]
        )
        outcomes[event["allowed"], event["rule"], permission] += 1
    assert set(outcomes) == {
        (True, "SuperUser", None),
        (True, "MatchingAcl", "ALLOW"),
        (False, "MatchingAcl", "DENY"),
        (False, "DefaultDeny", None),
    }
    assert by_team > 10


def test_json_lines_are_those_that_the_broker_writes(mixed, tmp_path):
    authorizer = _authorizer(mixed)
    keys = {api.name: key for key, api in APIS.items()}
    settings = {
        "node.id": "1",
        "aclbroker.audit.level": "trace",
        "aclbroker.audit.format": "json",
        "aclbroker.audit.file": str(tmp_path / "audit.jsonl"),
        "aclbroker.audit.rollup.seconds": "0",
    }
    output = LogOutput(StringIO(), lambda *_: "")
    times = [0.0]
    audit = Audit(load(None, settings), CLUSTER_ID, output, clock=lambda: times[-1])
    lines = [line for line in _lines(mixed) if line.endswith("}")][:3000]
    for line in lines:
        event = json.loads(line)
        principals = tuple(event.get("principals", [event["principal"]]))
        session = Session(principals, event["host"], event["listener"])
        context = RequestContext(
            session,
            keys[event["api_name"]],
            event["api_version"],
            event["client_id"],
            event["correlation_id"],
        )
        operation = AclOperation[event["operation"]]
        resource_type = ResourceType[event["resource_type"]]
        action = Action(operation, resource_type, event["resource_name"])
        decided = [
            (action.resource_name, event["resource_ref_count"], authorizer.decide(session, action))
        ]
        times.append(datetime.fromisoformat(event["timestamp"]).timestamp())
        audit.record(
            context, operation, resource_type, decided, log_if_denied=event["level"] != "trace"
        )
    audit.close()
    assert {json.loads(line)["level"] for line in lines} == {"info", "debug", "trace"}
    # The broker tells of the node itself, the generator of a cluster of three.
    unnumbered = [re.sub(r'"node_id":\d', '"node_id":1', line) for line in lines]
    assert (tmp_path / "audit.jsonl").read_text().splitlines() == unnumbered


def test_the_truth_counts_what_is_in_the_log(mixed):
    truth = json.loads((mixed / "truth.json").read_text())
    lines = list(_lines(mixed))
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except json.JSONDecodeError:
            assert "mallory" in line
    assert len(lines) == truth["lines"] == len(events) + truth["unreliable_lines"]
    assert truth["forged"] == {"newline": 5, "cut": 5}
    assert truth["unreliable_lines"] == 5
    assert len(events) == truth["events"] == 20_005
    counted = Counter(event["allowed"] for event in events)
    assert (truth["allowed"], truth["denied"]) == (counted[True], counted[False])
    for key in ("rule", "resource_type"):
        assert truth[f"by_{key}"] == Counter(event[key] for event in events)
    assert truth["by_level"] == Counter(event["level"].upper() for event in events)
    days = Counter((event["timestamp"][:10], event["allowed"]) for event in events)
    assert truth["by_day"] == {
        day: {"allowed": days[day, True], "denied": days[day, False]}
        for day in ("2026-01-01", "2026-01-02", "2026-01-03")
    }
    once = [event["host"] for event in events if event["host"].startswith("100.")]
    assert len(once) == truth["ephemeral_hosts"]
    assert 0.25 < len(once) / 20_000 < 0.35
    assert len(set(once)) > 0.9 * len(once)
    times = [event["timestamp"] for event in events]
    assert times == sorted(times)


def test_an_unreliable_json_line_is_no_json_and_a_line_break_in_a_name_begins_no_line(mixed):
    lines = list(_lines(mixed))
    assert sum("forged-victim" in line for line in lines) == 5
    for line in lines:
        if "forged-victim" in line:
            event = json.loads(line)
            assert (event["principal"], event["allowed"]) == ("User:mallory", False)
            assert "\n" in event["resource_name"]


def _kafka_text(line: str) -> re.Match[str]:
    match = KAFKA_LINE.fullmatch(line)
    assert match is not None
    return match


def test_kafka_text_is_that_of_kafka(tmp_path):
    truth = _generate(tmp_path, "--events", "5000", "--format", "kafka")
    found = [_kafka_text(line) for line in _lines(tmp_path)]
    assert len(found) == truth["lines"] == truth["events"] == 5000
    assert Counter(match[3] for match in found) == {
        "Allowed": truth["allowed"],
        "Denied": truth["denied"],
    }
    assert any("," in match[2] and " " in match[2] for match in found)


def test_both_forms_tell_the_same_events(tmp_path):
    _generate(tmp_path / "json", "--events", "3000")
    _generate(tmp_path / "kafka", "--events", "3000", "--format", "kafka")
    for text, line in zip(_lines(tmp_path / "kafka"), _lines(tmp_path / "json"), strict=True):
        event, match = json.loads(line), _kafka_text(text)
        assert match[2] == event["principal"]
        assert (match[3] == "Allowed") == event["allowed"]
        assert (match[4], match[5]) == (event["operation"], event["host"])
        assert match[6].upper() == event["resource_type"].replace("_", "")
        assert match[7] == event["resource_name"]
        assert (match[8], int(match[9])) == (event["api_name"], event["resource_ref_count"])


def test_kafka_text_holds_the_forgeries_that_were_asked_for(tmp_path):
    truth = _generate(tmp_path, "--events", "1000", "--format", "kafka", "--forged", "9")
    lines = list(_lines(tmp_path))
    assert truth["forged"] == {"continued": 3, "complete": 3, "inline": 3}
    assert truth["events"] == 1000
    assert truth["unreliable_lines"] == 3 * 2 + 3 * 3 + 3 * 1 == len(lines) - 1000
    forged = [line for line in lines if "forged-victim" in line]
    complete = [line for line in forged if KAFKA_LINE.fullmatch(line)]
    assert (len(forged), len(complete)) == (6, 3)
    # Whole lines, which nothing but their neighbours gives away.
    for line in complete:
        place = lines.index(line)
        assert lines[place - 1].endswith("Group:LITERAL:x")
        assert lines[place + 1].startswith(" for request = FindCoordinator")
    assert sum(line.count(" for request = ") == 2 for line in lines if "mallory" in line) == 3


def test_the_acls_have_the_shares_that_are_documented():
    acls = make_acls(World(Sizes()), seed=3)
    assert len(set(acls)) == 100_000
    types = Counter(acl.resource_type for acl in acls)
    assert types[ResourceType.TOPIC] / 1000 == pytest.approx(70, abs=2)
    assert types[ResourceType.GROUP] / 1000 == pytest.approx(25, abs=2)
    denied = sum(acl.permission is AclPermission.DENY for acl in acls)
    bound = sum(acl.host != "*" for acl in acls)
    assert denied / 1000 == pytest.approx(2, abs=0.5)
    assert bound / 1000 == pytest.approx(10, abs=1)
    prefixes = [acl.resource_name for acl in acls if acl.pattern_type is PatternType.PREFIXED]
    assert {len(prefix) for prefix in prefixes} == set(range(3, 21))
    # Zipf: the busiest tenth of the principals has far more than a tenth of the ACLs.
    shares = Counter(acl.principal for acl in acls).most_common(2000)
    assert sum(number for _, number in shares) > 40_000


def test_the_proposed_set_removes_some_acls_and_adds_prefixes(mixed):
    before = set(read_policy(mixed / "acls.yaml").acls)
    after = set(read_policy(mixed / "proposed.yaml").acls)
    assert len(before) == 2000
    assert 20 < len(before - after) < 100
    assert len(after - before) == 20
    assert {acl.pattern_type for acl in after - before} == {PatternType.PREFIXED}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--events", "0"], "0 is not above 0"),
        (["--forged", "-1"], "-1 is below 0"),
        (["--ephemeral-hosts", "1.5"], "1.5 is not between 0 and 1"),
        (["--ephemeral-hosts", "nan"], "nan is not between 0 and 1"),
        (["--format", "kafka", "--group-members", "0.5"], "--group-members needs jsonl"),
        (["--principals", "1", "--topics", "1", "--groups", "1"], "different ACLs are too many"),
    ],
)
def test_what_cannot_be_generated_is_an_error(tmp_path, capsys, options, message):
    with pytest.raises(SystemExit):
        main([str(tmp_path / "out"), *SMALL, *options])
    assert message in capsys.readouterr().err


def test_the_log_of_another_run_is_not_mixed_in(tmp_path, capsys):
    _generate(tmp_path, "--events", "10")
    with pytest.raises(SystemExit):
        main([str(tmp_path), *SMALL, "--events", "10"])
    assert "is not empty" in capsys.readouterr().err


def test_the_first_day_can_be_chosen(tmp_path):
    truth = _generate(tmp_path, "--events", "100", "--first-day", "2025-12-31")
    assert list(truth["by_day"]) == ["2025-12-31", "2026-01-01", "2026-01-02"]
    assert date.fromisoformat(json.loads(next(_lines(tmp_path)))["timestamp"][:10]).year == 2025
