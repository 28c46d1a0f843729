"""The engines that tests of the pipeline run on: one Spark session for all, and this process."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from aclbroker.pipeline.command.engine import log_files
from aclbroker.pipeline.frames import LOCAL, SPARK, use
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.spark.session import open_session

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WriteLog = Callable[[Sequence[str | bytes]], str]


@pytest.fixture(scope="session")
def cache_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which commands leave the classes that they load."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module", autouse=True)
def cache(cache_home: Path) -> Iterator[None]:
    """Set the directory for tests of the pipeline alone: Go, too, has its cache there."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(cache_home))
        yield


ENGINES = (pytest.param("spark", marks=pytest.mark.thorough), "local")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test on both engines, unless the mark ``engines`` names them.

    The daily run leaves out Spark here, because test_engines compares all tables of both engines.
    """
    if "spark" in metafunc.fixturenames:
        mark = metafunc.definition.get_closest_marker("engines")
        engines = mark.args if mark else ENGINES
        metafunc.parametrize("spark", engines, indirect=True, scope="module")


@pytest.fixture(scope="module")
def spark(request: pytest.FixtureRequest) -> Iterator["SparkSession | LocalSession"]:
    """A session of the engine. Modules that use it call `toolchain.require_spark` first."""
    if request.param == "spark":
        yield request.getfixturevalue("spark_session")
        return
    use(LOCAL)
    yield LocalSession(log_files)
    use(SPARK)


@pytest.fixture(scope="session")
def spark_session(cache_home: Path) -> Iterator["SparkSession"]:
    """Spark's session: it takes seconds to start."""
    with pytest.MonkeyPatch.context() as environment:
        environment.setenv("XDG_CACHE_HOME", str(cache_home))
        session = open_session(
            "local[2]",
            # C1 alone starts faster, and no test runs long enough to miss C2.
            {
                "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
                "spark.sql.shuffle.partitions": "2",
            },
        )
    yield session
    session.stop()


@pytest.fixture
def write_log(tmp_path: Path) -> WriteLog:
    """Writes lines into a new file and returns its path."""

    def write(lines: Sequence[str | bytes]) -> str:
        path = tmp_path / f"{len(list(tmp_path.iterdir()))}.log"
        data = (line.encode() if isinstance(line, str) else line for line in lines)
        path.write_bytes(b"".join(line + b"\n" for line in data))
        return str(path)

    return write


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that share the session."""
    for item in items:
        if {"spark", "spark_session"} & {*getattr(item, "fixturenames", ())}:
            item.add_marker("spark")
