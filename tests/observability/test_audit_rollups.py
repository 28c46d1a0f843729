"""What repeats is one line, what is long is shortened, and what is too much is counted."""

import asyncio
import json
import sys
from datetime import UTC
from pathlib import Path
from typing import Any

import pytest

from aclbroker.acl.authorizer import Decision, Rule, RuleKind
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasons import AclChange, NearMiss, other_host
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.broker.observability.allowance import Allowance
from aclbroker.broker.observability.rollups import RollUps
from aclbroker.pipeline.ingest.kafka_line import KafkaReason, parse
from tests.observability.auditing import ALLOWED, DENIED, NOON, Audited, asked, counted

MIB = 1_048_576


def allowed_by(operation: AclOperation) -> Decision:
    acl = AclBinding(
        ResourceType.TOPIC,
        "orders",
        PatternType.LITERAL,
        "User:alice",
        "*",
        operation,
        AclPermission.ALLOW,
    )
    return Decision(True, Rule(RuleKind.MATCHING_ACL, acl))


def test_the_first_denial_is_written_at_once_and_its_repeats_as_one_line(tmp_path: Path):
    audited = Audited(tmp_path)
    for _ in range(5):
        audited.decide("orders", references=2)
        audited.now += 1
    [first] = audited.lines()
    assert "count" not in first
    [_, repeats] = audited.closed()
    assert (repeats["count"], repeats["resource_ref_count"]) == (4, 8)
    assert repeats["timestamp"] == "2026-11-21T12:00:01.000000Z"
    assert repeats["last_timestamp"] == "2026-11-21T12:00:04.000000Z"
    last = {"count", "last_timestamp", "timestamp", "resource_ref_count"}
    assert {key: first[key] for key in first.keys() - last} == {
        key: repeats[key] for key in repeats.keys() - last
    }


def test_allowed_decisions_are_written_at_the_end_of_the_period(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=10)
    for _ in range(3):
        audited.decide(["orders", "pay"], ALLOWED)
        audited.now += 4
    assert audited.lines() == []
    said = [(e["resource_name"], e["count"], e["timestamp"][17:19]) for e in audited.closed()]
    assert said == [("orders", 3, "00"), ("pay", 3, "00")]


def test_a_period_ends_at_a_whole_multiple_of_its_length(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=10)
    for _ in range(3):
        audited.decide("orders", ALLOWED)
        audited.now += 6
    said = [(e["count"], e["timestamp"][17:19]) for e in audited.closed()]
    assert said == [(2, "00"), (1, "12")]


def test_a_single_decision_of_a_period_has_the_count_one(tmp_path: Path):
    audited = Audited(tmp_path)
    audited.decide("orders", ALLOWED)
    [line] = audited.closed()
    assert (line["count"], line["last_timestamp"]) == (1, line["timestamp"])


def test_no_line_has_decisions_of_two_days(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=86_400)
    audited.now = NOON + 12 * 3600 - 1
    for _ in range(2):
        audited.decide("orders", ALLOWED)
        audited.now += 1
    assert [(line["timestamp"][:10], line["count"]) for line in audited.closed()] == [
        ("2026-11-21", 1),
        ("2026-11-22", 1),
    ]


@pytest.mark.parametrize(
    "difference",
    [
        {"context": asked(principal="User:bob")},
        {"context": asked(host="127.0.0.2")},
        {"context": asked()._replace(api_key=1)},
        {"decision": DENIED},
        {"decision": allowed_by(AclOperation.READ)},
        {"names": "other"},
        {"decision": DENIED, "loud": False},
    ],
)
def test_only_what_is_equal_is_rolled_up(tmp_path: Path, difference: dict[str, Any]):
    audited = Audited(tmp_path)
    usual: dict[str, Any] = {"names": "orders", "decision": ALLOWED}
    audited.decide(**usual)
    audited.decide(**(usual | difference))
    assert len(audited.closed()) == 2


def test_another_acl_that_decides_makes_another_line(tmp_path: Path):
    audited = Audited(tmp_path)
    for operation in (AclOperation.READ, AclOperation.READ, AclOperation.ALL):
        audited.decide("orders", allowed_by(operation))
    assert [(line["acl"]["operation"], line["count"]) for line in audited.closed()] == [
        ("READ", 2),
        ("ALL", 1),
    ]


