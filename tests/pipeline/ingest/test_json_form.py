"""Lines as the broker writes them are read by their form, and none that only resembles them."""

import json
import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import ResourceType
from aclbroker.acl.reasons import NearMiss
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.pipeline.ingest.json_form import JsonForm
from aclbroker.pipeline.ingest.json_line import Said, parse
from aclbroker.pipeline.ingest.json_log import JsonLog
from aclbroker.pipeline.ingest.memory import Lines
from aclbroker.pipeline.ingest.parsed import Parsed
from aclbroker.protocol.messages import ApiKey
from tests.acl.examples import ALL, READ, WRITE, allow, authorizer, deny
from tests.observability.auditing import Audited
from tests.pipeline.json_lines import (
    NOT_RECORDS,
    RECORD,
    RECORDS,
    at_position,
    mangled,
    record,
    varied,
)
from tests.pipeline.parsing import binary, collected, in_text
from tests.support.tables import check_each, examples


def said(found: Parsed | None) -> Counter[object]:
    """What was found, in the form of what `parse` returns."""
    if found is None:
        return Counter()
    result = collected([found])
    pairs = zip(result.events, result.roll_ups, strict=True)
    return Counter(Said(*event, *roll_up) for event, roll_up in pairs)


def check(form: JsonForm, lines: list[bytes]) -> list[bytes]:
    """Hold that lines are read as each of them alone, or are left over. Return those left over."""
    found, others = form.read(binary(lines))
    left = [lines[row] for row in others.tolist()]
    read = list((Counter(lines) - Counter(left)).elements())
    assert len(read) + len(left) == len(lines)
    assert said(found) == Counter(map(parse, read))
    if lines:
        found, others = form.read(in_text(lines))
        assert [lines[row] for row in others.tolist()] == left
        assert said(found) == Counter(map(parse, read))
    return left


def has_form(line: bytes) -> bool:
    """Tell whether a line is read by its form, alone and among others."""
    whole = [text.encode() for text in (record(client_id="b"), record(client_id=None))]
    alone = check(JsonForm(), [line])
    assert check(JsonForm(), [whole[0], line, whole[1], line]) == alone * 2
    return not alone


RULES = authorizer(
    allow(name="topic-1"),
    allow("User:bob", ALL, "topic-2"),
    deny("User:bob", READ, "topic-3"),
    allow("User:*", WRITE, "topic-3", host="10.0.0.1"),
    super_users=["User:admin"],
)


@pytest.mark.parametrize("seconds", [0, 86_400])
def test_lines_of_the_broker_have_the_form(tmp_path: Path, seconds: int) -> None:
    randomly = random.Random(20261123)
    nearest = (NearMiss(allow(), "of another host"), NearMiss(deny("User:x", host="::1"), "x"))
    audited = Audited(
        tmp_path,
        lambda *_: WhyDenied(nearest[: randomly.randrange(3)], None),
        rollup_seconds=seconds,
        max_bytes_per_second=0,
    )
    for _ in range(1_000):
        audited.now += randomly.choice([0.001, 1, 40])
        principal = randomly.choice(["User:alice", "User:bob", "User:admin", "User:x y,z=1"])
        others = ("Group:ops", "Role:{a}") if randomly.random() < 0.1 else ()
        session = Session((principal, *others), randomly.choice(["10.0.0.1", "::1"]), "SASL")
        client_id = randomly.choice(["a", "", "null", None, "[x]"])
        key = randomly.choice([ApiKey.METADATA, ApiKey.FETCH, ApiKey.INIT_PRODUCER_ID])
        context = RequestContext(session, key, 3, client_id, randomly.randrange(1000))
        name = f"topic-{randomly.randrange(6)}"
        operation = randomly.choice([READ, WRITE])
        (decision,) = RULES.authorize(session, operation, ResourceType.TOPIC, [name])
        asked = [(name, randomly.randrange(1, 4), decision)]
        loud = randomly.random() < 0.8
        acls = randomly.choice([None, 0, randomly.randrange(50), 2**40])
        audited.audit.record(
            context, operation, ResourceType.TOPIC, asked, log_if_denied=loud, acls=acls
        )
    audited.audit.close()
    lines = audited.path.read_bytes().splitlines()
    assert len(lines) > 100
    form = JsonForm()
    # Of many that tell different reasons at once some are left to others, as a test below holds.
    left = [check(form, lines[start : start + 200]) for start in range(0, len(lines), 200)]
    assert left == [[]] * len(left)


