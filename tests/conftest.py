"""Fixtures that start servers: a real Kafka once for all tests, and our broker for each.

And what holds for all tests: how many examples Hypothesis draws (few and always the same, or many
with HYPOTHESIS_PROFILE=nightly), and in which process a test runs.
"""

# This must come first, because it measures the imports that follow.
from tests.support import measured  # isort: split

import gc
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import scheduling, slowest, tables
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import Kafka, running_kafka
from tests.support.process import LoggedProcess, spawned
from tests.support.signals import handle_ignored_signals

# This must come before a test starts a program, because a program inherits ignored signals.
handle_ignored_signals()

pytest.register_assert_rewrite(
    "tests.clients.story", "tests.gateway.principals", "tests.memory_cluster.java_programs"
)

StartBroker = Callable[..., Broker]

# A server's log can be long, and what went wrong stands near its end.
SHOWN_OF_A_LOG = 8_000

# No deadline: the machine may be busy. No database: nothing is written into the tree, and a
# nightly failure prints how to repeat it.
_COMMON: dict[str, Any] = {
    "deadline": None,
    "database": None,
    "print_blob": True,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
}
settings.register_profile("commit", max_examples=5, derandomize=True, **_COMMON)
settings.register_profile("daily", max_examples=3, derandomize=True, **_COMMON)
settings.register_profile("nightly", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let `make test` leave out what only `make test-all` runs."""
    parser.addoption(
        "--daily",
        action="store_true",
        help="without the tests that are marked thorough, and with the daily cases of large tables",
    )
    parser.addoption(
        "--fast",
        action="store_true",
        help="as --daily, and without the tests that take long or start another program",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Print the slowest modules, and the coverage of a run that measures it."""
    config.option.daily |= config.option.fast
    tables.set_daily(config.option.daily)
    if config.option.daily and "HYPOTHESIS_PROFILE" not in os.environ:
        settings.load_profile("daily")
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        config.pluginmanager.register(slowest.Slowest())
        if measured.RECORDER or getattr(config.option, "cov_source", None):
            config.pluginmanager.register(measured.Coverage())
    if measured.RECORDER is None:
        return
    if is_worker or not config.getoption("numprocesses", None):
        config.pluginmanager.register(measured.RECORDER)
    else:
        measured.RECORDER.stop()


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """With --fast, import no module of which no test would run."""
    if not config.option.fast or not collection_path.is_relative_to(config.rootpath):
        return None
    return scheduling.is_slow(str(collection_path.relative_to(config.rootpath))) or None


def pytest_report_header(config: pytest.Config) -> str | None:
    """With --fast, say how much is left out."""
    if not config.option.fast:
        return None
    root = config.rootpath
    modules = [str(path.relative_to(root)) for path in (root / "tests").rglob("test_*.py")]
    slow = sum(map(scheduling.is_slow, modules))
    return f"without {slow} of {len(modules)} modules and without tests that start a broker"


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Keep the garbage collector away from the tests, which live until the end of the run.

    Collection makes millions of objects, and each full garbage collection would visit them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that take long; where several processes run tests, order the groups."""
    for item in items:
        if scheduling.is_thorough(item):
            item.add_marker("thorough")
        if scheduling.waits_for_a_peer(item):
            item.add_marker("peer")
        if scheduling.is_exhaustive(item):
            item.add_marker("exhaustive")
    left_out = ["thorough"] * config.option.daily + ["peer", "exhaustive"] * config.option.fast
    if left_out:
        marked = {item for item in items if any(map(item.get_closest_marker, left_out))}
        config.hook.pytest_deselected(items=list(marked))
        items[:] = [item for item in items if item not in marked]
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: scheduling.place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Groups:
    """What divides the tests among the processes of pytest-xdist."""
    config.option.loadscopereorder = False
    return scheduling.Groups(config, log)


@pytest.fixture(scope="session")
def every_case(pytestconfig: pytest.Config) -> bool:
    """Whether a test of a large table tries every case of it, or the daily ones alone."""
    return not pytestconfig.getoption("daily")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A real Kafka 4.3.0; shared, so a test must not depend on there being no ACLs."""
    settings = {
        # It looks for something to compact, and for transactions to abort, at short intervals.
        "log.cleaner.backoff.ms": "50",
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
    }
    with running_kafka(tmp_path_factory.mktemp("kafka"), settings) as running:
        yield running


@pytest.fixture
def start_broker(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[StartBroker]:
    """Starts our broker: `start_broker({"name": "value"})` sets or replaces configuration.

    Brokers of one test share its directory, and so the store, unless `directory` is given. They
    are threads of this process; those of a test marked `broker_process` are processes.
    """
    started: list[Broker] = []
    is_process = request.node.get_closest_marker("broker_process") is not None
    kind = Broker if is_process else ThreadBroker

    def start(overrides: dict[str, str] | None = None, directory: Path = tmp_path) -> Broker:
        broker = kind(directory, overrides)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        if broker.is_alive:
            broker.terminate()


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    """Our broker with the default configuration of these tests and no ACLs."""
    return start_broker()


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup() -> None:
    """Forget the servers of the test before."""
    spawned.clear()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the logs of the servers that a failed test used to its report."""
    report = yield
    if report.failed:
        fixtures = getattr(item, "funcargs", {}).values()
        shared = [each for each in fixtures if isinstance(each, LoggedProcess)]
        for server in dict.fromkeys([*spawned, *shared]):
            text = server.log_text()[-SHOWN_OF_A_LOG:]
            name = f"{type(server).__name__} in {server.directory.name}"
            report.sections.append((f"log of {name}", text))
    return report
