"""The archive for the workers of a cluster."""

import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

import pytest

from aclbroker.pipeline.spark.shipping import ARCHIVE, write_archive
from tests.support.spark_cluster import bare_python

WORKERS_IMPORT = tuple(f"aclbroker/pipeline/{name}" for name in ("ingest/", "jobs/", "replay"))


def test_the_archive_holds_the_pipeline_and_acl_alone(tmp_path: Path):
    write_archive(tmp_path / ARCHIVE)
    with ZipFile(tmp_path / ARCHIVE) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"aclbroker"}
    modules = {name.removeprefix("aclbroker/") for name in names}
    assert {"__init__.py", "pipeline/replay/replay.py", "pipeline/ingest/read.py"} <= modules
    assert {name.split("/")[0] for name in modules} == {
        "__init__.py",
        "terminal.py",
        "turns.py",
        "acl",
        "pipeline",
    }


def test_equal_programs_are_equal_archives(tmp_path: Path):
    write_archive(tmp_path / "a.zip")
    write_archive(tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()


def test_a_python_without_any_package_decides_from_the_archive(tmp_path: Path):
    write_archive(tmp_path / ARCHIVE)
    program = (
        f"import sys; sys.path.insert(0, {str(tmp_path / ARCHIVE)!r})\n"
        "from aclbroker import pipeline\n"
        "from aclbroker.pipeline.acls import ruleset\n"
        "assert pipeline.__file__.startswith(sys.path[0])\n"
        "ruleset.Ruleset().authorizer()\n"
    )
    # -I and -S: neither the directory nor what is installed is found.
    subprocess.run([sys.executable, "-I", "-S", "-c", program], check=True, cwd=tmp_path)


def test_what_runs_in_workers_is_imported_with_pyarrow_alone(tmp_path: Path):
    pytest.importorskip("pyspark")
    write_archive(tmp_path / ARCHIVE)
    # pyspark and py4j come with every Spark.
    python = bare_python(tmp_path / "venv", "pyspark", "py4j", "pyarrow", "numpy")
    with ZipFile(tmp_path / ARCHIVE) as archive:
        modules = [
            name.removesuffix(".py").replace("/", ".")
            for name in archive.namelist()
            if name.startswith(WORKERS_IMPORT) and not name.endswith("__init__.py")
        ]
    assert "aclbroker.pipeline.replay.replay" in modules
    program = f"import sys; sys.path.insert(0, {str(tmp_path / ARCHIVE)!r})\n"
    program += "".join(f"import {module}\n" for module in modules)
    subprocess.run([python, "-I", "-c", program], check=True)