ROLLED_UP = record(count=7, last_timestamp="2026-11-21T23:59:59.999999Z")
FORMED = [
    record(),
    record(acl=None, allowed=False, rule="DefaultDeny"),
    record(client_id=None),
    record(client_id=""),
    record(resource_name="", client_id="-"),
    record(resource_name="x" * 500),
    record(resource_ref_count=2**31 - 1, correlation_id=2**31 - 1, node_id=-1),
    record(host="2001:DB8:0:0:0:0:0:1"),
    record(timestamp="2028-02-29T23:59:59.999999Z"),
    record(principals=["User:alice", "Group:a"], nearest=[]),
    record(principal="User:x,y", acl=None, allowed=False, rule="DefaultDeny"),
    record(acl=None, principals=["User:alice", "Group:a"], allowed=False, rule="DefaultDeny"),
    ROLLED_UP,
    ROLLED_UP[:-1] + ',"other_client_ids":true}',
    *(at_position(acls) for acls in (0, 7, 48213, 10**18 - 1)),
    at_position(5, acl=None, allowed=False, rule="DefaultDeny"),
    at_position(5, count=7, last_timestamp="2026-11-21T23:59:59.999999Z"),
    at_position(5, acl=None, count=7, last_timestamp="2026-11-21T23:59:59.999999Z"),
    at_position(5, first_acls=2, count=7, last_timestamp="2026-11-21T23:59:59.999999Z"),
    at_position(5, principals=["User:alice", "Group:a"], nearest=[]),
    record(acls_by_provider={"CONFLUENT": 3, "ZK_ACL": 7}, nearest=[]),
    record(acl=None, acls_by_provider={"CONFLUENT": 3, "ZK_ACL": 7}, rule="SuperUser"),
    json.dumps(RECORD | {"resource_name": "\u00fc"}, ensure_ascii=False, separators=(",", ":")),
]


def test_lines_of_the_form() -> None:
    def check_line(text: str) -> None:
        assert has_form(text.encode())

    check_each(FORMED, check_line)


def test_other_lines_are_left_to_others_or_mean_what_they_mean_alone() -> None:
    def check_line(text: str) -> None:
        assert not (has_form(text.encode()) and text in NOT_RECORDS)

    check_each([*RECORDS, *NOT_RECORDS], check_line)


