"""The summary on the terminal: complete, within its width, and safe to print."""

import re
from dataclasses import replace

import pytest

from aclbroker.pipeline.interface.result import Figure, JobResult, Table
from aclbroker.pipeline.report.content import LoggedCluster
from aclbroker.pipeline.report.terminal import broken, fitted, summary
from aclbroker.pipeline.report.words import number, short_number, shortened, width
from aclbroker.terminal import shown
from tests.pipeline.report.examples import REPORT, WHAT_IF


def test_it_says_all_that_matters():
    text = summary(REPORT, 100)
    for part in (
        "2026-01-01 to 2026-01-30 (30 days, UTC)",
        "1,000,000 events: 950,122 allowed, 49,878 denied",
        "quarantined  14 lines",
        "13 × cut off",  # noqa: RUF001
        "WHAT-IF: What the proposed ACLs would change",
        "5,811 events of 43 principals would be denied.",
        "! The ACLs were changed within these days.",
        "  5,811  events newly denied (of 950,122)",
        "Newly denied (8 of 812)",
        "Written:\n  what-if/flips  every question whose decision changes",
        "MATRIX: Who uses what",
        "Not answered\n  diff: needs --other",
    ):
        assert part in text


def test_tables_are_aligned_with_numbers_at_the_right():
    rows = [("User:alice", 5, "x"), ("User:bob", 12345, None)]
    result = JobResult("j", "t", "s", tables=[Table("T", ("principal", "events", "acl"), rows, 2)])
    text = summary(replace(REPORT, results=[result]), 80)
    assert (
        "T\n"
        "  principal   events  acl\n"
        "  ----------  ------  ---\n"
        "  User:alice       5  x\n"
        "  User:bob    12,345  –\n"  # noqa: RUF001
    ) in text


@pytest.mark.parametrize("columns", [40, 57, 80, 200])
def test_no_line_is_wider_than_asked(columns: int):
    long = Table("T" * 300, [f"column {i}" for i in range(9)], [("日本" * 50, *[7] * 8)], 1)
    result = replace(WHAT_IF, tables=[*WHAT_IF.tables, long])
    lines = summary(replace(REPORT, results=[result]), columns).splitlines()
    assert max(width(line) for line in lines) <= columns


def test_names_cannot_move_the_cursor_or_begin_a_line():
    text = summary(REPORT, 300)
    assert not re.search("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u202e]", text)
    assert not any(line.startswith("[2026") for line in text.splitlines())
    assert "x\\n[2026-01-01 00:00:00,000] DEBUG Principal = User:mallory\\x1b[2J" in text


def test_the_widest_columns_give_way_first_and_numbers_never():
    # Each has a gap of two before it.
    assert fitted([10, 10], [6, 6], 24) == [10, 10]
    assert fitted([10, 30, 3], [6, 6, 3], 36) == [10, 17, 3]
    assert fitted([30, 12], [6, 12], 24) == [8, 12]


def test_a_table_with_too_many_columns_is_written_as_paragraphs():
    assert fitted([30, 30, 30], [6, 6, 6], 23) == []
    names = [f"column {number}" for number in range(9)]
    wide = Table("T", names, [["x" * 30, *range(7), "a\nb"]] * 9, 30)
    text = summary(replace(REPORT, results=[JobResult("j", "t", "s", tables=[wide])]), 60)
    assert "T (5 of 30)\n- column 0: xxx" in text
    assert "column 7: 6; column 8: a\\nb\n- column 0" in text.replace("\n  ", " ")


def test_long_texts_take_several_lines_which_end_where_a_part_of_a_name_ends():
    assert broken("ALLOW READ on TOPIC", 12, 3) == ["ALLOW READ", "on TOPIC"]
    assert broken("DESCRIBE_CONFIGS", 10, 3) == ["DESCRIBE_", "CONFIGS"]
    assert broken("abcdefghij", 4, 3) == ["abcd", "efgh", "ij"]
    assert broken("日本語日本語", 4, 3) == ["日本", "語日", "本語"]
    assert broken("a" * 50 + "b" * 50, 10, 3) == ["a" * 10, "a" * 9 + "…", "b" * 10]
    assert broken("one two three four five six", 9, 2) == ["one two", "th…ve six"]


