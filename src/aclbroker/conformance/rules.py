"""The rules by which two outlines of the same step count as equal.

Compared are refusals, and the codes for errors in the request itself. Which other code a broker
answers depends on its data, so all of them count as "not refused". docs/conformance.md explains the
rules to users.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple

from aclbroker.conformance.codes import refusal
from aclbroker.conformance.outline import ANSWERED, Outline
from aclbroker.protocol.messages import ApiKey

MISSING: Final = "missing"
"""Shown for the code of an entry that is missing."""

NOT_TOLD: Final = "not told"
"""Shown for authorized operations that an answer does not tell."""


SILENT: Final = "telling no name"
"""Shown for a message that has no names but those of its request."""


class Difference(NamedTuple):
    """One difference between an answer and its recording, with both values as text."""

    path: str
    recorded: str
    actual: str

    def __str__(self) -> str:
        """Return the difference as one line of text."""
        return f"{self.path}: recorded {self.recorded}, is {self.actual}"


def differences(
    key: ApiKey, recorded: Outline, actual: Outline, comparable: Mapping[str, Collection[str]]
) -> Iterator[Difference]:
    """Yield the differences between two outlines of a step.

    ``comparable`` has, by the path of each filtered list, the names that both brokers show to their
    super user; other names in the list are not compared.
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
    # A message that tells a name is always a difference: if both brokers tell it, both are wrong.
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
        # Operations are told only of existing resources. If one side does not tell them, it counts
        # only where both sides have the code 0, or where there is no code.
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
