"""The decisions that quarantined lines may have been, and the ACLs that they may have used."""

from __future__ import annotations

import json
import random

import pytest

pytest.importorskip("pyarrow")

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.pipeline.analysis import doubted as doubted_module
from aclbroker.pipeline.analysis.doubted import doubted
from aclbroker.pipeline.ingest import json_line, kafka_line
from aclbroker.pipeline.ingest.doubts import doubts_of
from aclbroker.pipeline.ingest.json_line import JsonReason
from aclbroker.pipeline.ingest.kafka_line import KafkaReason
from aclbroker.pipeline.usage.doubt import Doubt
from tests.pipeline.json_lines import record
from tests.pipeline.kafka_lines import CLOCK, NOT_RECORDS, allowed_line, line

ALLOWED = line(verdict="is Allowed operation", operation="READ", rule=" based on rule X")
"""A record of User:alice on the topic orders.eu with an unknown rule."""


def acl(
    principal: str, name: str, operation: str = "READ", kind: str = "TOPIC", prefix: bool = False
) -> AclBinding:
    return AclBinding(
        ResourceType[kind],
        name,
        PatternType.PREFIXED if prefix else PatternType.LITERAL,
        principal,
        "*",
        AclOperation[operation],
        AclPermission.ALLOW,
    )


ACLS = [
    acl("User:alice", "orders.eu"),
    acl("User:alice", "orders.", "ALL", prefix=True),
    acl("User:*", "*"),
    acl("User:alice", "orders"),
    acl("User:alice", "orders.eu", "WRITE"),
    acl("User:alice", "orders.eu", kind="GROUP"),
    acl("User:alicia", "orders.eu"),
    acl("User:bob", "orders.eu"),
    acl("User:alice", "orders.eu.secret"),
    acl("User:alice", "orders.eu")._replace(permission=AclPermission.DENY),
]


def kept(text: str, reason: str = KafkaReason.WORDS) -> list[int]:
    return sorted(doubted(ACLS, doubts_of(text, reason)))


def test_a_line_that_says_all_keeps_what_could_have_allowed_it() -> None:
    assert kept(ALLOWED) == [0, 1, 2]
    assert kept(ALLOWED.replace("READ", "DESCRIBE")) == [0, 1, 2, 4]
    assert kept(ALLOWED.replace("Topic:", "Group:")) == [5]


def test_a_line_that_was_denied_keeps_nothing() -> None:
    assert kept(line()) == kept(line().partition(" from host")[0]) == []
    assert kept(line(principal="User:alice is Allowed operation = READ")) != []


def test_a_line_keeps_the_more_the_earlier_it_is_cut_off() -> None:
    before = 0
    for end in range(len(ALLOWED), 0, -1):
        found = kept(ALLOWED[:end], KafkaReason.CUT_OFF)
        assert {0, 1, 2} <= set(found), ALLOWED[:end]
        assert 9 not in found
        before = max(before, len(found))
    assert before == len(ACLS) - 1
    assert kept(ALLOWED.partition(".eu")[0], KafkaReason.CUT_OFF) == [0, 1, 2, 3, 8]
    assert kept(ALLOWED.partition("ce is")[0], KafkaReason.CUT_OFF) == [0, 1, 2, 3, 4, 5, 6, 8]


def test_a_line_whose_beginning_is_lost_keeps_what_anybody_may_have_used() -> None:
    assert kept(ALLOWED.partition("= User:al")[2], KafkaReason.HEAD) == [0, 1, 2, 6, 7]


def test_a_record_behind_a_cut_off_line_at_debug_keeps_what_it_may_have_needed() -> None:
    whole = [text for text, reason in NOT_RECORDS.items() if reason is KafkaReason.OLD_DEBUG]
    for debug in whole:
        start = debug.find("acl = ") + 6 if "acl = " in debug else len(f"[{CLOCK}] DEBUG operat")
        for end in range(start, len(debug) - 1):
            text = debug[:end] + ALLOWED
            reason = kafka_line.parse(text.encode(), "")
            assert isinstance(reason, KafkaReason)
            assert {0, 1, 2} <= set(kept(text, reason)), text
        between = debug[:start] + ALLOWED + debug
        reason = kafka_line.parse(between.encode(), "")
        assert isinstance(reason, KafkaReason)
        assert {0, 1, 2} <= set(kept(between, reason)), between


def test_bytes_that_were_replaced_may_be_anything() -> None:
    assert kept(ALLOWED.replace("User:alice", "User:al\ufffdce"))[-2:] == [2, 6]
    assert kept(ALLOWED.replace("orders.eu", "orders\ufffdeu")) == [0, 1, 2, 3, 8]


def test_of_two_records_in_one_line_either_may_be_true() -> None:
    bobs = ALLOWED.replace("alice", "bob")
    assert kept(ALLOWED[:60] + bobs) == [0, 1, 2, 3, 4, 5, 7, 8]
    assert kept(ALLOWED + bobs) == [0, 1, 2, 7]


