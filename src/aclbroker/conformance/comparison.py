"""Compares the answers of a broker with a recording, step by step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from aclbroker.conformance.divergences import explanation
from aclbroker.conformance.outline import Outline
from aclbroker.conformance.recording import Recording, Step
from aclbroker.conformance.roles import SUPER
from aclbroker.conformance.rules import Difference, differences

NOT_OFFERED: Final = "not offered"
NOT_IN_SUITE: Final = "not sent"
NOT_RECORDED: Final = "not recorded"


class Result(NamedTuple):
    """The outcome of comparing one step."""

    step: Step
    unexplained: tuple[Difference, ...]
    explained: tuple[str, ...]
    """The names of the divergences that explain the other differences of the step."""

    @property
    def passed(self) -> bool:
        """Whether every difference is explained."""
        return not self.unexplained


def compare(recorded: Recording, actual: Recording, *, offered_only: bool = False) -> list[Result]:
    """Return a result for each step of either recording, in order.

    Steps of versions that the recorded broker does not offer are left out, since nothing is known
    of them. Steps of versions that only the other broker lacks are differences, unless
    ``offered_only`` is set.
    """
    steps = dict.fromkeys((*recorded.answers, *actual.answers))
    results = []
    for step in steps:
        offered = recorded.offered.get(step.key, ())
        if step.version not in offered and step not in recorded.answers:
            continue
        if offered_only and step.version not in actual.offered.get(step.key, ()):
            continue
        results.append(_result(step, _step_differences(step, recorded, actual)))
    return results


def _result(step: Step, found: Iterator[Difference]) -> Result:
    explained, unexplained = [], []
    for difference in found:
        if (name := explanation(step, difference)) is None:
            unexplained.append(difference)
        else:
            explained.append(name)
    return Result(step, tuple(unexplained), tuple(dict.fromkeys(explained)))


def _step_differences(step: Step, recorded: Recording, actual: Recording) -> Iterator[Difference]:
    before, now = recorded.answers.get(step), actual.answers.get(step)
    if before is not None and now is not None:
        yield from differences(step.key, before, now, _shown_to_both(step, recorded, actual))
    elif before is not None:
        is_offered = step.version in actual.offered.get(step.key, ())
        yield Difference("", before.outcome, NOT_IN_SUITE if is_offered else NOT_OFFERED)
    elif now is not None:
        yield Difference("", NOT_RECORDED, now.outcome)


def _shown_to_both(step: Step, recorded: Recording, actual: Recording) -> dict[str, set[str]]:
    """Return, by the path of each filtered list, the names that both super users are shown."""
    before, now = (_shown_to_super(step, each) for each in (recorded, actual))
    return {path: set(names) & set(now[path]) for path, names in before.items() if path in now}


def _shown_to_super(step: Step, recording: Recording) -> dict[str, list[str]]:
    outline: Outline | None = recording.answers.get(step._replace(role=SUPER))
    return outline.names if outline else {}
