"""The pytest plugin: the fixtures ``acl_broker`` and ``acl_broker_factory``, and the options.

``--acl-record FILE`` allows everything and writes the smallest policy that allows what the tests
did. ``--acl-policy FILE`` enforces a policy, and tells what was missing and what was never used.
``--acl-strict`` fails a test that passed although its broker denied something.
Nothing is imported before a test asks for a broker.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

from aclbroker.terminal import printable
from aclbroker.testing.session import Session

if TYPE_CHECKING:
    from aclbroker.testing.acl_broker import AclBroker

_SESSION: Final = pytest.StashKey[Session]()
_BROKERS: Final = pytest.StashKey["list[AclBroker]"]()
_FAILED: Final = pytest.StashKey[bool]()
_RAN: Final = pytest.StashKey[bool]()
_OUTPUT: Final = "aclbroker"
_SECTION: Final = "denied by acl_broker"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options."""
    group = parser.getgroup("aclbroker", "ACLs of Kafka")
    group.addoption(
        "--acl-record",
        metavar="FILE",
        help="allow everything, and write the smallest policy file that allows what was done",
    )
    group.addoption(
        "--acl-record-prefix",
        metavar="PREFIX",
        action="append",
        default=[],
        help="have an ACL for all names with this prefix in the recorded policy; may be repeated",
    )
    group.addoption(
        "--acl-policy",
        metavar="FILE",
        help="enforce a policy file, and tell at the end what of it was never used",
    )
    group.addoption(
        "--acl-strict",
        action="store_true",
        help="let a test fail that was denied something and passed all the same; one that expects "
        "a denial calls forget_denials() when it has looked at it",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Read the options; a policy that cannot be read ends the run."""
    record, policy = config.getoption("--acl-record"), config.getoption("--acl-policy")
    if record and policy:
        raise pytest.UsageError("--acl-record allows everything: it cannot be with --acl-policy")
    if record and not Path(record).absolute().parent.is_dir():
        raise pytest.UsageError(f"--acl-record: there is no directory for {record}")
    try:
        config.stash[_SESSION] = Session(
            record=Path(record) if record else None,
            prefixes=tuple(config.getoption("--acl-record-prefix")),
            policy=Path(policy) if policy else None,
        )
    except (OSError, ValueError) as error:
        lines = map(printable, f"--acl-policy: {error}".split("\n"))
        raise pytest.UsageError("\n".join(lines)) from error


@pytest.fixture
def acl_broker_factory(
    request: pytest.FixtureRequest,
) -> Iterator[Callable[..., AclBroker]]:
    """A function that starts an `AclBroker` with its arguments; it ends with the test."""
    session = request.config.stash[_SESSION]
    brokers: list[AclBroker] = []
    request.node.stash[_BROKERS] = brokers

    # All are stopped, also if one of them raises.
    with ExitStack() as running:

        def start(*args: Any, **options: Any) -> AclBroker:
            broker = running.enter_context(session.broker(*args, **options))
            brokers.append(broker)
            return broker

        yield start
        failed = request.node.stash.get(_FAILED, False)
        for broker in brokers:
            session.ended(broker, failed=failed)


@pytest.fixture
def acl_broker(acl_broker_factory: Callable[..., AclBroker]) -> AclBroker:
    """An `AclBroker` without topics and ACLs, or with those of ``--acl-policy``."""
    return acl_broker_factory()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    """Add the denials of its time to the report of a test that failed."""
    report = yield
    is_strict = item.config.getoption("--acl-strict") and report.when == "call"
    if is_strict and report.passed and _denials(item):
        report.outcome = "failed"
        report.longrepr = "The test passed, but its broker denied something (--acl-strict)."
    if report.failed:
        item.stash[_FAILED] = True
        if denials := _denials(item):
            report.sections.append((_SECTION, "\n".join(map(printable, denials))))
    return report


def _denials(item: pytest.Item) -> list[str]:
    """Return in words what the brokers of a test denied."""
    brokers = item.stash.get(_BROKERS, [])
    if not brokers:
        return []
    from aclbroker.testing.decisions import in_words

    return [
        line for broker in brokers for line in in_words(broker.denials(), broker.denials_left_out)
    ]


def pytest_deselected(items: list[pytest.Item]) -> None:
    """Note that some tests do not run, so it is unknown which ACLs they use."""
    if items:
        items[0].config.stash[_SESSION].deselected(len(items))


@pytest.hookimpl(wrapper=True)
def pytest_runtestloop(session: pytest.Session) -> Generator[None, Any, Any]:
    """Note that all tests ran: nothing is raised then."""
    result = yield
    session.config.stash[_RAN] = True
    return result


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Write what was recorded; a worker of pytest-xdist hands it to the process that asked."""
    found = session.config.stash[_SESSION]
    if not session.config.stash.get(_RAN, False) or session.shouldfail or session.shouldstop:
        found.is_partial("the run has not ended by itself")
    workeroutput: dict[str, Any] | None = getattr(session.config, "workeroutput", None)
    if workeroutput is not None:
        workeroutput[_OUTPUT] = found.to_json()
        return
    try:
        says_something = found.finish(passed=exitstatus == pytest.ExitCode.OK)
    except OSError:
        # The summary tells it.
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
    else:
        if not says_something and exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: Any, config: pytest.Config) -> None:
    """Tell what was written, what was missing, and what was never used."""
    lines = config.stash[_SESSION].summary()
    if lines:
        terminalreporter.section("ACLs")
        for line in lines:
            terminalreporter.write_line(printable(line))


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Expect a worker of pytest-xdist to tell what it has seen."""
    node.config.stash[_SESSION].expect(node.gateway.id)


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    """Take over what a worker of pytest-xdist has seen; one that has crashed tells nothing."""
    output = getattr(node, "workeroutput", {}).get(_OUTPUT)
    if output is not None:
        node.config.stash[_SESSION].add_json(node.gateway.id, output)
