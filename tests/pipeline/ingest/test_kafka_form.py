"""Common lines of Kafka's log are read by their form, and no line that only resembles them."""

import random
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.ingest.kafka_form import KafkaForm
from aclbroker.pipeline.ingest.kafka_line import TAIL, WORDS, parse
from aclbroker.pipeline.ingest.kafka_log import KafkaLog, Piece
from aclbroker.pipeline.ingest.memory import Lines
from aclbroker.pipeline.ingest.record import Record
from tests.pipeline.kafka_lines import NOT_RECORDS, RECORDS, allowed_line, line, mangled
from tests.pipeline.parsing import binary, collected, in_text
from tests.support.tables import check_each, examples


def check(form: KafkaForm, lines: list[bytes], zone: tzinfo = UTC) -> list[int]:
    """Hold that lines which are read say what each says alone. Return which these are."""
    found, in_a_text = (form.read(kind(lines), zone) for kind in (binary, in_text))
    if found is None:
        assert in_a_text is None
        return []
    rows = [int(row) for row in found.rows]
    assert in_a_text is not None
    assert in_a_text.rows.tolist() == rows
    assert in_a_text.records.to_pylist() == found.records.to_pylist()
    assert found.records.num_rows == len(found.micros) == len(rows)
    for row, record, micros in zip(rows, found.records.to_pylist(), found.micros, strict=True):
        time = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=int(micros))
        assert (time, Record(**record)) == parse(lines[row], "eu", zone), lines[row]
    return rows


def has_form(text: bytes, zone: tzinfo = UTC) -> bool:
    """Tell whether a line is read by its form, alone and among others."""
    whole = [line().encode(), allowed_line(host="::1").encode()]
    is_read = check(KafkaForm("eu"), [text], zone) == [0]
    found = check(KafkaForm("eu"), [whole[0], text, whole[1], text], zone)
    assert found == ([0, 1, 2, 3] if is_read else [0, 2])
    return is_read


FORMED = [
    line(),
    line(principal="User:CN=app one,OU=Dev,O=Acme Inc"),
    line(principal="User:"),
    line(host="0:0:0:0:0:0:0:1"),
    line(host="fe80:0:0:0:0:0:0:1%eth0"),
    line(resource="Group:LITERAL:"),
    line(resource="Group:LITERAL:a:LITERAL:b\tc\x00\x1b\r\x85d"),
    line(resource="TransactionalId:LITERAL: no such, x (kafka.authorizer.logger)"),
    line(request=" for request = Fetch with resourceRefCount = 999999999"),
    line(rule=" based on rule SuperUser", verdict="is Allowed operation"),
    line(rule=" based on rule DefaultAllow", verdict="is Allowed operation"),
    line(head="[2026-11-21 07:48:42,328] TRACE"),
    allowed_line(),
    allowed_line("()"),
    allowed_line(permission="DENY"),
]


def test_common_lines_have_the_form() -> None:
    def check_line(text: str) -> None:
        assert has_form(text.encode())

    check_each(FORMED, check_line)


def test_times_of_a_zone_are_those_of_the_broker() -> None:
    for clock in ("2026-03-29 01:59:59,999", "2026-03-29 02:30:00,001", "2026-10-25 02:30:00,000"):
        for zone in ("Europe/Berlin", "America/St_Johns", "UTC"):
            assert has_form(line(head=f"[{clock}] INFO").encode(), ZoneInfo(zone))


@pytest.mark.parametrize("day", ["2026-04-05", "2026-10-04"])
def test_a_clock_is_put_forward_or_back_within_an_hour(day: str) -> None:
    zone = ZoneInfo("Australia/Lord_Howe")  # by half an hour
    times = [f"{day} {hour:02}:{minute:02}:59,999" for hour in range(4) for minute in range(60)]
    lines = [line(head=f"[{time}] INFO").encode() for time in times]
    assert check(KafkaForm("eu"), lines, zone) == list(range(len(lines)))


def test_other_lines_mean_what_they_mean_alone() -> None:
    def check_line(text: str) -> None:
        assert not (has_form(text.encode()) and text in NOT_RECORDS)

    check_each([*RECORDS, *NOT_RECORDS], check_line)


