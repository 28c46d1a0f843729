"""Tables that jobs wrote, read for the report and written as CSV."""

import csv
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.report import written
from aclbroker.pipeline.report.written import read_directory


def put(root: Path, name: str, columns: dict[str, list[object]]) -> None:
    place = root / name
    place.mkdir(parents=True)
    pq.write_table(pa.table(columns), place / f"part-{len(list(place.iterdir()))}.parquet")


def rows_of(file: Path) -> list[list[str]]:
    with file.open(newline="", encoding="utf-8") as text:
        return list(csv.reader(text))


def test_every_row_is_in_the_csv_as_text(tmp_path: Path):
    put(tmp_path, "job/table", {
        "principal": ["User:a", None],
        "day": [date(2026, 1, 2), None],
        "seen": [datetime(2026, 1, 2, 3, 4, 5, 6, UTC), None],
        "acls": [["ALLOW a", "DENY, b"], []],
        "allowed": [True, False],
        "events": [12_345, 0],
        "share": [0.5, None],
    })  # fmt: skip
    found = read_directory(tmp_path, "job/table")
    assert rows_of(tmp_path / "job/table.csv") == [
        ["principal", "day", "seen", "acls", "allowed", "events", "share"],
        ["User:a", "2026-01-02", "2026-01-02 03:04:05", "ALLOW a; DENY, b", "true", "12345", "0.5"],
        ["", "", "", "", "false", "0", ""],
    ]
    assert (found.total, found.csv) == (2, "table.csv")
    assert list(found.rows()) == [
        ("User:a", "2026-01-02", "2026-01-02 03:04:05", "ALLOW a; DENY, b", True, 12_345, 0.5),
        (None, None, None, "", False, 0, None),
    ]


def test_no_name_is_a_formula_or_several_lines_of_the_csv(tmp_path: Path):
    names: list[object] = ["=cmd|' /C calc'!A1", "+1", "-1", "@a", "\t=1", 'a",b\nc', "User:ok"]
    put(tmp_path, "t", {"name": names})
    read_directory(tmp_path, "t")
    assert (tmp_path / "t.csv").read_text().count("\n") == 8
    assert [row[0] for row in rows_of(tmp_path / "t.csv")[1:]] == [
        "'=cmd|' /C calc'!A1", "'+1", "'-1", "'@a", "\\t=1", 'a",b\\nc', "User:ok"
    ]  # fmt: skip


def test_the_rows_with_most_events_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(written, "MOST_ROWS", 3)
    put(tmp_path, "t", {"name": list("abcdef"), "events": [1, 6, None, 4, 5, 2]})
    found = read_directory(tmp_path, "t")
    assert list(found.rows()) == [("b", 6), ("e", 5), ("d", 4)]
    assert (found.total, len(rows_of(tmp_path / "t.csv"))) == (6, 7)


def test_a_table_with_more_rows_than_spreadsheets_open_has_no_csv(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    put(tmp_path, "t", {"name": ["a", "b", "c"]})
    read_directory(tmp_path, "t")
    assert (tmp_path / "t.csv").exists()
    monkeypatch.setattr(written, "MOST_CSV_ROWS", 2)
    found = read_directory(tmp_path, "t")
    assert (found.total, found.csv, found.count) == (3, None, 3)
    assert not (tmp_path / "t.csv").exists()


def test_columns_that_are_directories_are_texts(tmp_path: Path):
    put(tmp_path, "t/cluster=007/day=2026-01-02", {"events": [1]})
    put(tmp_path, "t/cluster=a%2Fb/day=2026-01-02", {"events": [2]})
    found = read_directory(tmp_path, "t")
    assert list(found.rows()) == [(2, "a/b", "2026-01-02"), (1, "007", "2026-01-02")]
    assert [column.name for column in found.columns] == ["events", "cluster", "day"]


def test_a_table_without_rows_is_empty(tmp_path: Path):
    (tmp_path / "t").mkdir()
    assert read_directory(tmp_path, "t").count == 0
    put(tmp_path, "u", {"events": pa.array([], pa.int64())})
    assert read_directory(tmp_path, "u").count == 0
    assert rows_of(tmp_path / "u.csv") == [["events"]]