RESEMBLING = [
    # A value that ends in a backslash goes on behind the quotation mark.
    record().replace("User:alice", 'User:x\\","host":"', 1),
    record(principal='User:x","host":"10.0.0.1'),
    record(resource_name='x","resource_ref_count":4,"api_name":"Fetch'),
    record(client_id='app","correlation_id":7,"allowed":true,"rule":"SuperUser'),
    # A quotation mark in a text that is not escaped.
    record().replace("User:alice", 'User:al"ice', 1),
    record().replace('"host":"', '"host":""', 1),
    record().replace('"resource_name":"', '"resource_name":"x"', 1),
    record().replace('"client_id":"', '"client_id":"x":"', 1),
    '"resource_name":"x":"'.join(record().rsplit('"resource_name":"', 1)),
    '"principal":"x" "'.join(record().rsplit('"principal":"', 1)),
    '"host":"x" "'.join(record().rsplit('"host":"', 1)),
    record().replace('"node_id":1', '"node_id":01'),
    record().replace('"correlation_id":7', '"correlation_id":07'),
    record().replace('"correlation_id":7', '"correlation_id":'),
    record().replace('"correlation_id":7', '"correlation_id":7 '),
    record().replace('"resource_ref_count":4', '"resource_ref_count":4.0'),
    record().replace('"principal"', '"principle"', 1),
    record().replace("}}", '},"principal":"User:bob"}'),
    record().replace("}}", '},"count":5}'),
    record().replace("}}", '},"last_timestamp":"2026-11-21T23:59:59.999999Z"}'),
    record().replace("}}", "}"),
    record().replace("}}", "}}}"),
    record() + "\r",
    record() + "\0",
    " " + record(),
    record().replace("alice", "al\x1fice", 1),
    record(timestamp="2026-02-29T07:48:42.328104Z"),
    record(timestamp="2026-W47-6T07:48:42.328104Z"),
    record(timestamp="2026-11-21T24:00:00.000000Z"),
    record(timestamp="2026-11-21T07:60:42.328104Z"),
    record(timestamp="2026-11-21T07:48:60.328104Z"),
    record(timestamp="2026-11-21T07:48:42.32810:Z"),
    at_position(5).replace('"acls":5', '"acls":05'),
    at_position(5).replace('"acls":5', '"acls":-5'),
    at_position(5).replace('"acls":5', '"acls":5.0'),
    at_position(5).replace('"acls":5', '"acls":'),
    at_position(5).replace('"acls":5', '"acls":"5"'),
    at_position(5).replace('"acls":5', '"acls":5,"acls":5'),
    at_position(5).replace("}}", '},"acls":6}'),
    at_position(10**18),
    at_position(10**19),
    record().replace('"acl":{', '"acls":{'),
    record(acl=None, rule="SuperUser").replace('"acl":null', '"acls":5'),
    record(acl=None, allowed=False, rule="ReservedTopic"),
    ROLLED_UP.replace("23:59:59", "23:59:60"),
    ROLLED_UP.replace("-21T23", "-22T23"),
    ROLLED_UP.replace('"count":7', '"count":0'),
    ROLLED_UP.replace('"count":7', '"count":7,"count":8'),
    ROLLED_UP[:-1],
    ROLLED_UP + "}",
]


def test_what_only_resembles_the_form_is_left_to_others() -> None:
    def check_line(line: str) -> None:
        assert not has_form(line.encode())

    check_each(RESEMBLING, check_line)


CUT_ELSEWHERE = [
    # A comma before a quotation mark, where lines are cut, within a text or at its end.
    record(client_id="a,"),
    record(resource_name=","),
    record(principal="User:,", client_id=","),
    record().replace('"node_id":1,', '"node_id":1 ,'),
    # As many cuts as the form has, or as a roll-up, and other keys than it has.
    record().replace('"node_id":1', '"node":1'),
    record().replace('"pattern_type":"PREFIXED"', '"pattern":"PREFIXED"', 1),
    record(acl=None, a="", b=""),
    record(acl=None, count=3, b=""),
    # Bytes of one character on both sides of where a text would begin.
    record().replace('"principal":"User', '"principa":\u00fc"User', 1),
    record().replace('"host":"10', '"host":\u00fc"10', 1),
    record().replace('"resource_name":"', '"resource_nam":\u20ac"', 1),
    record().replace('"client_id":"', '"client_i":\U0001f600"', 1),
    record().replace('"User:alice"', '"User:alice\u00fc', 1),
]


def test_lines_that_are_cut_elsewhere_say_what_they_say_alone() -> None:
    def check_line(line: str) -> None:
        has_form(line.encode())
        found = collected(JsonLog().parse(binary([line.encode()] * 40), "a"))
        is_said = isinstance(parse(line.encode()), Said)
        assert (len(found.events), len(found.rejected)) == ((40, 0) if is_said else (0, 40))

    check_each(CUT_ELSEWHERE, check_line)


def test_a_line_that_ends_where_a_cut_could_go_on_in_the_next() -> None:
    lines = [record().encode(), record().encode() + b",", b'"' + record().encode(), b',"']
    assert check(JsonForm(), [*lines, record().encode()]) == lines[1:]
    assert check(JsonForm(), lines[1:]) == lines[1:]


