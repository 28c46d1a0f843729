"""The pytest plugin, in runs of pytest of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.support import forked
from tests.support.tables import thorough

APPLICATION = '''
"""A made-up application: it looks at orders, and at payments if it is asked to."""
from confluent_kafka.admin import AdminClient

def look(broker, topic, user="shop"):
    client = AdminClient(broker.client_config(user) | {"log_level": 0})
    error = client.list_topics(topic, timeout=10).topics[topic].error
    assert error is None, error.name()
'''

TESTS = """
import pytest
from application import look

@pytest.fixture
def broker(acl_broker_factory):
    return acl_broker_factory(topics={"orders": 1, "orders-eu": 1, "payments": 1})

def test_orders(broker):
    look(broker, "orders")

def test_orders_of_europe(broker):
    look(broker, "orders-eu")

def test_payments(broker):
    look(broker, "payments", "till")
"""

POLICY = """\
version: 1
acls:
- principal: User:shop
  rules:
  - topic: orders
    allow: [DESCRIBE]
  - topic: orders-eu
    allow: [DESCRIBE]
- principal: User:till
  rules:
  - topic: payments
    allow: [DESCRIBE]
"""


ALONE = pytest.param((), id="alone")


def with_workers(number: int) -> Any:
    """The options of a run in worker processes of pytest-xdist, which `make test-all` tries."""
    return pytest.param(("-n", str(number)), id="xdist", marks=pytest.mark.thorough)


class Run(NamedTuple):
    """A run of pytest: what became of each test, its exit status and its output."""

    outcomes: dict[str, str]
    status: int
    output: str


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    (tmp_path / "application.py").write_text(APPLICATION)
    (tmp_path / "test_application.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def run(suite: Path, *options: str, imports_before: bool = True) -> Run:
    """Run pytest; without `imports_before` in a process that begins with no imports."""
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""}
    words = ["-rA", "-p", "no:cacheprovider", "-p", "aclbroker.testing.plugin", *options]
    if "-n" in options:
        words += ["-p", "xdist.plugin"]
    if imports_before:
        done = forked.run(forked.PYTEST, words, suite, environment, 120)
    else:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", *words],
            cwd=suite,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
    found = re.findall(r"^(PASSED|FAILED) \S+::(\w+)", done.stdout, re.MULTILINE)
    return Run({name: how for how, name in found}, done.returncode, done.stdout + done.stderr)


def test_a_failed_test_shows_what_was_denied_and_what_would_allow_it(suite):
    done = run(suite)
    assert set(done.outcomes.values()) == {"FAILED"}
    assert "denied by acl_broker" in done.output
    assert "add ALLOW WRITE on TOPIC LITERAL payments to User:till from *" in done.output


@pytest.mark.parametrize("workers", [ALONE, with_workers(1)])
def test_the_number_of_denials_that_are_too_many_is_told(suite, workers):
    (suite / "test_application.py").write_text("""
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient

def test_it(acl_broker):
    client = AdminClient(acl_broker.client_config("shop"))
    names = [f"topic-{number}" for number in range(10_003)]
    for each in client.describe_topics(TopicCollection(names)).values():
        each.result()
""")
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-policy", "policy.yaml", *workers)
    assert "\n3 more denials, beyond the first 10000 that differ\n" in done.output
    assert "policy.yaml: 3 denials were not kept: more may be missing" in done.output


@pytest.mark.parametrize("workers", [ALONE, with_workers(2)])
def test_the_recorded_policy_is_the_smallest_and_the_same_each_time(suite, workers):
    for _ in range(2):
        done = run(suite, "--acl-record", "policy.yaml", *workers)
        assert done.status == 0, done.output
        assert (suite / "policy.yaml").read_text() == POLICY
        (suite / "policy.yaml").unlink()


def test_names_are_made_a_prefix_where_that_was_asked_for(suite):
    run(suite, "--acl-record", "policy.yaml", "--acl-record-prefix", "orders")
    text = (suite / "policy.yaml").read_text()
    assert "  - topic: orders\n    pattern: prefixed\n    allow: [DESCRIBE]\n" in text
    assert "orders-eu" not in text


@pytest.mark.parametrize("workers", [ALONE, with_workers(2)])
def test_the_recorded_policy_is_enough_and_all_of_it_is_used(suite, workers):
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-policy", "policy.yaml", *workers)
    assert done.status == 0, done.output
    assert "policy.yaml: nothing is missing, and all of it was used" in done.output


@pytest.mark.parametrize(("topic", "test"), [
    ("orders", "test_orders"),
    thorough("orders-eu", "test_orders_of_europe"),
    thorough("payments", "test_payments"),
])  # fmt: skip
def test_without_one_acl_the_test_fails_that_needs_it_and_the_acl_is_named(suite, topic, test):
    (suite / "policy.yaml").write_text(POLICY.replace(f"topic: {topic}\n", "topic: another\n"))
    done = run(suite, "--acl-policy", "policy.yaml")
    assert [name for name, how in done.outcomes.items() if how == "FAILED"] == [test]
    assert f"missing in policy.yaml: add ALLOW WRITE on TOPIC LITERAL {topic} to" in done.output
    assert "policy.yaml: tests failed, so that more may be used of it" in done.output


def test_what_a_test_expects_to_be_denied_is_not_missing(suite):
    expecting = """