def test_the_acl_that_a_rule_names_is_kept_whoever_the_principal_seems_to_be() -> None:
    rule = allowed_line(principal="Odd(x)").replace("User:CN=app one,OU=Dev is Denied", "User:bob")
    found = kept(
        rule.replace("resourceName=orders", "resourceName=orders.eu"), KafkaReason.PRINCIPAL
    )
    assert 7 in found


@pytest.mark.parametrize(
    "principal",
    [
        "OAuthKafkaPrincipal(User:alice, groups: null, session: 38, token: ab**yz)",
        "OAuthKafkaPrincipal(User:alice, groups: [a, b], session: 38, token: ab**yz)",
        "OtherKafkaPrincipal(User:alice, tenant: 7)",
    ],
)
def test_a_principal_in_a_class_that_prints_itself_is_kept(principal: str) -> None:
    text = ALLOWED.replace("User:alice", principal)
    for end in (len(text), text.index(" is Allowed") + 20, text.index(" is Allowed") - 6):
        assert {0, 1} <= set(kept(text[:end], KafkaReason.CUT_OFF))


def test_lines_of_which_nothing_can_be_told_keep_all_and_those_of_other_loggers_nothing() -> None:
    every_allow = list(range(len(ACLS) - 1))
    for text, reason in NOT_RECORDS.items():
        if reason is KafkaReason.HEAD and "Princip" in text and "=" not in text:
            assert kept(text, reason) == every_allow, text
        if reason in (KafkaReason.OTHER, KafkaReason.OLD_DEBUG):
            assert kept(text, reason) == [], text
    assert kept(f"[{CLOCK}] DEB", KafkaReason.HEAD) == every_allow
    assert kept("y for request = X (kafka.authorizer.logger)", KafkaReason.HEAD) == []


def test_our_own_lines_keep_what_they_may_have_needed() -> None:
    text = record(principal="User:alice", operation="READ", resource_name="orders.eu", allowed=True)
    assert kept(text, JsonReason.RULE) == [0, 1, 2]
    for end in range(1, len(text)):
        assert {0, 1, 2} <= set(kept(text[:end], JsonReason.JSON)), text[:end]
    denied = record(allowed=False)
    assert kept(denied, JsonReason.RULE) == kept(denied[:-3], JsonReason.JSON) == []
    both = text.replace('"host"', '"principals":["User:odd","User:bob"],"host"', 1)
    assert 7 in kept(both, JsonReason.RULE)


def test_our_own_lines_within_an_envelope_keep_what_they_may_have_needed() -> None:
    text = record(principal="User:alice", operation="READ", resource_name="orders.eu", allowed=True)
    docker = json.dumps({"log": f"{text}\n", "stream": "stdout"})
    in_list = json.dumps({"records": [{"message": text}]})
    cri = f"2026-11-21T07:48:42.328104412Z stdout F {text}"
    for wrapped in (docker, in_list, json.dumps({"log": cri}), json.dumps({"event": text})):
        of_ours = json_line.parse(wrapped.encode())
        assert isinstance(of_ours, JsonReason)
        assert kept(wrapped, of_ours) == [0, 1, 2], wrapped
    for wrapped in (cri, docker, json.dumps({"log": cri})):
        of_kafka = kafka_line.parse(wrapped.encode(), "")
        assert isinstance(of_kafka, KafkaReason)
        assert kept(wrapped, of_kafka) == [0, 1, 2], wrapped
    denied = json.dumps({"log": record(allowed=False)})
    assert kept(denied, JsonReason.NO_EVENT) == []


def test_a_record_that_is_cut_off_keeps_its_doubt_whatever_is_written_behind_it() -> None:
    text = record(principal="User:alice", operation="READ", resource_name="orders.eu", allowed=True)
    change = '{"timestamp":"2026-11-21T07:48:42.328104Z","event":"change","principal":"User:carol"}'
    for behind in (
        record(allowed=False, principal="User:carol"),
        change,
        line(principal="User:carol"),
    ):
        for end in range(1, len(text) + 1):
            assert {0, 1, 2} <= set(kept(text[:end] + behind, JsonReason.JSON)), text[:end]
    denied = record(allowed=False)
    assert kept(denied[:-3] + denied, JsonReason.JSON) == []
    assert {0, 1, 2} <= set(kept(ALLOWED[:-3] + denied, JsonReason.JSON))
    assert {0, 1, 2} <= set(kept(line()[:-3] + text, JsonReason.JSON))


def test_each_record_of_an_array_and_each_value_of_a_repeated_key_keeps_its_doubt() -> None:
    text = record(principal="User:alice", operation="READ", resource_name="orders.eu", allowed=True)
    denied = record(allowed=False)
    assert kept(f"[{denied},{text}]", JsonReason.JSON) == [0, 1, 2]
    assert kept(f"[{denied}]", JsonReason.JSON) == []
    assert kept(json.dumps({"hits": [{"_source": json.loads(text)}]})) == [0, 1, 2]
    for depth in (900, 5_000, 100_000):
        assert {0, 1, 2} <= set(kept("[" * depth + text + "]" * depth, JsonReason.JSON)), depth
    assert {0, 1, 2} <= set(kept(text[:-1] + ',"allowed":false}', JsonReason.JSON))
    assert 7 in kept(text[:-1] + ',"principal":"User:bob"}', JsonReason.JSON)


