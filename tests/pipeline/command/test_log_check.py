"""Inputs that are no logs are refused at once, before Spark starts."""

import gzip
import json
import os
import tarfile
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.pipeline.command.log_check import check_inputs
from aclbroker.pipeline.command.options import AuditOptions
from aclbroker.pipeline.command.run import FAILED, run
from aclbroker.pipeline.errors import LogError
from aclbroker.pipeline.ingest.columns import Columns, columns
from tests.pipeline.json_lines import record
from tests.pipeline.kafka_lines import line

OURS, KAFKAS = f"{record()}\n".encode(), f"{line()}\n".encode()


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def check(
    *inputs: str,
    form: str | None = None,
    pattern: str | None = None,
    columns: Columns | None = None,
) -> None:
    options = AuditOptions("matrix", inputs, "out", form=form, pattern=pattern, columns=columns)
    check_inputs(options)


COLUMNS = columns(
    "allowed=outcome,timestamp=time,principal=user,operation=op,resource_type=t,resource_name=n"
)


def write(name: str, content: bytes) -> str:
    Path(name).parent.mkdir(parents=True, exist_ok=True)
    Path(name).write_bytes(content)
    return name


def test_logs_pass() -> None:
    write("a/ours.jsonl", OURS)
    write("a/b/kafka.log", KAFKAS)
    write("a/b/packed.log.gz", gzip.compress(KAFKAS))
    write("a/empty.log", b"")
    write("marked.jsonl", b"\xef\xbb\xbf" + OURS)
    check("marked.jsonl")
    os.symlink("..", "a/b/around")
    write("a/.hidden", b"x")
    write("a/_other/x", b"x")
    write("a/for-spark.lz4", b"x")
    write("changes.jsonl", b'{"event":"change"}\n')
    write(
        "cri.log", b"".join(b"2026-11-21T07:48:42.3Z stdout F " + each for each in (KAFKAS, KAFKAS))
    )
    write("ours-cri.log", b"2026-11-21T07:48:42.3Z stdout F " + OURS)
    check("cri.log", form="kafka")
    check("ours-cri.log", form="jsonl")
    write("bare.log", b"2026-11-21 07:48:42,328 INFO " + KAFKAS.partition(b"INFO ")[2])
    check(
        "a",
        "a/ours.jsonl",
        "a/*.jsonl",
        "a/{ours,b}*",
        "changes.jsonl",
        "s3a://x/y",
        "kafka://h:1/t",
    )
    check("a", form="kafka")
    check("a", form="jsonl")
    check("bare.log", pattern="%d %p %m (%c)%n")
    # As a shell names all files of a directory.
    check("a/empty.log", "a/ours.jsonl", write("server.log", b"[2026-11-21 07:48:42,328] INFO x\n"))
    # What stands farther behind is not known yet.
    check(write("long.log", b"x\n" * 50_000))
    Path("tables/_checkpoints").mkdir(parents=True)
    check("tables")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("missing", None, "--input missing: there is no such file or directory"),
        ("no*", None, r"--input no\*: no file has such a name"),
        ("empty", b"", "--input empty: nothing is in it"),
        ("blank", b"\n \n", "--input blank: nothing is in it"),
        ("text", b"hello\nworld\n", "--input text: this is no log: text begins with 'hello'; logs"),
        ("data", b"PAR1\x00" + b"x" * 100_000, "this is no log: data begins with 'PAR1"),
        ("other.json", b'{"a":1}\n', "this is no log: other.json begins with"),
        ("half.gz", gzip.compress(OURS)[:-9], "half.gz cannot be read: "),
        ("not.gz", OURS, "not.gz cannot be read: "),
    ],
)
def test_what_is_no_log_is_named(name: str, content: bytes | None, message: str) -> None:
    if content is not None:
        write(name, content)
    with pytest.raises(LogError, match=message):
        check(name)


def test_what_is_no_log_says_what_is() -> None:
    write("text", b"hello\n")
    with pytest.raises(LogError, match=r"JSON Lines of aclbroker.*\[%d\] %p %m.*ECS.*--pattern"):
        check("text")
    with pytest.raises(LogError, match="no log with --pattern '%d %p %m%n': a begins with"):
        check(write("a", KAFKAS), pattern="%d %p %m%n")


