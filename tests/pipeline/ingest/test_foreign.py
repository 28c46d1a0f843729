"""Tables that somebody else wrote, with their columns named."""

import json
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.ingest.columns import OPTIONAL, REQUIRED, columns
from aclbroker.pipeline.ingest.foreign import ForeignReason, parsed
from aclbroker.pipeline.ingest.foreign_files import rows_in_file, rows_of
from aclbroker.pipeline.ingest.parsed import Parsed
from tests.support.tables import check_each

BERLIN = ZoneInfo("Europe/Berlin")
TIME = datetime(2026, 11, 21, 7, 48, 42, 328000, tzinfo=UTC)

GOOD: dict[str, Any] = {
    "timestamp": TIME,
    "principal": "User:alice",
    "operation": "READ",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "allowed": True,
    "host": "10.0.0.1",
    "cluster": "eu",
    "listener": "SASL_SSL",
    "api": "Fetch",
    "client_id": "c",
    "broker": "b1",
    "count": 3,
}
SAME = columns(",".join(f"{what}={what}" for what in REQUIRED))
ALL = columns(",".join(f"{what}={what}" for what in REQUIRED + OPTIONAL))


def said(*rows: dict[str, Any], **types: pa.DataType) -> Parsed:
    """What rows say, each of which is `GOOD` but for what is given."""
    full = [GOOD | row for row in rows]
    found = {key: pa.array([row[key] for row in full], types.get(key)) for key in GOOD}
    return parsed(found, "file:/export.parquet", "kafka", BERLIN)


def reasons(found: Parsed) -> list[str]:
    return [each.reason for each in found.rejected]


def test_a_row_is_the_event_that_its_columns_say() -> None:
    found = said({})
    assert found.records.to_pylist() == [
        {key: GOOD[key] for key in GOOD if key not in ("timestamp", "count")}
        | {
            "other_principals": None,
            "rule": None,
            "quiet": False,
            "reference_count": 3,
            "source": "columns",
            "acls": None,
            "first_acls": None,
        }
    ]
    assert found.timestamp.to_pylist() == [TIME]
    assert found.rolled_up is not None
    assert found.rolled_up.count.to_pylist() == [3]
    assert found.rejected == []


HOSTS = [
    ("/10.0.0.1", "10.0.0.1"),
    ("broker-1.example.com/10.0.0.1", "10.0.0.1"),
    ("10.0.0.1:53123", "10.0.0.1"),
    ("name/10.0.0.1:53123", "10.0.0.1"),
    (" 10.0.0.1 ", "10.0.0.1"),
    ("/0:0:0:0:0:0:0:1", "::1"),
    ("0:0:0:0:0:0:0:1:53123", "::1"),
    ("/[0:0:0:0:0:0:0:1]:53123", "::1"),
    ("[::1]", "::1"),
    ("::ffff:10.0.0.1", "10.0.0.1"),
    ("/[fe80:0:0:0:0:0:0:1%eth0]:53123", "fe80::1%eth0"),
    ("fe80:0:0:0:0:0:0:1%2", "fe80::1%2"),
]


def test_a_host_is_read_as_java_prints_it() -> None:
    def check(case: tuple[str, str]) -> None:
        printed, host = case
        assert said({"host": printed}).records["host"].to_pylist() == [host]

    check_each(HOSTS, check)


def test_what_has_no_column_has_a_default() -> None:
    found = parsed({what: pa.array([GOOD[what]]) for what in REQUIRED}, "f", "kafka", BERLIN)
    (record,) = found.records.to_pylist()
    assert (record["cluster"], record["host"], record["reference_count"]) == ("kafka", "unknown", 1)
    assert (record["listener"], record["api"], record["client_id"]) == (None, None, None)
    assert found.rolled_up is None


