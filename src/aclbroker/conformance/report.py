"""Writes the results of a comparison as text, JSON or JUnit XML."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final
from xml.sax.saxutils import quoteattr

from aclbroker.conformance.behaviour import divergences as of_behaviour
from aclbroker.conformance.behaviour.roles import ROLES as ROLES_OF_BEHAVIOUR
from aclbroker.conformance.comparison import Result
from aclbroker.conformance.divergences import DIVERGENCES
from aclbroker.conformance.roles import ROLES
from aclbroker.protocol.messages import ApiKey
from aclbroker.terminal import printable

_SHOWN: Final = 8
"""How many differences of a step the text shows."""

_ROLE_NAMES: Final = tuple(role.name for role in ROLES)
_BEHAVIOUR_ROLE_NAMES: Final = tuple(role.name for role in ROLES_OF_BEHAVIOUR)
_REASONS: Final = {each.name: each.reason for each in (*DIVERGENCES, *of_behaviour.DIVERGENCES)}


def text(recorded: str, results: Sequence[Result]) -> str:
    """Return a table by API key and role, the differences, and the totals.

    ``recorded`` names the broker of the recording. A cell has the number of steps that passed and,
    if there are any, the number of those that differ after a slash.
    """
    names = _role_names(results)
    lines = [" " * 30 + "".join(f"{name:>12}" for name in names)]
    for key, of_key in _by(results, _key).items():
        roles = _by(of_key, _role)
        cells = (_cell(roles.get(role, ())) for role in names)
        lines.append(f"{key.name.lower():<30}" + "".join(f"{cell:>12}" for cell in cells))
    lines += _difference_lines(results)
    lines += ["", *_total_lines(recorded, results)]
    return "\n".join(lines) + "\n"


def as_json(recorded: str, results: Sequence[Result]) -> str:
    """Return an object with the totals, the counts by key and role, and each difference."""
    keys: dict[str, Any] = {}
    for key, of_key in _by(results, _key).items():
        keys[key.name] = {
            role: {"passed": _passed(steps), "different": len(steps) - _passed(steps)}
            for role, steps in _by(of_key, _role).items()
        }
    document = {
        "recorded": recorded,
        "steps": len(results),
        "different": len(results) - _passed(results),
        "divergences": _divergences(results),
        "keys": keys,
        "differences": [
            {
                "key": result.step.key.name,
                "case": result.step.label,
                "version": result.step.version,
                "role": result.step.role,
                "path": difference.path,
                "recorded": difference.recorded,
                "actual": difference.actual,
            }
            for result in results
            for difference in result.unexplained
        ],
    }
    # The encoder escapes all control characters but DEL.
    return json.dumps(document, indent=1).replace("\x7f", "\\u007f") + "\n"


def junit(recorded: str, results: Sequence[Result]) -> str:
    """Return JUnit XML with a suite for each API key and a test for each case and role of it."""
    failed = len({(r.step.key, r.step.label, r.step.role) for r in results if not r.passed})
    tests = len({(r.step.key, r.step.label, r.step.role) for r in results})
    title = quoteattr(printable(f"authorization as recorded of {recorded}"))
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<testsuites name={title} tests="{tests}" failures="{failed}">',
    ]
    for key, of_key in _by(results, _key).items():
        lines += _junit_suite(key, of_key)
    return "\n".join([*lines, "</testsuites>"]) + "\n"


def _junit_suite(key: ApiKey, results: Sequence[Result]) -> Iterator[str]:
    tests = _by(results, lambda result: (result.step.label, result.step.role))
    failures = sum(any(not result.passed for result in steps) for steps in tests.values())
    yield f'  <testsuite name="{key.name}" tests="{len(tests)}" failures="{failures}">'
    for (label, role), steps in tests.items():
        head = f"    <testcase classname={quoteattr(f'{key.name}.{role}')} name={quoteattr(label)}"
        failure = [
            f"v{result.step.version} {difference}"
            for result in steps
            for difference in result.unexplained
        ]
        if failure:
            message = quoteattr(printable("; ".join(failure)))
            yield f'{head}><failure message={message} type="difference"/></testcase>'
        else:
            yield f"{head}/>"
    yield "  </testsuite>"


def _difference_lines(results: Iterable[Result]) -> Iterator[str]:
    """Yield a line for each difference; one that several versions have is shown once."""
    alike: dict[Any, list[int]] = defaultdict(list)
    for result in results:
        if not result.passed:
            step = result.step
            alike[(step.key, step.label, step.role, result.unexplained)].append(step.version)
    for (key, label, role, found), versions in alike.items():
        numbers = ", ".join(map(str, versions))
        yield f"\n{key.name.lower()} {label}: role {role}, version {numbers}"
        yield from (f"    {difference}" for difference in found[:_SHOWN])
        if len(found) > _SHOWN:
            yield f"    and {len(found) - _SHOWN} more"


def _total_lines(recorded: str, results: Sequence[Result]) -> Iterator[str]:
    for name, count in _divergences(results).items():
        yield f"{count} steps differ as meant, {name}: {_REASONS[name]}"
    different = len(results) - _passed(results)
    yield (
        f"{len(results)} steps (API key, case, version, role) compared with {recorded}: "
        f"{different} differ."
    )


def _role_names(results: Sequence[Result]) -> Sequence[str]:
    """Return the roles of the suite that was played, as the columns of the table."""
    is_behaviour = any(result.step.role in _BEHAVIOUR_ROLE_NAMES for result in results)
    return _BEHAVIOUR_ROLE_NAMES if is_behaviour else _ROLE_NAMES


def _divergences(results: Iterable[Result]) -> dict[str, int]:
    return dict(Counter(name for result in results for name in result.explained))


def _cell(results: Sequence[Result]) -> str:
    different = len(results) - _passed(results)
    return f"{_passed(results)}/{different}" if different else str(len(results) or "-")


def _passed(results: Iterable[Result]) -> int:
    return sum(result.passed for result in results)


def _key(result: Result) -> ApiKey:
    return result.step.key


def _role(result: Result) -> str:
    return result.step.role


def _by(results: Iterable[Result], of: Callable[[Result], Any]) -> dict[Any, list[Result]]:
    groups: dict[Any, list[Result]] = {}
    for result in results:
        groups.setdefault(of(result), []).append(result)
    return groups


FORMATS: Final = {"text": text, "json": as_json, "junit": junit}
"""The formats by name; each function takes the recorded broker's name and the results."""