def test_a_line_names_the_position_of_the_acls_that_decided(tmp_path: Path):
    log = Audited(tmp_path)
    log.decide("denied", acls=7)
    [line] = log.lines()
    assert (line["acls"], list(line).index("acls")) == (7, list(line).index("acl") - 1)
    log.decide("denied", acls=7)
    log.decide("allowed", ALLOWED, acls=7)
    log.decide("unknown", ALLOWED)
    _, *rest = log.closed()
    found = {line["resource_name"]: line.get("acls") for line in rest}
    assert found == {"denied": 7, "allowed": 7, "unknown": None}
    assert not any("first_acls" in line for line in rest)


def test_a_line_for_decisions_at_several_positions_names_the_first_and_the_last(tmp_path: Path):
    log = Audited(tmp_path)
    for acls in (0, 5, 9):
        log.decide("allowed", ALLOWED, acls=acls)
        log.decide("denied", acls=acls)
    first, *rest = log.closed()
    assert (first["acls"], "first_acls" in first) == (0, False)
    found = {line["resource_name"]: (line["count"], line["first_acls"]) for line in rest}
    assert found == {"allowed": (3, 0), "denied": (2, 5)}
    assert {line["acls"] for line in rest} == {9}


def test_a_denial_that_found_no_room_counts_with_the_position_of_its_time(tmp_path: Path):
    log = Audited(tmp_path, max_bytes_per_second=1024)
    names = [f"topic-{number}" for number in range(40)]
    log.decide(names, acls=3)
    written = len(log.lines())
    assert 0 < written < len(names)
    log.decide(names, acls=4)
    log.now += 3600
    rest = log.closed()[written:]
    found = {line["resource_name"]: line for line in rest if "count" in line}
    waited = found[names[-1]]
    assert (waited["count"], waited["first_acls"], waited["acls"]) == (2, 3, 4)
    at_once = found[names[0]]
    assert (at_once["count"], at_once["acls"], "first_acls" in at_once) == (1, 4, False)


def test_client_ids_do_not_tell_decisions_apart_and_the_line_says_so(tmp_path: Path):
    audited = Audited(tmp_path)
    for client_id in ("a", "a", "b"):
        audited.decide("orders", ALLOWED, context=asked(client_id=client_id))
        audited.decide("pay", ALLOWED)
    orders, pay = audited.closed()
    assert (orders["client_id"], orders["count"], orders["other_client_ids"]) == ("a", 3, True)
    assert "other_client_ids" not in pay


def test_what_is_long_is_shortened_and_its_length_told(tmp_path: Path):
    audited = Audited(tmp_path)
    context = asked("User:" + "p" * 2000, client_id="c" * 32_767)
    for _ in range(3):
        audited.decide(["t" * 249, "g" * 30_000, "g" * 30_001], context=context)
    lines = audited.closed()
    assert {len(json.dumps(line)) > 3_000 for line in lines} == {False}
    by_length = {(line["resource_name"], *line["shortened"].items()) for line in lines}
    both = (("principal", 2005), ("client_id", 32_767))
    assert by_length == {
        ("t" * 249, *both),
        ("g" * 256, both[0], ("resource_name", 30_000), both[1]),
        ("g" * 256, both[0], ("resource_name", 30_001), both[1]),
    }
    assert {len(line["principal"]) for line in lines} == {1024}
    assert {line["client_id"] for line in lines} == {"c" * 256}
    assert not any("other_client_ids" in line for line in lines)


def test_the_text_of_kafka_is_shortened_with_the_length_in_it(tmp_path: Path):
    audited = Audited(tmp_path, format="kafka")
    for _ in range(2):
        audited.decide(["g" * 30_000, "t" * 249])
    audited.audit.close()
    lines = audited.path.read_text().splitlines()
    assert len(lines) == 4  # it has no place for a count
    assert f"LITERAL:{'g' * 256}...(30000 characters) for request = " in lines[0]
    assert f"LITERAL:{'t' * 249} for request = " in lines[1]
    assert not any(isinstance(parse(line.encode(), "c", UTC), KafkaReason) for line in lines)


def test_without_roll_ups_each_decision_has_its_line(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=0)
    for _ in range(3):
        audited.decide("orders", ALLOWED)
    assert len(audited.lines()) == 3
    assert not any("count" in line for line in audited.lines())