def test_what_a_log_leaves_out_may_have_been_anything_unless_all_was_denied() -> None:
    for head, tail in (("", ""), (f"[{CLOCK}] WARN ", " (aclbroker.audit)")):
        said = json.dumps({"event": "left_out", "denied": 5, "allowed": 0}, separators=(",", ":"))
        assert kept(head + said + tail, JsonReason.LEFT_OUT) == []
        some = said.replace('"allowed":0', '"allowed":1')
        assert len(kept(head + some + tail, JsonReason.LEFT_OUT)) == len(ACLS) - 1


def test_a_row_of_another_table_keeps_what_it_may_have_needed() -> None:
    row = {"principal": "User:alice", "operation": "Read", "resource_type": "topic", "host": "?"}
    row |= {"resource_name": "orders.eu", "allowed": "ALLOWED"}
    assert kept(json.dumps(row)) == [0, 1, 2]
    assert kept(json.dumps(row | {"allowed": "DENIED"})) == []
    assert kept(json.dumps(row | {"resource_name": None})) == [0, 1, 2, 3, 8]


def test_long_names_that_begin_alike_are_one_doubt_that_keeps_what_each_keeps() -> None:
    names = ["orders.eu" + "x" * 30_000 + end for end in "ab"]
    for field, allows in (("Topic:LITERAL:orders.eu", [1, 2]), ("User:alice", [2])):
        lines = [ALLOWED.replace(field, field.replace("orders.eu", "") + each) for each in names]
        one, other = (doubts_of(each, KafkaReason.WORDS) for each in lines)
        assert one == other
        assert len(str(one)) < 1_000
        assert kept(lines[0]) == allows


def test_many_doubts_about_many_acls_are_judged_soon() -> None:
    """To compare each doubt with each ACL would take an hour, and run into the suite's timeout."""
    acls = [acl(f"User:{at}", f"t{at}", "WRITE") for at in range(10_000)]
    doubts = [Doubt(None, False, "READ", "TOPIC", f"t{at}") for at in range(50_000)]
    assert doubted(acls, doubts) == set()
    assert doubted(acls, [*doubts, Doubt(None, False, "WRITE", "TOPIC", "t7")]) == {7}


def test_doubts_that_need_too_much_work_keep_every_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doubted_module, "_MOST_LOOKUPS", 2)
    doubts = [Doubt("User:nobody", False, None, "TOPIC", f"t{at}") for at in range(3)]
    assert doubted(ACLS, doubts) == set(range(9))


def may_have_used(acl: AclBinding, doubt: Doubt) -> bool:
    def begins(text: str, begin: str | None, is_longer: bool) -> bool:
        return begin is None or text == begin or (is_longer and text.startswith(begin))

    def matches(name: str) -> bool:
        is_prefix = acl.pattern_type is PatternType.PREFIXED
        return name.startswith(acl.resource_name) if is_prefix else acl.resource_name == "*"

    granted_by = -1 if doubt.operation is None else GRANTED_BY[AclOperation[doubt.operation]]
    return (
        acl.permission is AclPermission.ALLOW
        and (begins(acl.principal, doubt.principal, doubt.is_longer) or acl.principal == "User:*")
        and bool(granted_by >> acl.operation & 1)
        and doubt.resource_type in (None, acl.resource_type.name)
        and (
            begins(acl.resource_name, doubt.resource_name, doubt.has_longer_name)
            or matches(doubt.resource_name or "")
        )
    )


def test_doubts_keep_the_acls_that_each_of_them_may_have_used() -> None:
    chance = random.Random(8)
    names, principals = ["a", "ab", "abc", "b", "*"], ["User:a", "User:ab", "User:b", "User:*"]
    for _ in range(3_000):
        acls = [
            acl(
                *(chance.choice(principals), chance.choice(names)),
                *(chance.choice(["READ", "ALL", "WRITE"]), chance.choice(["TOPIC", "GROUP"])),
                chance.random() < 0.4,
            )
            for _ in range(5)
        ]
        doubts = [
            Doubt(
                *(chance.choice([None, "User:a", "User:"]), chance.random() < 0.4),
                chance.choice([None, "READ", "DESCRIBE"]),
                chance.choice([None, "TOPIC", "GROUP"]),
                *(chance.choice([None, "a", "abcd", ""]), chance.random() < 0.4),
            )
            for _ in range(2)
        ]
        wanted = {at for at in range(5) for each in doubts if may_have_used(acls[at], each)}
        assert doubted(acls, doubts) == wanted, (acls, doubts)
