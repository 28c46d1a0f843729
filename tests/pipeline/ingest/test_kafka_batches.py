"""Many lines of Kafka's log say what each says alone, but for those beside broken records."""

import random
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, tzinfo
from itertools import accumulate, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from aclbroker.pipeline.ingest import kafka_line as kafka
from aclbroker.pipeline.ingest.kafka_line import KafkaReason, parse
from aclbroker.pipeline.ingest.kafka_log import KafkaLog, Piece
from aclbroker.pipeline.ingest.parsed import Parsed, Rejected
from tests.pipeline.kafka_lines import (
    NOT_RECORDS,
    PROBES,
    RECORDS,
    allowed_line,
    line,
    mangled,
    zookeeper_line,
)
from tests.pipeline.parsing import Result, binary, collected
from tests.support.tables import examples

WHOLE = Piece("a.log", 0)
LATER_PIECE = Piece("a.log", 1_000)
LONGEST_NAME = 32_767
JOIN = " for request = JoinGroup with resourceRefCount = 1"
FETCH = " for request = Fetch with resourceRefCount = 1"


def read(lines: Sequence[bytes], *cuts: int, piece: Piece = WHOLE, zone: tzinfo = UTC) -> Result:
    """Read lines in batches that are cut at some places."""
    log = KafkaLog("eu", zone)

    def batches() -> Iterator[Parsed]:
        for start, end in pairwise([0, *sorted(cuts), len(lines)]):
            yield from log.parse(binary(lines[start:end]), piece)
        yield from log.finish()

    return collected(batches())


def expected(lines: Sequence[bytes], reasons: Sequence[KafkaReason | None], zone: tzinfo) -> Result:
    result = Result([], [], [])
    for text, reason in zip(lines, reasons, strict=True):
        found = parse(text, "eu", zone)
        if reason is None:
            assert not isinstance(found, KafkaReason)
            if found is not None:
                result.events.append(found)
        else:
            result.rejected.append(Rejected("", text, reason.value, None))
    return result


def alone(lines: Sequence[bytes], zone: tzinfo = UTC) -> list[KafkaReason | None]:
    """Return of each line by itself why it is quarantined."""
    found = (parse(text, "eu", zone) for text in lines)
    return [each if isinstance(each, KafkaReason) else None for each in found]


def by_the_rule(lines: Sequence[bytes], zone: tzinfo = UTC) -> list[KafkaReason | None]:
    """Return of each line of a file why it is quarantined, those beside broken records too."""
    reasons = alone(lines, zone)
    starts = [0, *accumulate(len(text) + 1 for text in lines)]
    result = list(reasons)
    for cut in (number for number, reason in enumerate(reasons) if reason is KafkaReason.CUT_OFF):
        reach = starts[cut] + lines[cut].index(b" on resource =") + 14 + LONGEST_NAME
        near = [number for number in range(cut + 1, len(lines)) if starts[number] <= reach]
        ends = [each for each in near if reasons[each] and kafka.ends_as_record(lines[each])]
        completed = [each for each in near if lines[each].rstrip(b"\r") == COMPLETED]
        last = ends[0] if ends else completed[-1] if completed else cut
        for between in range(cut + 1, last + 1):
            if reasons[between] in (None, KafkaReason.OTHER):
                result[between] = KafkaReason.BETWEEN
    return result


def check(lines: Sequence[bytes], *cuts: int, zone: tzinfo = UTC) -> None:
    found = read(lines, *cuts, zone=zone)
    assert found.events == expected(lines, by_the_rule(lines, zone), zone).events
    said = Counter(zip(lines, by_the_rule(lines, zone), strict=True))
    assert Counter(found.reasons) == Counter(
        {(text, reason.value): number for (text, reason), number in said.items() if reason}
    )


CLOCKS = [
    line(head=f"[{day} {time}] INFO").encode()
    for day in ("2026-03-08", "2026-03-29", "2026-10-25", "2026-11-01", "2026-13-01", "2026-02-29")
    for time in ("00:00:00,000", "01:59:59,999", "02:30:00,001", "03:00:60,000", "24:00:00,000")
]


@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns"])
def test_each_line_means_the_same_among_others(zone: str) -> None:
    randomly = random.Random(f"20261121 {zone}")
    honest = [text.encode() for text in (*RECORDS, *NOT_RECORDS, *PROBES)]
    lines = [*honest, *CLOCKS, *(mangled(randomly) for _ in range(6_000))]
    lines = [each for each in lines if parse(each, "eu") is not KafkaReason.CUT_OFF]
    randomly.shuffle(lines)
    found = read(lines, zone=ZoneInfo(zone))
    wanted = expected(lines, alone(lines, ZoneInfo(zone)), ZoneInfo(zone))
    assert found.events == wanted.events
    assert found.reasons == wanted.reasons


