"""A whole application is recorded, and one ACL after the other is taken from its policy.

The application and its tests are those of `tests/testing/shop`: clients of two libraries, groups
and a transaction. Each run of its suite is a pytest of its own, with the policy enforced.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from aclbroker.acl.acl_text import acl_text
from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import Policy, parse_policy, write_policy

SHOP = Path(__file__).parent / "shop"
SETTINGS = """\
[pytest]
asyncio_mode = auto
asyncio_default_fixture_loop_scope = function
"""
OPTIONS = "-rA", "--tb=short", "-p", "no:cacheprovider"
PLUGINS = "aclbroker.testing.plugin", "pytest_asyncio.plugin"

PLACED, SHIPPED, BILLED, LOOKED_AT = (
    "test_an_order_is_placed",
    "test_an_order_is_shipped",
    "test_an_order_is_billed",
    "test_an_invoice_is_looked_at",
)

RECORDED = """\
version: 1
acls:
- principal: User:auditor
  rules:
  - topic: invoices
    allow: [READ]
  - group: audit
    allow: [READ]
- principal: User:shop
  rules:
  - topic: orders
    allow: [WRITE]
- principal: User:store
  rules:
  - topic: orders
    allow: [READ]
  - group: shipping
    allow: [READ]
- principal: User:till
  rules:
  - topic: invoices
    allow: [WRITE]
  - topic: orders
    allow: [READ]
  - group: billing
    allow: [READ]
  - transactional-id: billing-1
    allow: [WRITE]
"""

NEEDED_BY = {
    "ALLOW WRITE on TOPIC LITERAL orders to User:shop from *": {
        PLACED, SHIPPED, BILLED, LOOKED_AT,
    },
    "ALLOW READ on TOPIC LITERAL orders to User:store from *": {SHIPPED},
    "ALLOW READ on GROUP LITERAL shipping to User:store from *": {SHIPPED},
    "ALLOW READ on TOPIC LITERAL orders to User:till from *": {BILLED, LOOKED_AT},
    "ALLOW READ on GROUP LITERAL billing to User:till from *": {BILLED, LOOKED_AT},
    "ALLOW WRITE on TOPIC LITERAL invoices to User:till from *": {BILLED, LOOKED_AT},
    "ALLOW WRITE on TRANSACTIONAL_ID LITERAL billing-1 to User:till from *": {BILLED, LOOKED_AT},
    "ALLOW READ on TOPIC LITERAL invoices to User:auditor from *": {LOOKED_AT},
    "ALLOW READ on GROUP LITERAL audit to User:auditor from *": {LOOKED_AT},
}  # fmt: skip
"""Which tests of the shop each ACL of its policy is for, as one reads it in the application."""

FIX = re.compile(
    r"add ALLOW (?P<operation>\w+) on (?P<rest>.+? from \*)"
    r"(?: to produce, or (?P<others>\w+) to consume; each also gives DESCRIBE, which alone is .+"
    r"|, which also gives DESCRIBE|, or (?P<implying>.+), which impl(?:y|ies) it)?$"
)


class Run(NamedTuple):
    """A run of the shop's tests: which failed, with their reports, and all that it printed."""

    failed: set[str]
    reports: dict[str, str]
    status: int
    output: str


def run(directory: Path, *options: str) -> Run:
    (directory / "pytest.ini").write_text(SETTINGS)
    where = "-c", str(directory / "pytest.ini"), "--rootdir", str(SHOP), "--confcutdir", str(SHOP)
    plugins = [word for name in PLUGINS for word in ("-p", name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *OPTIONS, *where, *plugins, SHOP / "suite.py", *options],
        cwd=directory,
        env=os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    failed = re.findall(r"^(?:FAILED|ERROR) \S*::(\w+)", done.stdout, re.MULTILINE)
    parts = re.split(r"^_{3,} (\w+) _{3,}$", done.stdout, flags=re.MULTILINE)
    reports = dict(zip(parts[1::2], parts[2::2], strict=True))
    return Run(set(failed), reports, done.returncode, done.stdout + done.stderr)


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("shop")


def named(report: str) -> set[str]:
    """Return the ACLs of which a report says that one would allow what was denied, as texts."""
    found = set()
    for line in report.splitlines():
        _, _, fix = line.partition("; to allow it: ")
        if parts := FIX.match(fix):
            others = re.split(r", | or ", parts["others"] or parts["implying"] or "")
            operations = filter(None, (parts["operation"], *others))
            found |= {f"ALLOW {each} on {parts['rest']}" for each in operations}
    return found


def test_the_policy_of_the_application_is_what_its_code_says_twice(directory):
    for _ in range(2):
        (directory / "recorded.yaml").unlink(missing_ok=True)
        done = run(directory, "--acl-record", "recorded.yaml")
        assert (done.status, done.failed) == (0, set()), done.output
        assert (directory / "recorded.yaml").read_text() == RECORDED


def test_the_recorded_policy_is_enough_and_each_acl_of_it_was_used(directory):
    (directory / "policy.yaml").write_text(RECORDED)
    done = run(directory, "--acl-policy", "policy.yaml")
    assert (done.status, done.failed) == (0, set()), done.output
    assert "policy.yaml: nothing is missing, and all of it was used" in done.output


def test_an_acl_that_no_test_needs_is_listed_and_does_no_harm(directory):
    unused = "- principal: User:till\n  rules:\n  - topic: refunds\n    allow: WRITE\n"
    (directory / "more.yaml").write_text(RECORDED + unused)
    done = run(directory, "--acl-policy", "more.yaml")
    assert (done.status, done.failed) == (0, set()), done.output
    assert re.findall(r"^never used in \S+ (.*)$", done.output, re.MULTILINE) == [
        "ALLOW WRITE on TOPIC LITERAL refunds to User:till from *"
    ]


def test_each_acl_is_there_for_some_test():
    assert {acl_text(acl) for acl in parse_policy(RECORDED).acls} == set(NEEDED_BY)


DAILY_ACLS = 2
EACH_ACL = [
    pytest.param(acl, marks=[pytest.mark.thorough] * (number >= DAILY_ACLS))
    for number, acl in enumerate(sorted(parse_policy(RECORDED).acls))
]


@pytest.mark.parametrize("acl", EACH_ACL, ids=acl_text)
def test_without_one_acl_exactly_those_tests_fail_that_need_it_and_they_name_it(
    directory, acl: AclBinding
):
    rest = [each for each in parse_policy(RECORDED).acls if each != acl]
    write_policy(Policy(rest), directory / "less.yaml")
    done = run(directory, "--acl-policy", "less.yaml")
    assert done.failed == NEEDED_BY[acl_text(acl)], done.output
    for test in done.failed:
        assert acl_text(acl) in named(done.reports[test]), done.reports[test]
        whose = {re.sub(r"^ALLOW \w+ ", "", each) for each in named(done.reports[test])}
        assert whose == {re.sub(r"^ALLOW \w+ ", "", acl_text(acl))}
    missing = re.findall(r"^missing in \S+ (.*)$", done.output, re.MULTILINE)
    assert [acl_text(acl) in named(f"; to allow it: {each}") for each in missing] == [True]
