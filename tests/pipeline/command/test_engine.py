"""Which engine decides, and why."""

import gzip
from pathlib import Path
from typing import Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.command import engine
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.engine import EngineError, reason_for_spark


def reason(job: str, *words: str | Path, output: str = "out") -> str | None:
    import argparse

    parser = argparse.ArgumentParser()
    add_jobs(parser)
    arguments = [job, *map(str, words), "--output", output]
    return reason_for_spark(audit_options(parser.parse_args(arguments), arguments))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    place = tmp_path / "log"
    place.mkdir()
    (place / "a.jsonl").write_bytes(b"x" * 600)
    (place / "b.jsonl").write_bytes(b"x" * 400)
    (place / ".hidden").write_bytes(b"x" * 400)
    return place


def test_a_log_up_to_the_bound_needs_no_spark(log: Path) -> None:
    assert reason("matrix", "--input", log) is None
    assert reason("matrix", "--input", log, "--local-bytes", "1k") is None
    assert reason("matrix", "--input", log, "--local-bytes", "999") == (
        "the log has about 1,000 bytes, more than --local-bytes 999 bytes"
    )
    assert reason("matrix", "--input", log, "--local-bytes", "1", "--engine", "local") is None
    (log / "c.jsonl.gz").write_bytes(gzip.compress(b"x" * 10_000))
    assert str(reason("matrix", "--input", log, "--local-bytes", "1100")).startswith("the log has")


def test_tables_count_ten_times_and_of_them_those_of_usage(tmp_path: Path) -> None:
    for name in ("usage_daily", "events"):
        (tmp_path / name / "cluster=a").mkdir(parents=True)
        (tmp_path / name / "cluster=a" / "part.parquet").write_bytes(b"x" * 100)
    (tmp_path / "_checkpoints").mkdir()
    assert reason("matrix", "--input", tmp_path, "--local-bytes", "1000") is None
    assert reason("matrix", "--input", tmp_path, "--local-bytes", "999") is not None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--input", "s3a://bucket/log"], "s3a://bucket/log is a URL"),
        (["--input", "LOG", "--follow"], "--follow goes on"),
        (["--input", "LOG/a.{jsonl,log}"], "is a pattern of Spark's"),
        (["--input", "LOG", "LOG/x.snappy"], "x.snappy is compressed as only Spark reads it"),
    ],
)
def test_what_this_process_cannot_do_is_for_spark_and_refused_without_it(
    log: Path, words: list[str], said: str
):
    if any("snappy" in each for each in words):
        (log / "x.snappy").write_bytes(b"x")
    given = [each.replace("LOG", str(log)) for each in words]
    assert said in str(reason("ingest", *given))
    with pytest.raises(EngineError, match="--engine local cannot do this: .*" + said[-20:]):
        reason("ingest", *given, "--engine", "local")


def test_an_output_at_a_url_is_for_spark(log: Path) -> None:
    assert "hdfs://there is a URL" in str(reason("matrix", "--input", log, output="hdfs://there"))


def test_who_speaks_of_spark_means_it(log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for words in (["--engine", "spark"], ["--master", "local[1]"], ["--spark", "spark.a=b"]):
        assert reason("matrix", "--input", log, *words) == ""
        if "spark" not in words:
            with pytest.raises(EngineError, match=f"does not go with {words[0]}"):
                reason("matrix", "--input", log, *words, "--engine", "local")
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")
    assert reason("matrix", "--input", log) == ""
    with pytest.raises(EngineError, match="does not go with spark-submit"):
        reason("matrix", "--input", log, "--engine", "local")


def test_without_the_packages_spark_decides_or_it_is_said_what_to_install(
    log: Path, monkeypatch: pytest.MonkeyPatch
):
    missing = {"duckdb"}

    def find(name: str) -> Any:
        return None if name in missing else object()

    monkeypatch.setattr(engine, "find_spec", find)
    assert reason("matrix", "--input", log) == (
        "without Spark this needs the Python package duckdb"
    )
    with pytest.raises(EngineError, match=r"package duckdb: .*setup-audit, or .*'\.\[audit\]'"):
        reason("matrix", "--input", log, "--engine", "local")
    missing.add("pyspark")
    with pytest.raises(EngineError, match=r"'\.\[audit\]'; for large logs, .*'\.\[spark\]'"):
        reason("matrix", "--input", log)


@pytest.mark.parametrize("size", ["", "1.5M", "-1", "1T", "٣"])
def test_a_size_is_a_number_of_bytes(log: Path, capsys: Any, size: str) -> None:
    with pytest.raises(SystemExit):
        reason("matrix", "--input", log, f"--local-bytes={size}")
    assert "is no number of bytes such as 500M, or 2G" in capsys.readouterr().err