def test_lines_of_the_same_text_count_each() -> None:
    later = line(head="[2026-11-22 00:00:00,000] INFO").encode()
    found = read([GOOD, GOOD, later, GOOD, NOISE, NOISE])
    assert Counter(found.events) == Counter({parse(GOOD, "eu"): 3, parse(later, "eu"): 1})
    assert len(found.rejected) == 2


CUT = line(resource="Group:LITERAL:x", request="", rule="", tail="").encode()
END = f"y for request = Fetch with resourceRefCount = 1 based on rule X{kafka.TAIL}".encode()
GOOD = line().encode()
UNKNOWN = line(request=" for request = Fetching with resourceRefCount = 1").encode()
LONG = line(principal=f"User:{'f' * 20_000}").encode()
NOISE = b"a line of nothing"
COMPLETED = line(
    resource="Group:LITERAL:y", request=" for request = FindCoordinator with resourceRefCount = 1"
).encode()
"""A record that may be a client's text with the rest of `CUT` behind it."""
KINDS = [
    CUT,
    END,
    COMPLETED,
    GOOD,
    GOOD,
    GOOD,
    UNKNOWN,
    LONG,
    NOISE,
    b"",
    END + b"\r",
    GOOD + b"\r",
]


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_a_file_means_the_same_however_it_comes_in_batches(data: st.DataObject) -> None:
    lines = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=30))
    cuts = data.draw(st.lists(st.integers(0, len(lines)), max_size=4))
    check(lines, *cuts)


def between(lines: Sequence[bytes], *cuts: int, piece: Piece = WHOLE) -> int:
    """How many good lines are quarantined."""
    found = read(lines, *cuts, piece=piece)
    assert len(found.events) + len(found.rejected) == len(lines)
    return sum(reason == KafkaReason.BETWEEN.value for _, reason in found.reasons)


def test_lines_between_the_pieces_of_a_record_are_quarantined() -> None:
    assert between([GOOD, CUT, GOOD, NOISE, GOOD, END, GOOD, GOOD]) == 3


def test_two_records_that_are_broken_one_after_the_other() -> None:
    assert between([CUT, GOOD, END, GOOD, CUT, GOOD, GOOD, END]) == 3
    assert between([CUT, GOOD, CUT, GOOD, END, GOOD]) == 2


def test_a_record_whose_end_was_made_to_look_like_one_spoils_the_lines_up_to_it() -> None:
    lines = [GOOD, CUT, *[GOOD] * 10, COMPLETED, *[GOOD] * 1_000]
    assert between(lines) == between(lines, 2, 5, 100) == 11
    # Each of several records may have the rest.
    assert between([CUT, COMPLETED, GOOD, COMPLETED, GOOD]) == 3


def test_reading_goes_on_behind_a_line_that_is_cut_off_if_no_other_can_have_its_rest() -> None:
    others = [
        GOOD,
        allowed_line(resource="Group:LITERAL:y").encode(),
        line(resource="Group:LITERAL:y", operation="READ", request=JOIN).encode(),
        allowed_line(permission="DENY").encode(),
        zookeeper_line(verdict="is Denied Operation").encode(),
    ]
    assert between([CUT, *others, *others]) == 0


def test_a_client_with_rights_that_breaks_a_line_spoils_lines_up_to_the_first_that_may_end_it() -> (
    None
):
    fetched = allowed_line(operation="READ", request=FETCH, resource="Topic:LITERAL:orders.a")
    cut = fetched.partition(".a for")[0].encode()
    # The rule in these records names another principal.
    others = fetched.replace("User:alice", "User:bob").encode()
    assert between([cut, GOOD, others, others]) == 0
    assert between([cut, GOOD, fetched.encode(), fetched.encode()]) == 2
    # A rule with a LITERAL ACL repeats the whole name, and this name has no line break.
    literal = fetched.replace("PREFIXED", "LITERAL").encode()
    assert between([cut, GOOD, literal, literal]) == 0


def test_the_ends_of_lines_that_have_no_rule_suit_every_outcome() -> None:
    old = zookeeper_line(resource="Group:LITERAL:x", request=JOIN, operation="Read")
    cut = old.partition(" for request")[0].encode()
    assert between([cut, GOOD, old.encode(), old.encode()]) == 2
    denied = cut.replace(b"Allowed", b"Denied")
    assert between([denied, GOOD, old.encode(), GOOD, old.encode()]) == 4


def test_a_line_that_is_cut_off_before_its_resource_spoils_no_record() -> None:
    for cut in (b" on resource =", b" from host =", b" is Denied", b":alice is"):
        text = GOOD.partition(cut)[0]
        assert between([text, COMPLETED, GOOD]) == 0, text
        assert between([text, COMPLETED, END, GOOD]) == 1, text