def test_the_shop_sees_no_payments(broker):
    if not broker.is_recording:
        with pytest.raises(AssertionError, match="TOPIC_AUTHORIZATION_FAILED"):
            look(broker, "payments")
"""
    (suite / "test_application.py").write_text(TESTS + expecting)
    done = run(suite, "--acl-record", "policy.yaml")
    assert (done.status, (suite / "policy.yaml").read_text()) == (0, POLICY), done.output
    done = run(suite, "--acl-policy", "policy.yaml")
    assert done.status == 0, done.output
    assert "missing in policy.yaml" not in done.output
    denied = "denied by policy.yaml in tests that passed: add ALLOW WRITE on TOPIC LITERAL"
    assert f"{denied} payments to User:shop from *" in done.output


@pytest.mark.parametrize(("test", "why"), [
    ("def test_nothing(): pass", "no test had a broker"),
    thorough("import nothing_that_there_is", "the run has not ended by itself"),
    ("def test_it(acl_broker): raise KeyboardInterrupt", "the run has not ended by itself"),
])  # fmt: skip
def test_a_run_that_tells_nothing_of_use_leaves_the_file_that_there_was(suite, test, why):
    (suite / "test_application.py").write_text(f"{test}\n")
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-record", "policy.yaml")
    assert f"not recorded: {why}, and policy.yaml is as it was" in done.output
    assert (suite / "policy.yaml").read_text() == POLICY


NO_LOGIN = {
    "def test_it(acl_broker): pass": "none tried to",
    """
from confluent_kafka.admin import AdminClient

def test_it(acl_broker):
    wrong = acl_broker.client_config("shop") | {"sasl.password": "wrong", "log_level": 0}
    try:
        AdminClient(wrong).list_topics(timeout=1)
    except Exception:
        pass
""": "failed: ",
}


@pytest.mark.parametrize("workers", [ALONE, with_workers(1)])
@pytest.mark.parametrize(("test", "why"), NO_LOGIN.items(), ids=["none", "wrong password"])
@pytest.mark.parametrize("option", ["--acl-record", thorough("--acl-policy")])
def test_a_run_in_which_no_client_logs_in_fails_and_leaves_the_file(
    suite, test, why, option, workers
):
    (suite / "test_application.py").write_text(f"{test}\n")
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, option, "policy.yaml", *workers)
    assert done.outcomes == {"test_it": "PASSED"}
    assert done.status == 1
    assert re.search(
        rf"policy.yaml was not tested: no client logged in \(.*{why}"
        rf"|not recorded: no client logged in \(.*{why}",
        done.output,
    ), done.output
    assert (suite / "policy.yaml").read_text() == POLICY


def test_after_a_run_in_which_tests_fail_or_are_deselected_nothing_is_called_never_used(suite):
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-policy", "policy.yaml", "-k", "not payments")
    assert "policy.yaml: 1 tests were deselected, so that more may be used of it" in done.output
    done = run(suite, "--acl-policy", "policy.yaml", "-n", "2", "-k", "not payments")
    assert "policy.yaml: 1 tests were deselected, so that more may be used of it" in done.output
    suite_with(suite, "def test_more(broker): assert False")
    failed = run(suite, "--acl-policy", "policy.yaml")
    assert "policy.yaml: tests failed, so that more may be used of it" in failed.output
    assert "never used" not in done.output + failed.output


def test_a_recording_of_some_tests_says_that_it_may_lack_something(suite):
    done = run(suite, "--acl-record", "policy.yaml", "-k", "not payments")
    assert done.status == 0
    lacks = "recorded: policy.yaml, which may lack what 1 deselected tests would have done"
    assert lacks in done.output


def test_with_strict_a_test_fails_that_passed_though_it_was_denied_something(suite):
    (suite / "test_application.py").write_text(
        TESTS.partition("def test_orders(")[0]
        + """
from application import look

def test_swallows_it(broker):
    with pytest.raises(AssertionError):
        look(broker, "orders")

def test_expects_it(broker):
    with pytest.raises(AssertionError):
        look(broker, "orders")
    assert broker.denials()
    broker.forget_denials()
