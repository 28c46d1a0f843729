"""Fixtures that start servers: a real Kafka once for all tests, and our broker for each.

And what holds for all tests: how many examples Hypothesis draws (few and always the same, or many
with HYPOTHESIS_PROFILE=nightly), and in which process a test runs.
"""

import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.support import measured, scheduling
from tests.support.broker import Broker
from tests.support.kafka import Kafka, running_kafka
from tests.support.process import LoggedProcess, spawned
from tests.support.signals import handle_ignored_signals

# This must come before a test starts a program, because a program inherits ignored signals.
handle_ignored_signals()

pytest.register_assert_rewrite("tests.clients.story", "tests.memory_cluster.java_programs")

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
settings.register_profile("nightly", max_examples=1000, **_COMMON)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "commit"))


def pytest_configure(config: pytest.Config) -> None:
    """Tell the coverage of a run that measures it (`--cov`)."""
    if getattr(config.option, "cov_source", None) and not hasattr(config, "workerinput"):
        config.pluginmanager.register(measured.Coverage())


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark the tests that take long; where several processes run tests, order the groups."""
    for item in items:
        if scheduling.waits_for_a_peer(item):
            item.add_marker("peer")
        if scheduling.is_exhaustive(item):
            item.add_marker("exhaustive")
        if scheduling.installs(item) and not {"CI", "INSTALL"}.intersection(os.environ):
            reason = "installs for minutes: CI does, and `make test` where INSTALL is set"
            item.add_marker(pytest.mark.skip(reason))
    if hasattr(config, "workerinput"):
        items.sort(key=lambda item: scheduling.place(item.nodeid))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> scheduling.Groups:
    """What divides the tests among the processes of pytest-xdist."""
    config.option.loadscopereorder = False
    return scheduling.Groups(config, log)


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kafka]:
    """A real Kafka 4.3.0; shared, so a test must not depend on there being no ACLs."""
    with running_kafka(tmp_path_factory.mktemp("kafka")) as running:
        yield running


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[StartBroker]:
    """Starts our broker: `start_broker({"name": "value"})` sets or replaces configuration.

    Brokers of one test share its directory, and so the store, unless `directory` is given.
    """
    started: list[Broker] = []

    def start(overrides: dict[str, str] | None = None, directory: Path = tmp_path) -> Broker:
        broker = Broker(directory, overrides)
        started.append(broker)
        broker.start()
        return broker

    yield start
    for broker in started:
        if broker.process is not None and broker.process.poll() is None:
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
