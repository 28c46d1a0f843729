"""The summary on the terminal: complete, within its width, and safe to print."""

import re
from dataclasses import replace

import pytest

from pipeline.report.terminal import fitted, summary
from pipeline.report.words import number, short_number, shortened, shown, width
from pipeline.result import Result, Table
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
    result = Result("j", "t", "s", tables=[Table("T", ("principal", "events", "acl"), rows, 2)])
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


def test_columns_without_room_are_left_out_from_the_last():
    assert fitted([10, 10], 20) == [10, 10]
    assert fitted([10, 30, 3], 30) == [10, 17, 3]
    # The gap of two columns before the third is free when it is gone.
    assert fitted([30, 30, 30], 13) == [7, 7, 0]
    assert fitted([], 13) == []


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