TIMES = [
    (TIME, pa.timestamp("us", "UTC")),
    (TIME, pa.timestamp("ns", "UTC")),
    (TIME, pa.timestamp("ms", "America/New_York")),
    (datetime(2026, 11, 21, 8, 48, 42, 328000), pa.timestamp("ms")),
    (int(TIME.timestamp() * 1000), pa.int64()),
    (int(TIME.timestamp() * 1000), pa.uint64()),
    ("2026-11-21T07:48:42.328Z", pa.string()),
    ("2026-11-21T07:48:42.328000000Z", pa.large_string()),
    ("2026-11-21 02:48:42.328-05:00", pa.string()),
    ("2026-11-21 08:48:42,328", pa.string()),
    (b"20261121T074842.328Z", pa.binary()),
]


def test_a_time_is_a_timestamp_milliseconds_or_a_text() -> None:
    """Without a zone it is of Berlin here."""

    def check(case: tuple[Any, pa.DataType]) -> None:
        value, type_ = case
        assert said({"timestamp": value}, timestamp=type_).timestamp.to_pylist() == [TIME]

    check_each(TIMES, check)


NO_TIMES = [
    (None, pa.timestamp("us", "UTC")),
    (datetime(1999, 12, 31, 23, 59, 59, tzinfo=UTC), pa.timestamp("us", "UTC")),
    (datetime(2100, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC")),
    (int(TIME.timestamp()), pa.int64()),
    (int(TIME.timestamp() * 1_000_000), pa.int64()),
    (2**64 - 1, pa.uint64()),
    (-1, pa.int32()),
    ("2026-11-21", pa.string()),
    ("yesterday", pa.string()),
    ("0001-01-01T00:00:00", pa.string()),
    ("", pa.string()),
]


def test_what_is_no_time_of_ours_is_quarantined() -> None:
    def check(case: tuple[Any, pa.DataType]) -> None:
        value, type_ = case
        found = said({"timestamp": value}, timestamp=type_)
        assert reasons(found) == [ForeignReason.TIMESTAMP]
        assert found.rejected[0].day is None

    check_each(NO_TIMES, check)


@pytest.mark.parametrize(
    ("value", "allowed"),
    [(True, True), (False, False), ("ALLOWED", True), ("Denied", False), (" allow", True),
     ("deny", False), ("true", True), ("FALSE", False)],
)  # fmt: skip
def test_a_decision_is_a_boolean_or_a_text(value: Any, allowed: bool) -> None:
    assert said({"allowed": value}).records["allowed"].to_pylist() == [allowed]


@pytest.mark.parametrize("operation", ["DESCRIBE_CONFIGS", "DescribeConfigs", "describe configs"])
def test_operations_and_types_are_known_in_each_of_kafkas_ways(operation: str) -> None:
    row = {"operation": operation, "resource_type": "TransactionalId"}
    (record,) = said(row).records.to_pylist()
    assert (record["operation"], record["resource_type"]) == (
        "DESCRIBE_CONFIGS",
        "TRANSACTIONAL_ID",
    )


UNFIT: list[tuple[dict[str, Any], ForeignReason]] = [
    ({"principal": "alice"}, ForeignReason.PRINCIPAL),
    ({"principal": None}, ForeignReason.PRINCIPAL),
    ({"principal": b"User:\xff"}, ForeignReason.PRINCIPAL),
    ({"operation": "ALL"}, ForeignReason.OPERATION),
    ({"operation": None}, ForeignReason.OPERATION),
    ({"resource_type": "ANY"}, ForeignReason.RESOURCE_TYPE),
    ({"resource_name": b"\xff"}, ForeignReason.RESOURCE_NAME),
    ({"allowed": None}, ForeignReason.ALLOWED),
    ({"allowed": "maybe"}, ForeignReason.ALLOWED),
    ({"host": ""}, ForeignReason.HOST),
    ({"host": "broker-1.example.com"}, ForeignReason.HOST),
    ({"host": "broker-1/<unresolved>:9092"}, ForeignReason.HOST),
    ({"host": "10.0.0.0/8"}, ForeignReason.HOST),
    ({"host": "10.0.0.256"}, ForeignReason.HOST),
    ({"host": "::1::2"}, ForeignReason.HOST),
    ({"principal": "OddPrincipal(User:x, y: 1)"}, ForeignReason.PRINCIPAL),
    ({"host": None}, ForeignReason.HOST),
    ({"cluster": None}, ForeignReason.CLUSTER),
    ({"count": 0}, ForeignReason.COUNT),
    ({"count": 2**31}, ForeignReason.COUNT),
    ({"count": None}, ForeignReason.COUNT),
]


def test_a_row_that_does_not_fit_is_quarantined_and_no_other() -> None:
    def check(case: tuple[dict[str, Any], ForeignReason]) -> None:
        row, reason = case
        (key,) = row
        values = [row[key], b"x" if isinstance(row[key], bytes) else None]
        good: dict[str, Any] = {} if values[1] is None else {key: str(GOOD[key]).encode()}
        if isinstance(row[key], str) and key == "allowed":
            good = {key: "ALLOWED"}
        found = said(good, row, good)
        assert reasons(found) == [reason]
        assert (found.records.num_rows, len(found.timestamp)) == (2, 2)
        (rejected,) = found.rejected
        assert rejected.day == date(2026, 11, 21)
        shown = json.loads(rejected.line)
        assert shown["resource_type"] == row.get("resource_type", "TOPIC")
        assert set(shown) == set(GOOD)

    check_each(UNFIT, check)


def test_of_several_faults_the_first_is_told() -> None:
    found = said({"principal": "alice", "operation": "x"}, {"operation": "x", "host": ""})
    assert reasons(found) == [ForeignReason.PRINCIPAL, ForeignReason.OPERATION]


def test_a_resource_need_not_have_a_name() -> None:
    assert said({"resource_name": None}).records["resource_name"].to_pylist() == [None]


def test_dictionary_encoded_texts_are_texts() -> None:
    column = pa.array(["User:a", "User:b", "User:a"]).dictionary_encode()
    found = {what: pa.array([GOOD[what]] * 3) for what in REQUIRED} | {"principal": column}
    read = parsed(found, "f", "kafka", BERLIN)
    assert read.records["principal"].to_pylist() == ["User:a", "User:b", "User:a"]


def test_columns_are_named_by_what_they_say() -> None:
    found = columns("timestamp=ts, principal=user.name,operation=op,resource_type=t,"
                    "resource_name=n,allowed=outcome,host=ip")  # fmt: skip
    assert (found.of("principal"), found.of("host"), found.of("cluster")) == (
        "user.name",
        "ip",
        None,
    )
    assert columns(str(found)) == found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "principal=user",
            "no column is named for timestamp, operation, resource_type, resource_n",
        ),
        ("who=user", "'who' is nothing that a column can say, which are timestamp, principal, "),
        ("principal", "'principal' is not WHAT=COLUMN"),
        ("principal=", "'principal=' is not WHAT=COLUMN"),
        ("principal=a,principal=b", "principal is named twice"),
    ],
)
def test_columns_that_are_wrongly_named_are_told(text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        columns(text)


def pieces(path: Path, *bounds: int) -> pa.RecordBatch:
    """Where pieces of a file are, as `sources.lines` says."""
    ends = [*bounds, path.stat().st_size]
    rows = [
        {"path": str(path), "source_file": path.as_uri(), "start": start, "end": end}
        for start, end in zip([0, *bounds], ends, strict=True)
    ]
    return pa.RecordBatch.from_pylist(rows)


def table(rows: int) -> pa.Table:
    columns = {what: [GOOD[what]] * rows for what in REQUIRED + OPTIONAL}
    columns["resource_name"] = [f"topic-{number}" for number in range(rows)]
    return pa.table(columns)


def test_a_large_file_is_read_in_pieces_each_row_once(tmp_path: Path) -> None:
    path = tmp_path / "export.parquet"
    pq.write_table(table(1000), path, row_group_size=10)
    size = path.stat().st_size
    for bounds in ((), (size // 2,), tuple(range(100, size, size // 7))):
        found = rows_of(iter([pieces(path, *bounds)]), ALL, "kafka", BERLIN)
        names = [name for _, each in found for name in each.records["resource_name"].to_pylist()]
        assert names == [f"topic-{number}" for number in range(1000)]


def test_fields_within_columns_and_directories_of_partitions_are_columns_too(
    tmp_path: Path,
) -> None:
    path = tmp_path / "cluster=eu%2F1" / "part.parquet"
    path.parent.mkdir()
    rows = table(2).drop_columns(["principal", "cluster", "host"]).to_pylist()
    rows = [row | {"user": {"name": "User:a"}, "source.ip": "10.0.0.9"} for row in rows]
    rows.append(rows[0] | {"user": None})
    pq.write_table(pa.Table.from_pylist(rows), path)
    named = columns(
        str(SAME).replace("=principal", "=user.name") + ",host=source.ip,cluster=cluster"
    )
    assert rows_in_file(str(path), named) == 3
    ((name, found),) = rows_of(iter([pieces(path)]), named, "kafka", BERLIN)
    assert name == path.as_uri()
    assert (
        found.records.select(["principal", "host", "cluster"]).to_pylist()
        == [{"principal": "User:a", "host": "10.0.0.9", "cluster": "eu/1"}] * 2
    )
    assert reasons(found) == [ForeignReason.PRINCIPAL]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ("=operation", r"no column 'other' for operation; the file has timestamp "
                       r"\(timestamp\[us, tz=UTC\]\), principal \(string\)"),
        ("=timestamp", "no column 'other' for timestamp"),
        ("=allowed", "no column 'other' for allowed"),
    ],
)  # fmt: skip
def test_a_missing_column_is_told_with_those_that_there_are(
    tmp_path: Path, change: str, message: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(1), path)
    named = columns(str(SAME).replace(change, "=other"))
    with pytest.raises(ValueError, match=message):
        rows_in_file(str(path), named)
    ((_, found),) = rows_of(iter([pieces(path)]), named, "kafka", BERLIN)
    assert "there is no column 'other'" in found.rejected[0].reason


@pytest.mark.parametrize(
    ("what", "value", "message"),
    [
        ("timestamp", 1.5, "'timestamp' for timestamp is double, and must be a timestamp, a whole"),
        ("allowed", 1, "'allowed' for allowed is int64, and must be true and false, or a text"),
        ("principal", 7, "'principal' for principal is int64, and must be a text"),
        ("count", "7", "'count' for count is string, and must be a whole number"),
    ],
)
def test_a_column_of_another_type_is_told(
    tmp_path: Path, what: str, value: Any, message: str
) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.Table.from_pylist([GOOD | {what: value}]), path)
    with pytest.raises(ValueError, match=message):
        rows_in_file(str(path), ALL)


