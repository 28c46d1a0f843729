"""The files of an input that is a directory: the same that Spark finds, one after the other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.ingest.listing import each_local_file, is_of_this_machine
from aclbroker.pipeline.ingest.sources import IngestError, local_files
from aclbroker.pipeline.local.session import LocalSession

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_files_below_a_directory_are_those_that_spark_finds(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = ("a.log", "b/c/d.log", "b/.hidden.log", "_temporary/e.log", ".f/g.log", "h [1]/i.log")
    for name in names:
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a line\n")
    (tmp_path / "elsewhere.log").write_text("a line\n")
    (tmp_path / "in" / "link.log").symlink_to(tmp_path / "elsewhere.log")
    directory = tmp_path / "in"
    given = [str(directory), f"{directory}/", str(directory / "a.log"), str(directory / "h [1]")]
    # In one process URLs are no inputs.
    urls = [] if isinstance(spark, LocalSession) else [directory.as_uri()]
    for each in (*given, *urls):
        assert sorted(each_local_file(spark, each)) == local_files(spark, each)
        assert is_of_this_machine(spark, each)
    found = {Path(each).name for each in each_local_file(spark, str(tmp_path / "in"))}
    assert found == {"a.log", "d.log", "i.log", "link.log"}


def test_a_link_to_nothing_is_passed_over(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_text("a line\n")
    (tmp_path / "in" / "b.log").symlink_to(tmp_path / "nowhere.log")
    assert [*each_local_file(spark, str(tmp_path / "in"))] == [str(tmp_path / "in" / "a.log")]


def test_a_link_around_in_a_circle_is_followed_once(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.log").write_text("a line\n")
    (tmp_path / "in" / "again").symlink_to(tmp_path / "in")
    assert [*each_local_file(spark, str(tmp_path / "in"))] == [str(tmp_path / "in" / "a.log")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_a_directory_that_cannot_be_listed_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0)
    with pytest.raises(IngestError, match="closed: Permission denied"):
        [*each_local_file(spark, str(tmp_path))]


def test_an_input_that_is_not_there_is_an_error(spark: SparkSession, tmp_path: Path) -> None:
    for look in (is_of_this_machine, lambda *where: [*each_local_file(*where)]):
        with pytest.raises(IngestError, match="nothing"):
            look(spark, str(tmp_path / "nothing"))