def test_directories_without_logs() -> None:
    Path("nothing/below").mkdir(parents=True)
    with pytest.raises(LogError, match="--input nothing: nothing is in it"):
        check("nothing")
    os.symlink("nowhere", "link")
    with pytest.raises(LogError, match="--input link: there is no such file"):
        check("link")
    write("linked/a.log", KAFKAS)
    os.symlink("nowhere", "linked/b.log")
    with pytest.raises(LogError, match=r"linked/b\.log cannot be read: No such file"):
        check("linked")


@pytest.mark.parametrize(
    ("entry", "connector"),
    [("_delta_log/0.json", "io.delta:delta-spark"), ("metadata/v1.metadata.json", "iceberg-spark")],
)
def test_tables_of_others_name_the_connector_that_they_need(entry: str, connector: str) -> None:
    write(f"table/{entry}", b"{}")
    write("table/part.parquet", b"PAR1")
    with pytest.raises(LogError, match=f"--input table: this is an? .*{connector}.*--columns"):
        check("table")


def test_tables_of_others_are_looked_into_when_their_columns_are_named() -> None:
    for name in ("iceberg/metadata/v1.metadata.json", "delta/_delta_log/0.json"):
        write(name, b"{}")
        check(name.split("/")[0], columns=COLUMNS)
    columns = {name: ["x"] for _, name in COLUMNS.names}
    Path("export").mkdir()
    pq.write_table(pa.table(columns), "export/a.parquet")
    write("export/_SUCCESS", b"")
    check("export", "export/*.parquet", "s3a://b/x", columns=COLUMNS)
    write("export/b.parquet", OURS)
    with pytest.raises(LogError, match=r"export/b\.parquet: no whole Parquet file"):
        check("export", columns=COLUMNS)
    pq.write_table(pa.table({"user": ["x"], "time": ["y"]}), "export/b.parquet")
    message = r"export/b\.parquet: there is no column 'outcome' .* has user \(string\), time \(str"
    with pytest.raises(LogError, match=message):
        check("export", columns=COLUMNS)
    pq.write_table(pa.table(columns).slice(0, 0), "none.parquet")
    with pytest.raises(LogError, match=r"--input none\.parquet: nothing is in it"):
        check("none.parquet", columns=COLUMNS)
    Path("tables/_checkpoints").mkdir(parents=True)
    with pytest.raises(
        LogError, match="--input tables: tables of the job ingest need no --columns"
    ):
        check("tables", columns=COLUMNS)


def test_a_form_that_none_of_the_files_has() -> None:
    write("ours", OURS)
    write("kafkas", KAFKAS)
    with pytest.raises(LogError, match=r"not of --form kafka, but our own audit log.*--form jsonl"):
        check("ours", form="kafka")
    with pytest.raises(LogError, match=r"not of --form jsonl, but Kafka's.*--form kafka"):
        check("kafkas", form="jsonl")


def test_it_is_told_before_spark_starts(capsys: pytest.CaptureFixture[str]) -> None:
    # With such a master Spark would fail.
    options = AuditOptions("matrix", ("missing.jsonl",), "out", master="nonsense")
    assert run(options) == FAILED
    told = "aclbroker audit matrix: --input missing.jsonl: there is no such file or directory\n"
    assert capsys.readouterr().err == told


def test_lines_of_our_log_that_are_no_events_make_it_a_log_all_the_same() -> None:
    check(write("left-out.jsonl", json.dumps({"event": "left_out"}).encode()))


@pytest.mark.parametrize("name", ["log.tar", "log.tar.gz"])
def test_an_archive_is_refused(name: str) -> None:
    write("kafka.log", KAFKAS)
    with tarfile.open(name, "w:gz" if name.endswith(".gz") else "w") as archive:
        archive.add("kafka.log")
    with pytest.raises(LogError, match=f"{name} is a tar archive: extract its files"):
        check(name)


def test_what_is_compressed_and_not_called_so_is_refused() -> None:
    write("kafka.log.1", gzip.compress(KAFKAS))
    with pytest.raises(LogError, match=r"kafka.log.1 is compressed: give it a name that ends in"):
        check("kafka.log.1")
    write("kafka.zip", b"PK\x03\x04...")
    with pytest.raises(LogError, match=r"kafka.zip is compressed: decompress it"):
        check("kafka.zip")
