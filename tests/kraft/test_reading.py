"""The ACLs of a metadata log are those of its newest snapshot and of the records behind it."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path
from random import Random
from typing import Any

import pytest

from aclbroker.broker.kraft import KraftError, read_acls
from aclbroker.broker.kraft.records import (
    DECLARED,
    NEWEST_TYPE,
    AbortTransactionRecord,
    BeginTransactionRecord,
    EndTransactionRecord,
    RemoveAccessControlEntryRecord,
)
from tests.kraft.log_files import (
    GZIP,
    NO_OP,
    batch,
    created,
    framed,
    raw,
    write_log,
    write_snapshot,
)
from tests.protocol.test_specifications import compared
from tests.support.packages import kafka_jars
from tests.support.random_acls import random_acls

ACLS = random_acls(Random(7), 40, unprintable=True)
CREATED = [framed(created(number, acl)) for number, acl in enumerate(ACLS)]
NOTHING = raw(NO_OP, 0)


def removed(number: int) -> bytes:
    return framed(RemoveAccessControlEntryRecord(number.to_bytes(16, "big")))


def test_what_is_created_and_not_removed_is_there(tmp_path: Path) -> None:
    log = write_log(
        tmp_path,
        (0, [batch(0, [b"\0" * 6], control=(0, 2)), batch(1, CREATED[:10]), batch(11, [NOTHING])]),
        (12, [batch(12, [removed(3)]), batch(13, [*CREATED[10:], removed(20)])]),
    )
    found = read_acls(log)
    assert set(found.acls) == {*ACLS} - {ACLS[3], ACLS[20]}
    assert found.end_offset == 44
    assert found.notes == ()


def test_the_newest_snapshot_stands_for_all_before_it(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 5, CREATED[:1])
    write_snapshot(tmp_path, 20, CREATED[5:10])
    for name in ("00000000000000000030-0000000001.checkpoint.part", "bootstrap.checkpoint"):
        (tmp_path / name).write_bytes(b"not one that counts")
    # A batch holds records of both sides; and there is a segment that nobody has to read.
    write_log(
        tmp_path,
        (0, [b"damaged, but old"]),
        (
            10,
            [batch(10, [NOTHING] * 8), batch(18, [NOTHING, removed(99), removed(5), CREATED[11]])],
        ),
    )
    found = read_acls(tmp_path)
    assert set(found.acls) == {*ACLS[6:10], ACLS[11]}
    assert found.end_offset == 22


def test_a_snapshot_without_a_log_is_said_to_be_one(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 437, CREATED)
    found = read_acls(tmp_path)
    assert set(found.acls) == set(ACLS)
    assert found.end_offset == 437
    [note] = found.notes
    assert "no *.log file" in note


def test_a_log_older_than_the_snapshot_adds_nothing(tmp_path: Path) -> None:
    write_snapshot(tmp_path, 437, CREATED)
    write_log(tmp_path, (0, [batch(0, [NOTHING])]))
    found = read_acls(tmp_path)
    assert (set(found.acls), found.end_offset, found.notes) == (set(ACLS), 437, ())


def test_the_directory_of_the_topic_is_found_in_the_one_of_the_logs(tmp_path: Path) -> None:
    write_log(tmp_path / "__cluster_metadata-0", (0, [batch(0, CREATED)]))
    assert set(read_acls(tmp_path).acls) == set(ACLS)


def test_compressed_batches_are_read(tmp_path: Path) -> None:
    write_log(tmp_path, (0, [batch(0, CREATED, codec=GZIP)]))
    assert set(read_acls(tmp_path).acls) == set(ACLS)


def test_records_of_a_transaction_hold_when_it_has_ended(tmp_path: Path) -> None:
    begin = framed(BeginTransactionRecord("a name"))
    end, abort = framed(EndTransactionRecord()), framed(AbortTransactionRecord("why"))
    batches = [
        batch(0, [*CREATED[:2], begin, CREATED[2]]),
        batch(4, [removed(0)]),
        batch(5, [end, begin, CREATED[3], removed(1)]),
        batch(9, [abort, begin, CREATED[4], removed(2)]),
    ]
    write_log(tmp_path, (0, batches))
    found = read_acls(tmp_path)
    assert set(found.acls) == {ACLS[1], ACLS[2]}
    [note] = found.notes
    assert "2 changes of ACLs do not count" in note

    write_log(tmp_path, (0, [*batches, batch(13, [end])]))
    found = read_acls(tmp_path)
    assert (set(found.acls), found.notes) == ({ACLS[1], ACLS[4]}, ())


@pytest.mark.parametrize(
    ("values", "says"),
    [
        ([framed(EndTransactionRecord())], "record 0 ends a transaction, and none has begun"),
        ([framed(BeginTransactionRecord())] * 2, "record 1 begins a transaction, and one has"),
        ([CREATED[0], removed(8)], "record 1 removes an ACL that is not there"),
        ([raw(18, 1, b"new")], "AccessControlEntryRecord has no version 1; a newer Kafka"),
        ([raw(18, 0, b"short")], "record 0 cannot be read"),
        ([CREATED[0] + b"x"], "1 bytes are behind it"),
        ([raw(18, 0, frame_version=2)], "the version 2 of its frame is unknown; expected 1"),
        ([b"\x01\x92"], "it ends within its frame"),
    ],
)
def test_a_record_that_is_wrong_is_named(tmp_path: Path, values: list[bytes], says: str) -> None:
    write_log(tmp_path, (0, [batch(0, values)]))
    with pytest.raises(KraftError, match=re.escape(says)):
        read_acls(tmp_path)


def test_records_of_a_newer_kafka_are_counted(tmp_path: Path) -> None:
    write_log(tmp_path, (0, [batch(0, [*CREATED, raw(NEWEST_TYPE + 1, 0), raw(300, 7)])]))
    found = read_acls(tmp_path)
    assert set(found.acls) == set(ACLS)
    assert len(found.notes) == 2


def test_wherever_the_last_segment_is_cut_off_the_rest_is_read(tmp_path: Path) -> None:
    parts = [batch(number, [value]) for number, value in enumerate(CREATED[:4])]
    whole, last = b"".join(parts), len(b"".join(parts[:-1]))
    for length in range(len(whole) + 1):
        write_log(tmp_path, (0, [whole[:length]]))
        found = read_acls(tmp_path)
        ends = [len(b"".join(parts[:count])) for count in range(5)]
        assert found.acls == ACLS[: max(n for n, end in enumerate(ends) if end <= length)]
        assert bool(found.notes) is (length not in ends), length
    # So is one for which the disk has room already.
    write_log(tmp_path, (0, [whole[:last], bytes(5000)]))
    found = read_acls(tmp_path)
    assert found.acls == ACLS[:3]
    assert "ends within a batch at offset 3" in found.notes[0]


def test_wherever_a_byte_before_the_last_batch_is_flipped_it_is_damaged(tmp_path: Path) -> None:
    parts = [batch(number, [value]) for number, value in enumerate(CREATED[:3])]
    whole, first, last = b"".join(parts), len(parts[0]), len(parts[0]) + len(parts[1])
    # The epoch of the leader is under no checksum, and says nothing here.
    epochs = {*range(12, 16), *range(first + 12, first + 16)}
    for place in sorted(set(range(last)) - epochs):
        data = bytearray(whole)
        data[place] ^= 0x10
        write_log(tmp_path, (0, [bytes(data)]))
        with pytest.raises(KraftError, match="is damaged"):
            read_acls(tmp_path)


def test_what_is_cut_off_elsewhere_is_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, (0, [batch(0, CREATED[:4])[:-1]]), (4, [batch(4, CREATED[4:])]))
    with pytest.raises(KraftError, match=r"00\.log: it is cut off"):
        read_acls(tmp_path)
    path = write_snapshot(tmp_path, 4, CREATED[:4])
    whole = path.read_bytes()
    for length in range(len(whole)):
        path.write_bytes(whole[:length])
        with pytest.raises(KraftError, match="the snapshot is cut off"):
            read_acls(tmp_path)


def test_missing_records_are_an_error(tmp_path: Path) -> None:
    write_log(tmp_path, (4, [batch(4, CREATED)]))
    with pytest.raises(KraftError, match=r"the records 0 to 3 are missing"):
        read_acls(tmp_path)
    write_log(tmp_path, (0, [batch(0, [NOTHING] * 2)]))
    with pytest.raises(KraftError, match=r"the records 2 to 3 before it are missing"):
        read_acls(tmp_path)


def test_no_log_is_an_error_that_names_what_is_expected(tmp_path: Path) -> None:
    with pytest.raises(KraftError, match=r"no metadata log; expected the \*\.log and"):
        read_acls(tmp_path)
    with pytest.raises(KraftError, match="No such file"):
        read_acls(tmp_path / "none")
    relative = Path(str(tmp_path).lstrip("/"))
    with pytest.raises(KraftError, match=re.escape(f"four slashes: kraft:///{tmp_path}")):
        read_acls(relative)


@pytest.mark.parametrize("declared", DECLARED, ids=lambda each: each.__name__)
def test_declarations_are_those_of_kafka(declared: Any) -> None:
    [jar] = kafka_jars().glob("kafka-metadata-4.3.0.jar")
    with zipfile.ZipFile(jar) as opened:
        names = [each for each in opened.namelist() if each.startswith("common/metadata/")]
        texts = {each: opened.read(each).decode() for each in names if each.endswith(".json")}
    specifications = [
        json.loads(re.sub(r"^\s*//.*$", "", text, flags=re.MULTILINE)) for text in texts.values()
    ]
    assert max(each.get("apiKey", 0) for each in specifications) == NEWEST_TYPE
    [theirs] = [each for each in specifications if each["name"] == declared.__name__]
    assert theirs["apiKey"] == declared.KEY
    assert theirs["validVersions"] == "0"
    for name, of_kafka, ours in compared(theirs, declared, {0}):
        assert of_kafka == ours, name