def test_memory_is_bounded_and_nothing_is_lost_silently(tmp_path: Path):
    audited = Audited(tmp_path, max_bytes_per_second=100_000)
    number = 100_000
    for start in range(0, number, 1000):
        audited.decide([f"topic-{n}" for n in range(start, start + 1000)])
    rollups = audited.audit._rollups
    assert rollups is not None
    assert len(rollups) == 10_000
    lines = audited.closed()
    left_out = [line for line in lines if line["event"] == "left_out"]
    assert sum(counted(lines).values()) + sum(line["denied"] for line in left_out) == number
    assert {line["allowed"] for line in left_out} == {0}
    denied = sum(line["denied"] for line in left_out)
    assert audited.audit.left_out() == {"denied": denied, "allowed": 0, "failed_changes": 0}
    # What was decided at once was written as far as the limit goes, and at the stop all that waits.
    assert len(lines) < 15_000


def test_nobody_leaves_no_room_for_others(tmp_path: Path):
    audited = Audited(tmp_path, max_bytes_per_second=1024)
    audited.decide([f"topic-{n}" for n in range(30_000)], context=asked("User:mallory"))
    for _ in range(2):
        audited.decide([f"topic-{n}" for n in range(9_000)], ALLOWED)
        audited.decide([f"topic-{n}" for n in range(500)], context=asked("User:bob"))
    lines = audited.closed()
    [left_out] = [line for line in lines if line["event"] == "left_out"]
    by_principal = {
        name: sum(counted([line for line in lines if line.get("principal") == name]).values())
        for name in ("User:mallory", "User:alice", "User:bob")
    }
    assert by_principal.pop("User:mallory") + left_out["denied"] == 30_000
    assert by_principal == {"User:alice": 18_000, "User:bob": 1_000}
    assert left_out["allowed"] == 0


def test_what_is_left_out_for_want_of_room_is_counted_by_the_decision(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=0, max_bytes_per_second=1024)
    for decision in (DENIED, ALLOWED):
        audited.decide([f"topic-{n}" for n in range(500)], decision)
    audited.now += 5
    audited.decide("later")
    lines = audited.closed()
    [told] = [line for line in lines if line["event"] == "left_out"]
    kept = sum(counted(lines).values())
    assert 15 < kept < 40
    assert (told["denied"] + told["allowed"] + kept, told["allowed"]) == (1001, 500)
    assert counted(lines)["later"] == 1
    assert set(told) == {
        *("timestamp", "level", "event", "cluster_id", "node_id"),
        *("denied", "allowed", "failed_changes"),
    }


def test_a_limit_is_for_bytes_a_second(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=0, max_bytes_per_second=10_000)
    for second in range(30):
        for n in range(50):
            audited.decide(f"{second}.{n}", context=asked(client_id="\u00fc" * 200))
        audited.now += 1
    size = sum(len(line) + 1 for line in audited.path.read_text().splitlines())
    assert 350_000 < size < 400_000  # those of thirty seconds and what was saved up of ten


async def test_what_waits_is_written_in_small_portions(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=10)
    audited.decide([f"topic-{n}" for n in range(1000)], ALLOWED)
    audited.audit._is_reopening = True  # not to wait for the next second
    audited.now += 10
    sizes = []
    while audited.audit._work():
        sizes.append(len(audited.lines()))
    assert sizes == list(range(100, 1001, 100))


async def test_the_event_loop_writes_what_waits(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=10)
    audited.audit.start()
    audited.decide([f"topic-{n}" for n in range(1000)], ALLOWED)
    audited.now += 10
    async with asyncio.timeout(60):
        while len(audited.lines()) < 1000:
            await asyncio.sleep(0.01)
    audited.audit.close()
    assert len(audited.lines()) == 1000


async def test_a_reopened_log_has_what_waited_in_the_old_file(tmp_path: Path):
    audited = Audited(tmp_path)
    audited.audit.start()
    audited.decide([f"topic-{n}" for n in range(250)], ALLOWED)
    moved = tmp_path / "moved"
    audited.path.rename(moved)
    audited.audit.reopen()
    async with asyncio.timeout(60):
        while not audited.path.exists():
            await asyncio.sleep(0.01)
    assert len(moved.read_text().splitlines()) == 250
    audited.decide("later", ALLOWED)
    assert [line["resource_name"] for line in audited.closed()] == ["later"]