def test_a_record_that_was_cut_in_two_is_no_line_of_the_form(every_case: bool) -> None:
    line = record().encode()
    places = range(len(line) + 1)
    for at in places if every_case else (*places[::40], *places[-3:]):
        assert check(JsonForm(), [line[:at], line[at:], line]) == [
            part for part in (line[:at], line[at:]) if part != line
        ]


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_pieces_of_lines_put_together_otherwise(data: st.DataObject) -> None:
    """Whatever is cut at quotation marks, left out, doubled or exchanged."""
    texts = [data.draw(st.sampled_from(FORMED)).split('"') for _ in range(2)]
    line = texts[0]
    for _ in range(data.draw(st.integers(0, 3))):
        at, end = sorted(data.draw(st.integers(0, len(line))) for _ in range(2))
        part = data.draw(st.sampled_from(["", "\\", "\0", "7", "}", "\u00fc", ":", ",", "other"]))
        other = texts[1][at:end] if part == "other" else [part] * data.draw(st.integers(0, 2))
        line = [*line[:at], *other, *line[end:]]
    has_form('"'.join(line).encode())


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32))
def test_mixtures_of_good_nearly_good_and_broken_lines(seed: int) -> None:
    """One reader sees batch after batch, in which no kind of line is always the common one."""
    randomly = random.Random(seed)
    good = [text.encode() for text in (*FORMED, *RECORDS)]
    kinds = [
        lambda: randomly.choice(good),
        lambda: varied(randomly),
        lambda: mangled(randomly),
        lambda: record(api_version=randomly.randrange(99), client_id=None).encode(),
        lambda: record(cluster_id=f"c{randomly.randrange(99)}" * randomly.randrange(9)).encode(),
        lambda: randomly.choice(NOT_RECORDS).encode(),
    ]
    form = JsonForm()
    for _ in range(4):
        weights = [randomly.choice([0, 1, 9]) for _ in kinds]
        many = randomly.choices(kinds, [*weights[:-1], 1], k=150)
        check(form, [kind() for kind in many])


def test_parts_of_few_different_texts_that_are_many_after_all() -> None:
    form = JsonForm()
    for start in range(0, 3_000, 1_000):
        lines = [record(cluster_id=f"c{start + n}").encode() for n in range(1_000)]
        assert check(form, lines) == []
    assert check(form, [record().encode()]) == []


def test_reasons_that_are_told_are_read_once_if_they_are_few_and_as_json_if_they_are_many() -> None:
    few = [record(nearest=[{"why": str(number % 9)}]).encode() for number in range(400)]
    many = [record(nearest=[{"why": str(number)}]).encode() for number in range(400)]
    assert check(JsonForm(), few) == []
    assert check(JsonForm(), [*many, record().encode()]) == many
    lines = [*few, *many, record().encode()]
    assert len(collected(JsonLog().parse(binary(lines), "a")).events) == len(lines)


NAMED = RECORD["acl"] | {"resource_name": "<name>", "principal": "User:<bob>", "host": "<any>"}
MORE = record(acl=NAMED, principals=["User:alice", "Group:<a>"], nearest=["<b>"])


PLACES = [
    *((record(), place) for place in ("abc", "alice", "127.0.0.1", "orders", "Produce", "app")),
    *((record(acl=NAMED), place) for place in ("<name>", "<bob>", "<any>")),
    *((MORE, place) for place in ("alice", "<name>", "<any>", "<a>", "<b>")),
    (ROLLED_UP, "orders"),
]


@pytest.mark.parametrize("text", [b"\xff", b"\xed\xa0\x80", b"\x1f", b"\\t", b"\\ud800"])
def test_lines_are_left_to_others_if_a_text_has_escapes_or_is_not_utf8(text: bytes) -> None:
    def check_place(case: tuple[str, str]) -> None:
        line, place = case
        before, found, behind = line.encode().partition(place.encode())
        changed = before + found + text + behind
        assert has_form(line.encode())
        assert found
        assert not has_form(changed)
        assert check(JsonForm(), [changed, record().encode()]) == [changed]

    check_each(PLACES, check_place)


def test_lines_that_are_parts_of_larger_arrays() -> None:
    lines = [record(client_id=str(number)).encode() for number in range(9)]
    for kind in (pa.binary(), pa.large_binary()):
        found, others = JsonForm().read(Lines.of(pa.array(lines, kind)[3:7]))
        assert found is not None
        assert len(others) == 0
        assert found.records["client_id"].to_pylist() == list("3456")
    assert JsonForm().read(binary([]))[0] is None
