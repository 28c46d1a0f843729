"""The broker of a line. The file stands for the broker if the line does not name it."""

from datetime import UTC, datetime

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from aclbroker.pipeline.ingest.hours import broker_of, hours_rows
from aclbroker.pipeline.ingest.parsed import RECORD_SCHEMA, Parsed, timestamps
from aclbroker.pipeline.usage.grouping import values
from tests.support.tables import check_each

LOG = "/var/log/kafka-1/kafka-authorizer.log"


ROTATED = [
    f"file://{LOG}",
    f"{LOG}.2026-03-01",
    f"{LOG}.2026-03-01-10",
    f"{LOG}.20261121T235959.328104Z",
    f"{LOG}.2026-03-01.gz",
    f"{LOG}.7",
    f"{LOG}.7.gz",
    f"{LOG}-20260301",
    f"{LOG}.2026-03-01-10.3.gz",
    "/var/log/kafka-1/kafka-authorizer-2026-03-01.log.zst",
    "/var/log/kafka-1/kafka-authorizer.20260301T10.log",
    "/var/log/kafka-1/2026/03/01/kafka-authorizer.log",
]


def test_a_rotated_file_is_of_the_broker_that_wrote_it() -> None:
    def check(rotated: str) -> None:
        assert broker_of(rotated) == LOG

    check_each(ROTATED, check)


OF_TWO = [
    *("/log/broker-{}.log", "/log/broker.{}.log", "/log/10.0.0.{}.log", "/log/10.0.0.{}/a.log"),
    *(
        "/log/10.0.0.{}",
        "/log/broker.{}.log.gz",
        "/log/10.0.0.{}.log.3",
        "/log/a.log.10.0.0.{}",
    ),
    *(
        "/log/a-2026-03-01-{}.log",
        "/log/a-2026-03-01-10.0.0.{}.log",
        "/log/2026/03/01/{}/a.log",
    ),
    *("/log/a-2026-03-01.{}.log", "/log/a.log-{}", "/log/a.log.2026-03-01-10.0.0.{}"),
]


def test_files_of_two_brokers_are_told_apart() -> None:
    def check(name: str) -> None:
        assert broker_of(name.format(11)) != broker_of(name.format(12))

    check_each(OF_TWO, check)


def test_the_files_of_an_object_store_have_their_bucket() -> None:
    assert broker_of("s3a://logs/b%201/a.log.2026-03-01.gz") == "s3a://logs/b 1/a.log"


def test_a_line_that_names_its_broker_is_of_that_one() -> None:
    columns = {
        "cluster": ["c"] * 3,
        "broker": ["b1", None, "b1"],
        "allowed": [True, False, True],
    }
    records = pa.table(
        {
            field.name: pa.array(columns.get(field.name, [None] * 3), field.type)
            for field in RECORD_SCHEMA
        }
    )
    at = [datetime(2026, 3, 1, hour, 59, tzinfo=UTC) for hour in (0, 1, 1)]
    found = hours_rows(Parsed(records, None, timestamps(at), []), LOG)
    assert values(found["broker"]) == ["b1", LOG, "b1"]
    hour = at[0].replace(minute=0).timestamp() / 3600
    assert found["hour"].to_pylist() == [hour, hour + 1, hour + 1]
    # The files of a table do not stand for brokers, so there is no broker by default.
    found = hours_rows(Parsed(records, None, timestamps(at), []), None)
    assert values(found["broker"]) == ["b1", None, "b1"]