def test_a_file_that_is_no_whole_parquet_is_quarantined_once(tmp_path: Path) -> None:
    whole = tmp_path / "a.parquet"
    pq.write_table(table(1000), whole, row_group_size=100)
    for cut in (3, 5000, whole.stat().st_size - 1):
        half = tmp_path / "half.parquet"
        half.write_bytes(whole.read_bytes()[:cut])
        with pytest.raises(ValueError, match="no whole Parquet file"):
            rows_in_file(str(half), ALL)
        found = list(rows_of(iter([pieces(half, cut // 2)]), ALL, "kafka", BERLIN))
        assert [reason.partition(":")[0] for _, each in found for reason in reasons(each)] == [
            "no whole Parquet file"
        ]
    half.write_bytes(b"")
    assert rows_in_file(str(half), ALL) == 0


def test_rows_that_are_damaged_are_an_error_in_whichever_piece_they_are(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(table(1000), path, row_group_size=100, compression="zstd")
    data = bytearray(path.read_bytes())
    group = pq.ParquetFile(path).metadata.row_group(7).column(4)
    begin = group.dictionary_page_offset
    data[begin + 40 : begin + group.total_compressed_size] = b"\xff" * (
        group.total_compressed_size - 40
    )
    path.write_bytes(data)
    with pytest.raises(OSError, match=r"a\.parquet: damaged Parquet file"):
        list(rows_of(iter([pieces(path, len(data) // 2)]), ALL, "kafka", BERLIN))
