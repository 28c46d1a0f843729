"""The rules by which two outlines of the same step are alike.

Only authorization is compared. Which of the other codes a broker answers depends on what it holds,
so all of them mean "not refused". docs/conformance.md explains the rules to users.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Final, NamedTuple

from aclbroker.broker.conformance.outline import ANSWERED, Outline
from aclbroker.protocol.messages import ApiKey

REFUSALS: Final = frozenset((29, 30, 31, 53, 54, 65))
"""Topic, group, cluster and transactional id, no authorizer, delegation token."""

TOKEN_CODES: Final = frozenset(range(61, 67))
"""What an API of delegation tokens can say about tokens."""

TOKEN_KEYS: Final = frozenset(
    (
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    )
)

MISSING: Final = "missing"
"""How a code of an entry that is not there is shown."""

NOT_TOLD: Final = "not told"
"""How authorized operations are shown that are not told."""


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
    yield from _code_differences(key, recorded.codes, actual.codes)
    yield from _operation_differences(recorded, actual)
    for path in sorted(recorded.names.keys() & actual.names.keys()):
        yield from _name_differences(
            path, recorded.names[path], actual.names[path], comparable.get(path, ())
        )


def refusal(key: ApiKey, code: int | None) -> int:
    """Return a code as it is compared: the code if it refuses, else 0.

    No code, of an entry that is missing, refuses nothing: an entry that is allowed may be there or
    not, as brokers hold different things.
    """
    refusals = REFUSALS | TOKEN_CODES if key in TOKEN_KEYS else REFUSALS
    return code if code in refusals else 0


def _shown(code: int | None) -> str:
    return MISSING if code is None else str(code)


def _code_differences(
    key: ApiKey, recorded: dict[str, int], actual: dict[str, int]
) -> Iterator[Difference]:
    for path in sorted(recorded.keys() | actual.keys()):
        before, now = (refusal(key, codes.get(path)) for codes in (recorded, actual))
        if before != now:
            yield Difference(path, _shown(recorded.get(path)), _shown(actual.get(path)))


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
