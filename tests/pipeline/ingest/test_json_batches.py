"""Many lines of our own audit log say what each says alone, whatever stands around them."""

import random
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

pytest.importorskip("pyarrow")

from aclbroker.pipeline.ingest.json_line import JsonReason, Said, parse
from aclbroker.pipeline.ingest.json_log import JsonLog
from tests.pipeline.json_lines import NOT_RECORDS, RECORDS, mangled, record, varied
from tests.pipeline.parsing import Result, binary, collected
from tests.support.tables import examples


def read(lines: Sequence[bytes], *cuts: int) -> Result:
    """Read lines in batches that are cut at some places."""
    log = JsonLog()
    return collected(
        parsed
        for start, end in pairwise([0, *sorted(cuts), len(lines)])
        for parsed in log.parse(binary(lines[start:end]), "a.jsonl")
    )


def check(lines: Sequence[bytes], *cuts: int) -> None:
    """What is found is, in any order, what each line says by itself."""
    found = read(lines, *cuts)
    alone = Counter((text, parse(text)) for text in lines)
    rejected = Counter(
        {(text, said.value): n for (text, said), n in alone.items() if isinstance(said, JsonReason)}
    )
    assert Counter(found.reasons) == rejected
    events: Counter[object] = Counter()
    for (_, said), number in alone.items():
        if isinstance(said, Said):
            events[said] += number
    said_together = zip(found.events, found.roll_ups, strict=True)
    assert Counter((*event, *roll_up) for event, roll_up in said_together) == events


GOOD = [record(client_id=f"app {number}").encode() for number in range(40)]


def test_records_are_read_together() -> None:
    lines = [text.encode() for text in RECORDS * 3]
    check(lines)
    assert len(read(lines).events) == len(lines)


def test_changes_are_passed_over_among_records() -> None:
    changes = [record(event="change", action="CREATE_ACL").encode(), b'{"event":"change"}']
    lines = [*GOOD[:20], *changes, *GOOD[20:]]
    check(lines)
    assert (len(read(lines).events), read(lines).rejected) == (len(GOOD), [])


def test_each_line_that_is_no_record_is_found_among_records() -> None:
    for text in NOT_RECORDS:
        lines = [*GOOD[:20], text.encode(), *GOOD[20:]]
        check(lines)
        assert len(read(lines).events) == len(GOOD), text


def test_values_of_right_types() -> None:
    randomly = random.Random(20261121)
    check([varied(randomly) for _ in range(6_000)])


def test_mangled_lines(every_case: bool) -> None:
    randomly = random.Random(20261121)
    count = 3_000 if every_case else 750
    lines = [mangled(randomly) for _ in range(count)]
    check(lines, *range(0, count, 700))
    # So many together are mostly read on their own; one among empty objects is not.
    for text in lines[: count // 5]:
        check([text, *[b"{}"] * 33])


@settings(max_examples=examples(60), deadline=None)
@given(st.integers(), st.lists(st.integers(0, 120), max_size=4))
def test_lines_mean_the_same_however_they_come_in_batches(seed: int, cuts: list[int]) -> None:
    randomly = random.Random(seed)
    lines = [
        varied(randomly) if randomly.random() < 0.97 else mangled(randomly) for _ in range(120)
    ]
    check(lines, *cuts)