RESEMBLING = [
    # A fixed word in a name, whole or in pieces of the line.
    *(line(resource=f"Group:LITERAL:x{word}") for word in WORDS),
    *(line(principal=f"User:x{word}") for word in WORDS),
    *(line(principal=f"User:x{word} y") for word in WORDS),
    *(allowed_line(resource=f"Topic:LITERAL:{word} y") for word in WORDS),
    line(principal="User:x is Denied operation = READ from host = 1.1.1.1 on resource ="),
    line(request=" for request = Fetch with resourceRefCount = 1x"),
    line(request=" for request = Fetch with resourceRefCount = 1234567890"),
    line(request=" for request = Fetching with resourceRefCount = 1"),
    line(verdict="is Denied Operation"),
    line(verdict="is Xenied operation"),
    line(rule=" based on rule SuperUser"),
    line(rule=" based on rule MatchingAcl(acl=StandardAcl[resourceType=TOPIC)"),
    line(rule=" based on rule based on rule DefaultDeny"),
    line(tail=" (kafka.authorizer.logger) x"),
    line(head="[2026-13-21 07:48:42,328] INFO"),
    line(head="[2026-11-21 07:48:42,328]  INFO"),
    line(
        resource="Topic:LITERAL:hardcode",
        request=" for request = InitProducerId with resourceRefCount = 0",
    ),
    # The one fixed word without a cut in it, where an ACL is told.
    *(
        allowed_line().replace(
            "resourceName=", f"resourceName={'x' * before} based on rule{behind}", 1
        )
        for before in range(24)
        for behind in ("", " x", "," * 40)
    ),
    allowed_line().replace(", permissionType=ALLOW", " based on rule, permissionType=ALLOW"),
    allowed_line().replace(", permissionType=ALLOW", ""),
    allowed_line().replace("MatchingAcl(acl=", "MatchingAcl(acl ="),
    " = = = = = = ",
    "= = = = = =",
]


def test_what_only_resembles_the_form_is_left_to_others() -> None:
    def check_line(text: str) -> None:
        assert not has_form(text.encode())

    check_each(RESEMBLING, check_line)


def test_a_line_with_a_word_twice_is_found_beside_one_without_it() -> None:
    twice = allowed_line().replace("resourceName=", "resourceName= based on rule").encode()
    without = line(rule="").encode()
    for lines in ([twice, without], [without, twice], [line().encode(), twice, without]):
        assert check(KafkaForm("eu"), lines) == [
            number for number, each in enumerate(lines) if each not in (twice, without)
        ]


def test_mangled_lines(every_case: bool) -> None:
    randomly = random.Random(20261122)
    count = 2_000 if every_case else 200
    read = sum(has_form(mangled(randomly)) for _ in range(count))
    assert count // 40 < read < count * 3 // 4


@settings(max_examples=examples(30), deadline=None)
@given(st.integers(0, 2**32))
def test_mixtures_of_good_nearly_good_and_broken_lines(seed: int) -> None:
    """One reader sees batch after batch, in which no kind of line is always the common one."""
    randomly = random.Random(seed)
    some = [text.encode() for text in (*FORMED, *RECORDS, *NOT_RECORDS)]
    kinds = [
        lambda: randomly.choice(some),
        lambda: mangled(randomly),
        lambda: line(request=_request(randomly)).encode(),
        lambda: allowed_line(
            principal=f"User:{' '.join('abcdefghijk'[: randomly.randrange(9)])}"
        ).encode(),
        lambda: line(host=f"10.0.0.{randomly.randrange(300)}").encode()[: randomly.randrange(400)],
    ]
    form = KafkaForm("eu")
    zone = ZoneInfo(randomly.choice(["UTC", "Europe/Berlin", "Asia/Kathmandu"]))
    for _ in range(4):
        weights = [randomly.choice([0, 1, 9]) for _ in kinds]
        many = randomly.choices(kinds, [*weights[:-1], 1], k=100)
        check(form, [kind() for kind in many], zone)


def _request(randomly: random.Random) -> str:
    api = randomly.choice(["Fetch", "Metadata", "InitProducerId", "ListOffsets", "Fetched"])
    return f" for request = {api} with resourceRefCount = {randomly.randrange(30)}"


def test_each_line_keeps_its_time_among_lines_of_other_forms() -> None:
    times = [f"2026-11-21 07:48:{second:02},328" for second in range(40)]
    lines = [
        line(
            head=f"[{time}] INFO", resource=f"Topic:LITERAL:t{number}", tail=f"{TAIL}{end}"
        ).encode()
        for number, time in enumerate(times)
        for end in ["\r" if number % 3 else ""]
    ]
    log = KafkaLog("eu", UTC)
    found = collected(log.parse(binary(lines), Piece("a.log", 0)))
    assert found.events == [parse(text, "eu") for text in lines]


def test_lines_among_others_and_parts_of_larger_arrays() -> None:
    texts = [line(resource=f"Topic:LITERAL:t{number}").encode() for number in range(6)]
    texts[2] = b"a line of nothing"
    texts[3] = line(resource="Topic:LITERAL:x").encode()[:60]
    for kind in (pa.binary(), pa.large_binary()):
        found = KafkaForm("eu").read(Lines.of(pa.array(texts, kind)[1:5]), UTC)
        assert found is not None
        assert found.rows.tolist() == [0, 3]
        assert found.records["resource_name"].to_pylist() == ["t1", "t4"]


def test_bytes_that_are_not_utf8_are_left_to_others() -> None:
    assert not has_form(line().encode().replace(b"alice", b"\xff"))