def test_an_end_that_is_too_far_away_is_none() -> None:
    lines = [CUT, *[LONG] * 4, END, GOOD]
    assert between(lines) == between(lines, 3) == 0
    assert between([CUT, LONG, END, GOOD]) == 1


def test_a_forged_pair_now_and_then_spoils_nothing_else() -> None:
    pair = [CUT, COMPLETED]
    lines = [each for _ in range(20) for each in (*pair, *[GOOD] * 300)]
    found = read(lines, *range(7, len(lines), 901))
    assert len(found.events) == 20 * 300
    assert Counter(found.reasons) == Counter(
        {(CUT, KafkaReason.CUT_OFF.value): 20, (COMPLETED, KafkaReason.BETWEEN.value): 20}
    )


def test_the_last_line_of_a_file_may_be_cut_off() -> None:
    assert between([GOOD, GOOD, CUT]) == 0


def test_the_next_file_is_another() -> None:
    log = KafkaLog("eu", UTC)
    found = collected(
        [
            *log.parse(binary([GOOD, CUT]), Piece("a.log", 0)),
            *log.parse(binary([GOOD, END]), Piece("b.log", 0)),
            *log.finish(),
        ]
    )
    assert len(found.events) == 2
    assert [each.source_file for each in found.rejected] == ["a.log", "b.log"]


def test_a_piece_of_a_file_may_begin_within_a_broken_record() -> None:
    assert between([GOOD, GOOD, END, GOOD], piece=LATER_PIECE) == 2
    assert between([GOOD, GOOD, END, GOOD], 1, 2, piece=LATER_PIECE) == 2
    assert between([GOOD, CUT, GOOD, END, GOOD], 1, piece=LATER_PIECE) == 1
    assert between([LONG, LONG, LONG, LONG, END], 1, piece=LATER_PIECE) == 0
    assert between([GOOD, GOOD], piece=LATER_PIECE) == 0


def test_what_is_held_back_is_not_lost_when_the_next_piece_begins() -> None:
    log = KafkaLog("eu", UTC)
    found = collected(
        [
            *log.parse(binary([GOOD, NOISE]), LATER_PIECE),
            *log.parse(binary([GOOD, GOOD, END]), Piece("a.log", 2_000)),
            *log.finish(),
        ]
    )
    assert (len(found.events), len(found.rejected)) == (1, 4)


def test_many_broken_records_take_little_time() -> None:
    lines = [CUT] * 20_000
    assert between(lines) == 0


def test_a_quarantined_line_has_the_day_that_it_claims() -> None:
    found = read([UNKNOWN, line(head="[2026-02-30 07:48:42,328] INFO").encode(), NOISE])
    assert [str(day) for day in found.days.values()] == ["2026-11-21", "None", "None"]


def test_the_names_of_clients_are_read_as_they_were() -> None:
    name = re.sub("[\n]", "", "".join(map(chr, range(0x2100))))
    (event,) = read([line(resource=f"Group:LITERAL:{name}").encode()]).events
    assert event[1].resource_name == name


@pytest.mark.parametrize("cuts", [(), (1, 2, 3, 4, 5)])
def test_the_second_of_two_equal_hours_is_told_by_the_order_of_lines(cuts: tuple[int, ...]) -> None:
    clocks = ["02:10:00", "02:50:00", "02:49:59", "02:05:00", "02:55:00", "03:00:00"]
    lines = [line(head=f"[2026-10-25 {each},000] INFO").encode() for each in clocks]
    found = read(lines, *cuts, zone=ZoneInfo("Europe/Berlin"))
    times = sorted(f"{time:%H:%M:%S}" for time, _ in found.events)
    assert times == ["00:10:00", "00:49:59", "00:50:00", "01:05:00", "01:55:00", "02:00:00"]
    # Each of two files begins in that hour.
    log = KafkaLog("eu", ZoneInfo("Europe/Berlin"))
    for name in ("a.log", "b.log"):
        (event,) = collected(log.parse(binary(lines[1:2]), Piece(name, 0))).events
        assert f"{event[0]:%H:%M}" == "00:50"


def test_a_clock_that_is_put_back_by_half_an_hour_is_told_too() -> None:
    clocks = ["01:35:00", "01:55:00", "01:31:00", "02:00:00"]
    lines = [line(head=f"[2026-04-05 {each},000] INFO").encode() for each in clocks]
    found = read(lines, zone=ZoneInfo("Australia/Lord_Howe"))
    times = sorted(f"{time:%H:%M}" for time, _ in found.events)
    assert times == ["14:35", "14:55", "15:01", "15:30"]
