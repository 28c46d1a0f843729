"""The rules by which two outlines of the same step are alike.

Only authorization is compared, and what is wrong with a request itself. Which of the other codes a
broker answers depends on what it holds, so all of them mean "not refused". docs/conformance.md
explains the rules to users.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from aclbroker.broker.conformance.codes import refusal
from aclbroker.broker.conformance.outline import ANSWERED, Outline
from aclbroker.protocol.messages import ApiKey

MISSING: Final = "missing"
"""How a code of an entry that is not there is shown."""

NOT_TOLD: Final = "not told"
"""How authorized operations are shown that are not told."""


SILENT: Final = "telling no name"
"""How a message is shown that has no name which its request does not have."""


class Difference(NamedTuple):
    """One thing in which an answer is not as recorded; both sides as a reader may see them."""

    path: str
    recorded: str
    actual: str

    def __str__(self) -> str:
        """Return it as one line."""
        return f"{self.path}: recorded {self.recorded}, is {self.actual}"


def differences(
    key: ApiKey, recorded: Outline, actual: Outline, comparable: Mapping[str, Collection[str]]
) -> Iterator[Difference]:
    """Yield in what two outlines of a step differ.

    `comparable` has, by the path of a filtered list, the names that the super user is shown in it
    by both brokers; others are not looked for.
    """
    if recorded.outcome != actual.outcome:
        yield Difference("", recorded.outcome, actual.outcome)
        return
    if recorded.outcome != ANSWERED:
        return
    yield from _messages(recorded, actual)
    codes = list(_code_differences(key, recorded, actual))
    yield from codes or _field_differences(recorded.fields, actual.fields)
    yield from _operation_differences(recorded, actual)
    for path in sorted(recorded.names.keys() & actual.names.keys()):
        yield from _name_differences(
            path, recorded.names[path], actual.names[path], comparable.get(path, ())
        )


def _shown(code: int | None) -> str:
    return MISSING if code is None else str(code)


def _messages(recorded: Outline, actual: Outline) -> Iterator[Difference]:
    # A difference in any case: what is told so may be alike on both sides and is wrong on both.
    for path in sorted(recorded.told.keys() | actual.told.keys()):
        yield Difference(path, *(_told(each.told.get(path)) for each in (recorded, actual)))


def _told(names: list[str] | None) -> str:
    return f"telling {', '.join(names)}" if names else SILENT


def _code_differences(key: ApiKey, recorded: Outline, actual: Outline) -> Iterator[Difference]:
    named = {*recorded.named, *actual.named}
    for path in sorted(recorded.codes.keys() | actual.codes.keys()):
        codes = recorded.codes.get(path), actual.codes.get(path)
        before, now = (refusal(key, code, named) for code in codes)
        if before != now:
            yield Difference(path, *map(_shown, codes))


def _field_differences(recorded: dict[str, Any], actual: dict[str, Any]) -> Iterator[Difference]:
    for path in sorted(recorded.keys() | actual.keys()):
        before, now = (
            json.dumps(each[path]) if path in each else MISSING for each in (recorded, actual)
        )
        if before != now:
            yield Difference(path, before, now)


def _operation_differences(recorded: Outline, actual: Outline) -> Iterator[Difference]:
    for path in sorted(recorded.operations.keys() | actual.operations.keys()):
        before, now = (_operations_shown(each, path) for each in (recorded, actual))
        # They are told of what there is: beside the code 0 on both sides, if there is a code.
        code = f"{path.rpartition('.')[0]}.error_code".removeprefix(".")
        codes = {each.codes.get(code) for each in (recorded, actual)}
        if before != now and (NOT_TOLD not in (before, now) or codes in ({0}, {None})):
            yield Difference(path, before, now)


def _operations_shown(outline: Outline, path: str) -> str:
    return f"{outline.operations[path]:#x}" if path in outline.operations else NOT_TOLD


def _name_differences(
    path: str, recorded: list[str], actual: list[str], comparable: Collection[str]
) -> Iterator[Difference]:
    for name in sorted(set(recorded) ^ set(actual)):
        if name in comparable:
            there = ("listed", "not listed")
            before, now = there if name in recorded else reversed(there)
            yield Difference(f"{path}[{name}]", before, now)