def test_what_is_the_same_in_all_rows_because_there_is_one_cluster_is_left_out():
    rows = [("c", "User:alice", 1), ("c", "User:bob", 2)]
    table = Table("T", ("Cluster", "principal", "events"), rows, 2)
    found = JobResult("j", "t", "s", tables=[table, Table("U", ("cluster", "x"), [("d", 1)], 1)])
    one = replace(REPORT, results=[found], clusters=[LoggedCluster("c", 1)])
    assert "T\n  principal   events\n" in summary(one)
    assert "U\n  cluster  x\n" in summary(one)
    two = replace(one, clusters=[LoggedCluster("c", 1), LoggedCluster("d", 1)])
    assert "T\n  Cluster  principal   events\n" in summary(two)


@pytest.mark.parametrize(
    ("text", "safe"),
    [
        ("User:alice", "User:alice"),
        ("a\nb\r\t\0", "a\\nb\\r\\t\\x00"),
        ("\\n", "\\\\n"),
        ("\u200b\u2066\ue000\ud800", "\\u200b\\u2066\\ue000\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("é日😀", "é日😀"),
    ],
)
def test_only_what_can_be_seen_is_shown_as_it_is(text: str, safe: str):
    assert shown(text) == safe


def test_shortened_texts_keep_beginning_and_end():
    assert shortened("abcdefghij", 10) == "abcdefghij"
    assert shortened("abcdefghij", 7) == "abcd…ij"
    assert shortened("abcdefghij", 2) == "a…"
    assert width(shortened("日本語日本語", 7)) <= 7


def test_numbers_are_written_for_people():
    written = [number(value) for value in (0, 1234567, 3.0, 0.0312, 1234.56, float("nan"))]
    assert written == ["0", "1,234,567", "3", "0.031", "1,234.6", "–"]  # noqa: RUF001
    short = [short_number(value) for value in (0, 999, 1500, 20_000, 3_000_000, 0.5)]
    assert short == ["0", "999", "1.5k", "20k", "3M", "0.500"]


def test_a_fleet_is_told_in_few_lines():
    clusters = [LoggedCluster(f"c{n}", 1_000 - n) for n in range(40)]
    result = replace(
        WHAT_IF,
        warnings=[f"The log of cluster c{n} is short." for n in range(40)],
        outputs={f"what-if/acls-c{n}.yaml": "ACLs" for n in range(40)},
    )
    text = summary(replace(REPORT, results=[result], clusters=clusters), 100)
    assert len(text.splitlines()) < 100
    assert "c4: 996 events\n             and 35 more clusters: 34,230 events\n" in text
    assert "! The log of cluster c4 is short.\n\n! and 35 more warnings, in the report\n" in text
    assert "what-if/acls-c7.yaml  ACLs\n  and 32 more, which the report lists\n" in text


def test_of_many_answers_each_is_told_in_short():
    tables = [Table(f"T{n}", ("principal",), [(f"User:u{m}",) for m in range(9)], 9)
              for n in range(4)]  # fmt: skip
    figures = [Figure("a figure", 5)]
    warnings = [f"Warning {n}: {'many words ' * 40}" for n in range(40)]
    empty = Table("Empty", ("x",), [], 0)
    result = JobResult("j", "t", "s", figures, tables=[empty, *tables], warnings=warnings)
    text = summary(replace(REPORT, results=[result] * 3))
    assert text.count("T0 (3 of 9; 3 more tables in the report)\n") == 3
    assert text.count("! and 38 more warnings, in the report\n") == 3
    assert len(text.splitlines()) < 60
    assert not any(each in text for each in ("T1", "Empty", "a figure", "Warning 2"))


def test_in_short_a_row_is_one_line_and_the_last_columns_give_way():
    columns = ("principal", "operation", *(f"more {at}" for at in range(9)))
    row = ("User:" + "a" * 200, "READ", *["b" * 20] * 9)
    result = JobResult("j", "t", "s", tables=[Table("T", columns, [row] * 9, 9)])
    text = summary(replace(REPORT, results=[result] * 3), 100)
    (lines,) = set(re.findall(r"T \(3 of 9\)\n((?:  .+\n)+)", text))
    head, _, *rows = lines.splitlines()
    assert head.split()[:2] == ["principal", "operation"]
    assert "more 0" in head
    assert "more 8" not in head
    assert len(rows) == 3
    assert all("READ" in each for each in rows)
