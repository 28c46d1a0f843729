"""Tests of many cases: several in one test, and fewer of them in the daily run."""

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

SHOWN = 20
"""The most failures that a test reports in full."""

DAILY_PART = 5
LEAST_EXAMPLES = 10


class _Run:
    """The kind of this run; conftest sets it before test modules are imported."""

    is_daily = False


def set_daily(is_daily: bool) -> None:
    """Have `examples` give the numbers of `make test`, or those of `make test-all`."""
    _Run.is_daily = is_daily


def thorough(*values: Any) -> Any:
    """Return the values of a parameter that only `make test-all` tries."""
    return pytest.param(*values, marks=pytest.mark.thorough)


def examples(count: int) -> int:
    """Return the number of random examples to try: ``count``, or a fifth of it in the daily run."""
    return max(LEAST_EXAMPLES, count // DAILY_PART) if _Run.is_daily else count


def check_each(cases: Iterable[Case], check: Callable[[Case], object]) -> None:
    """Call ``check`` with each case, also after a failure.

    Raises an ExceptionGroup of what the cases raised, each with a note that names its case, and
    AssertionError if there are no cases.
    """
    failures: list[Exception] = []
    number = 0
    for number, case in enumerate(cases, 1):
        try:
            check(case)
        except Exception as failure:  # noqa: BLE001 - whatever a case raises, the others count, too
            failure.add_note(f"case {number}: {case!r}")
            failures.append(failure)
    assert number, "there are no cases"
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {number} cases failed", failures[:SHOWN])