def test_a_clock_that_is_set_back_makes_no_line_that_ends_before_it_begins(tmp_path: Path):
    audited = Audited(tmp_path, rollup_seconds=3600)
    for seconds in (10, 5, 7, -4000, 3):
        audited.now = NOON + 100 + seconds
        audited.decide("orders", ALLOWED)
        audited.decide("pay")
    lines = audited.closed()
    assert counted(lines) == {"orders": 5, "pay": 5}
    assert all(line["timestamp"] <= line.get("last_timestamp", "9") for line in lines)


def test_what_is_recorded_after_the_end_is_written_at_once(tmp_path: Path):
    audited = Audited(tmp_path)
    audited.audit.close()
    audited.decide("orders", ALLOWED)
    assert counted(audited.lines()) == {"orders": 1}


def test_more_references_than_a_line_may_have_begin_another(tmp_path: Path):
    audited = Audited(tmp_path)
    for _ in range(3):
        audited.decide("orders", ALLOWED, references=2**30)
    assert [line["resource_ref_count"] for line in audited.closed()] == [2**30, 2**30, 2**30]


def test_a_repeat_of_what_is_known_makes_no_object():
    rollups = RollUps(60)
    decided = [("orders", 1, DENIED)]
    asked_for = (asked(), AclOperation.READ, ResourceType.TOPIC, decided, True, NOON)
    [_] = rollups.add(*asked_for)
    before = sys.getallocatedblocks()
    for _ in range(1000):
        assert rollups.add(*asked_for) == []
    assert sys.getallocatedblocks() - before < 100
    assert len(rollups) == 1


def test_a_denial_is_explained_by_the_nearest_acls_and_not_too_often(tmp_path: Path):
    near = allowed_by(AclOperation.WRITE).rule.binding
    assert near is not None
    questions = []

    def explain(*question: object) -> WhyDenied:
        questions.append(question)
        return WhyDenied([NearMiss(near, "it allows WRITE")], AclChange((near,)))

    audited = Audited(tmp_path, explain)
    audited.decide("orders", ALLOWED)
    for _ in range(3):
        audited.decide([f"topic-{n}" for n in range(60)])
    assert len(questions) == 20
    resource = ResourceType.TOPIC, "topic-0"
    assert questions[0][1:] == (RuleKind.DEFAULT_DENY, AclOperation.READ, resource)
    lines = audited.closed()
    explained = [line for line in lines if "nearest" in line]
    assert len(explained) == 20
    assert explained[0]["nearest"] == [
        {
            "resource_type": "TOPIC",
            "resource_name": "orders",
            "pattern_type": "LITERAL",
            "principal": "User:alice",
            "host": "*",
            "operation": "WRITE",
            "permission_type": "ALLOW",
            "why": "it allows WRITE",
        }
    ]
    assert explained[0]["smallest_change"] == (
        "add ALLOW WRITE on TOPIC LITERAL orders to User:alice from *"
    )
    assert not any(line["allowed"] or "count" in line for line in explained)


@pytest.mark.parametrize("name", ["x" * 256, "x" * 257])
def test_a_change_is_told_whole_or_not_at_all(tmp_path: Path, name: str):
    near = allowed_by(AclOperation.WRITE).rule.binding
    assert near is not None
    change = AclChange((near._replace(resource_name=name[:256]),))
    for_host = near._replace(host=name)

    def explain(*_: object) -> WhyDenied:
        return WhyDenied([NearMiss(for_host, other_host(for_host))], change)

    audited = Audited(tmp_path, explain)
    audited.decide(name)
    [line] = audited.closed()
    assert ("smallest_change" in line) == (len(name) == 256)
    assert len(line["nearest"][0]["why"]) == 256
    assert line["nearest"][0]["shortened"]["why"] == len(f"it is for host {name}")


def test_a_change_of_an_acl_with_a_long_host_is_not_told(tmp_path: Path):
    near = allowed_by(AclOperation.WRITE).rule.binding
    assert near is not None
    change = AclChange((), (near._replace(host="x" * 257),))
    audited = Audited(tmp_path, lambda *_: WhyDenied(None, change))
    audited.decide("orders")
    [line] = audited.closed()
    assert not {"nearest", "smallest_change"} & line.keys()


def test_an_allowance_is_saved_up_and_a_clock_set_back_adds_nothing():
    now = 100.0
    allowance = Allowance(10, 30, lambda: now)
    allowance.take(35)
    assert allowance.left() == -5
    now += 2
    assert allowance.left() == 15
    now -= 50
    assert allowance.left() == 15
    now += 50
    assert allowance.left() == 30