"""
    )
    assert set(run(suite).outcomes.values()) == {"PASSED"}
    done = run(suite, "--acl-strict")
    assert done.outcomes == {"test_swallows_it": "FAILED", "test_expects_it": "PASSED"}
    assert done.status == 1
    assert "The test passed, but its broker denied something" in done.output
    assert "Metadata needs DESCRIBE on TOPIC orders" in done.output


STOPPED_EARLY = [
    ("def test_more(broker): assert False", ("-x",)),
    thorough("def test_more(broker): __import__('os')._exit(1)", ("-n", "2")),
]
WHY_PARTIAL = r"(the run|worker gw\d) has not ended by itself"


def suite_with(suite: Path, test: str) -> None:
    """Have another test before those that the suite has."""
    before, fixture, rest = TESTS.partition("@pytest.fixture")
    (suite / "test_application.py").write_text(f"{before}{test}\n\n{fixture}{rest}")


@pytest.mark.parametrize(("test", "options"), [
    *STOPPED_EARLY,
    thorough("def test_more(broker): assert False", ("-x", "-n", "2")),
    thorough("def test_more(broker): pytest.exit('enough', returncode=0)", ()),
])  # fmt: skip
def test_a_run_that_stops_early_leaves_the_complete_policy_that_there_was(suite, test, options):
    suite_with(suite, test)
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-record", "policy.yaml", *options)
    told = rf"not recorded: {WHY_PARTIAL}, and policy\.yaml is as it was"
    assert re.search(told, done.output), done.output
    assert (suite / "policy.yaml").read_text() == POLICY


@pytest.mark.parametrize(("test", "options"), STOPPED_EARLY)
def test_after_a_run_that_stops_early_nothing_is_said_to_be_never_used(suite, test, options):
    suite_with(suite, test)
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-policy", "policy.yaml", *options)
    told = rf"policy\.yaml: {WHY_PARTIAL}, so that more may be used of it"
    assert re.search(told, done.output), done.output
    assert "never used" not in done.output
    assert "all of it was used" not in done.output


@pytest.mark.parametrize("test", [
    "def test_it(acl_broker): assert False",
    thorough("def test_it(acl_broker_factory): acl_broker_factory(nodes=0)"),
])  # fmt: skip
def test_a_suite_that_fails_before_it_uses_anything_leaves_the_file_that_there_was(suite, test):
    (suite / "test_application.py").write_text(f"{test}\n")
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-record", "policy.yaml")
    assert "not recorded: " in done.output
    assert (suite / "policy.yaml").read_text() == POLICY


@pytest.mark.parametrize("workers", [ALONE, with_workers(2)])
def test_where_a_test_failed_the_record_says_that_it_may_lack_something(suite, workers):
    failing = "\ndef test_more(broker):\n    assert False\n"
    (suite / "test_application.py").write_text(TESTS + failing)
    done = run(suite, "--acl-record", "policy.yaml", *workers)
    assert done.status == 1
    told = "recorded: policy.yaml, which may lack what tests that failed would have done"
    assert told in done.output
    assert (suite / "policy.yaml").read_text() == POLICY


def test_all_brokers_are_stopped_at_the_end_of_a_test(suite):
    (suite / "test_application.py").write_text("""
import threading
import pytest

def test_first(acl_broker_factory):
    one, other = acl_broker_factory(), acl_broker_factory(topics={"orders": 1})
    with other as same:  # once more
        assert same is other
    for broker in (one, acl_broker_factory()):
        def stop(broker=broker):
            type(broker).stop(broker)
            raise TimeoutError("it did not stop")
        broker.stop = stop
    acl_broker_factory()
    with pytest.raises(ValueError, match="a/b"):
        acl_broker_factory(topics={"a/b": 1})

def test_then():
    assert [each.name for each in threading.enumerate() if each.name == "aclbroker"] == []
""")
    done = run(suite)
    assert done.outcomes == {"test_first": "PASSED", "test_then": "PASSED"}, done.output
    assert "ERROR test_application.py::test_first - TimeoutError: it did not stop" in done.output


def test_a_record_that_cannot_be_written_is_told_without_a_traceback(suite):
    done = run(suite, "--acl-record", "missing/policy.yaml")
    assert (done.status, done.outcomes) == (pytest.ExitCode.USAGE_ERROR, {})
    assert "--acl-record: there is no directory for missing/policy.yaml" in done.output
    (suite / "directory").mkdir()
    done = run(suite, "--acl-record", "directory")
    assert done.status == pytest.ExitCode.INTERNAL_ERROR
    assert "not recorded: directory cannot be written" in done.output
    assert "Traceback" not in done.output


def test_a_policy_that_cannot_be_read_ends_the_run_with_the_reason(suite):
    (suite / "policy.yaml").write_text("version: 1\nacls: 7\n")
    done = run(suite, "--acl-policy", "policy.yaml")
    assert done.status == pytest.ExitCode.USAGE_ERROR
    assert "policy.yaml: line 2" in done.output
    done = run(suite, "--acl-policy", "missing.yaml")
    assert "No such file" in done.output
    done = run(suite, "--acl-policy", "a", "--acl-record", "b")
    assert "cannot be with --acl-policy" in done.output


def test_a_run_without_brokers_says_nothing_of_acls(suite):
    (suite / "test_application.py").write_text("def test_nothing(): pass\n")
    (suite / "policy.yaml").write_text(POLICY)
    done = run(suite, "--acl-policy", "policy.yaml")
    assert (done.status, "ACL" in done.output) == (0, False)


def test_the_plugin_imports_no_broker_before_a_test_asks_for_one(suite):
    test = "import sys\ndef test_it(): assert 'aclbroker.broker' not in sys.modules\n"
    (suite / "test_application.py").write_text(test)
    assert run(suite, imports_before=False).status == 0
