"""The use in tables that `ingest` wrote, read without Spark."""

import json
from datetime import date
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest import stored, tables
from aclbroker.pipeline.ingest.read import LogForm, Reading
from aclbroker.pipeline.usage.stored import TABLE, StoredUsage, Used
from tests.pipeline.json_lines import record


def test_it_is_what_ingest_counted_of_what_was_allowed(spark, tmp_path: Path):
    log = tmp_path / "log.jsonl"
    last = {"timestamp": "2026-11-22T23:59:59.999999Z"}
    lines = [
        record(cluster_id="a b/c"),
        record(cluster_id="a b/c", **last),
        record(cluster_id="a b/c", level="trace", principals=["User:alice", "Group:x"]),
        record(cluster_id="a b/c", allowed=False, rule="DefaultDeny", acl=None),
        record(cluster_id="other"),
    ]
    log.write_text("".join(f"{line}\n" for line in lines))
    place = str(tmp_path / "tables")
    tables.ingest(spark, [str(log)], Reading(LogForm.JSONL, "a b/c"), place)
    usage = StoredUsage(place, 30, "a b/c")
    assert (usage.first_day, usage.last_day) == (date(2026, 10, 24), date(2026, 11, 22))
    asked = ("SASL", "User:alice", None, "127.0.0.1", "WRITE", "TOPIC", "orders")
    both = (*asked[:2], json.dumps(["Group:x"]), *asked[3:])
    assert sorted(usage.allowed(), key=lambda used: used.events) == [
        Used(*both, 1, 0, date(2026, 11, 21)),
        Used(*asked, 2, 2, date(2026, 11, 22)),
    ]
    assert [each.events for each in StoredUsage(place, 1, "a b/c").allowed()] == [1]
    with pytest.raises(InputError, match="several clusters: there are a b/c, other"):
        StoredUsage(place, 30)


def test_the_table_has_the_name_that_ingest_gives_it():
    assert stored.USAGE == TABLE
