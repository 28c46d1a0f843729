"""Compares what a broker answered to the stories with a recording, step by step."""

from __future__ import annotations

import json
from collections.abc import Iterator

from aclbroker.conformance.behaviour.divergences import DIVERGENCES
from aclbroker.conformance.comparison import NOT_IN_SUITE, NOT_OFFERED, NOT_RECORDED, Result
from aclbroker.conformance.outline import Outline
from aclbroker.conformance.recording import Recording, Step
from aclbroker.conformance.rules import MISSING, Difference


def compare(recorded: Recording, actual: Recording, *, offered_only: bool = False) -> list[Result]:
    """Return a result for each step of either recording, in order.

    All fields must be alike. A step of a version that only the other broker lacks is a difference,
    unless ``offered_only`` is set. A broker whose lowest or highest version is another one than the
    recorded broker's answers a step at that version; nothing is known of such an answer.
    """
    known = {(step.label, step.role) for step in recorded.answers}
    results = []
    for step in dict.fromkeys((*recorded.answers, *actual.answers)):
        before, now = recorded.answers.get(step), actual.answers.get(step)
        if before is None and (step.label, step.role) in known:
            continue
        is_offered = step.version in actual.offered.get(step.key, ())
        if now is None and offered_only and not is_offered:
            continue
        missing = NOT_IN_SUITE if is_offered else NOT_OFFERED
        results.append(_result(step, differences(before, now, missing)))
    return results


def differences(
    recorded: Outline | None, actual: Outline | None, missing: str
) -> Iterator[Difference]:
    """Yield the differences between two answers; ``missing`` is shown for one that is not there.

    Messages for people are not compared.
    """
    if recorded is None or actual is None or recorded.outcome != actual.outcome:
        before = NOT_RECORDED if recorded is None else recorded.outcome
        yield Difference("", before, missing if actual is None else actual.outcome)
        return
    for path in dict.fromkeys((*recorded.fields, *actual.fields)):
        before, now = (
            json.dumps(each.fields[path]) if path in each.fields else MISSING
            for each in (recorded, actual)
        )
        if before != now:
            yield Difference(path, before, now)


def _result(step: Step, found: Iterator[Difference]) -> Result:
    explained, unexplained = [], []
    for difference in found:
        name = next((each.name for each in DIVERGENCES if each.explains(step, difference)), None)
        if name is None:
            unexplained.append(difference)
        else:
            explained.append(name)
    return Result(step, tuple(unexplained), tuple(dict.fromkeys(explained)))
