"""What follows from a row: which part of a request may go on, and how the rest is refused.

A request to which no need of its row applied is refused: a row that forgets a case closes the door,
it does not open it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.echo import Answer, Denial, without
from aclbroker.broker.gate.need import REFUSAL, Need, Profile, Row, Scope, Target
from aclbroker.broker.gate.rights import May, Topics
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS

Complete = Callable[[Any], Any]
"""Makes the answer to what was allowed the answer to all that was asked."""


class Verdict(NamedTuple):
    """``request`` is what may be answered, None if nothing; then ``response`` refuses it all."""

    request: Any
    response: Any
    complete: Complete


def unchanged(response: Any) -> Any:
    """Leave an answer as it is."""
    return response


def refused(response: Any) -> Verdict:
    """Return the verdict of a request that is refused whole."""
    return Verdict(None, response, unchanged)


def denial(code: int, operation: AclOperation, resource_type: ResourceType, name: Any) -> Denial:
    """Return a refusal that says what was needed."""
    return Denial(
        code, f"Not authorized: {operation.name} on {resource_type.name} {name} is needed."
    )


def check(row: Row, request: Any, may: May, topics: Topics, profile: Profile) -> Verdict:
    """Hold a request of the row's key against the rights of its session."""
    if row.first is not None and (first := row.first(request, may.context)) is not None:
        is_denial = isinstance(first, Denial)
        return refused(_refuse(row, request, may, first) if is_denial else first)
    if row.exempt:
        return Verdict(request, None, unchanged)
    if row.special is not None:
        verdict: Verdict = row.special(row, request, may, topics, profile)
        return verdict
    return check_needs(row, request, may, topics, profile)


def check_needs(row: Row, request: Any, may: May, topics: Topics, profile: Profile) -> Verdict:
    """Hold a request against the needs of its row alone."""
    needs = _applying(row, request, may, profile)
    if needs:
        return _check_applying(row, request, may, topics, needs)
    message = f"Not authorized: no rule of {APIS[row.key].name} covers this request."
    why = Denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
    return refused(_refuse(row, request, may, why))


def _applying(row: Row, request: Any, may: May, profile: Profile) -> list[Need]:
    return [
        need
        for need in row.needs
        if may.context.api_version in need.versions
        and need.profile in (None, profile)
        and (need.when is None or need.when(request))
    ]


def _refuse(row: Row, request: Any, may: May, why: Denial) -> Any:
    answer = row.answer(may.context.api_version)
    return answer.refuse(APIS[row.key].response, request, why)


def _check_applying(
    row: Row, request: Any, may: May, topics: Topics, needs: Iterable[Need]
) -> Verdict:
    answer = row.answer(may.context.api_version)
    denials = repeated(answer, request) if row.once else {}
    kept = []
    for need in needs:
        if need.unless is not None and need.unless(may):
            continue
        if need.scope is Scope.KEEP:
            kept.append(need)
        elif need.scope is Scope.WHOLE:
            if why := whole_denial(need, request, may):
                return refused(_refuse(row, request, may, why))
        elif answer.echo is not None:
            asked = getattr(request, answer.echo.asked) or ()
            denials = entry_denials(need, asked, request, may, topics) | denials
    trims: list[Complete] = [partial(_keep, may=may, need=need, topics=topics) for need in kept]
    if row.trim is not None:
        trims.append(partial(row.trim, may))
    return _parted(row, answer, request, denials, trims)


def repeated(answer: Answer, request: Any) -> dict[int, Denial]:
    """Refuse the entries that a request names more than once, whoever asks."""
    if answer.echo is None:
        return {}
    asked = getattr(request, answer.echo.asked) or ()
    keys = [answer.echo.key_of(entry) for entry in asked]
    counts = Counter(keys)
    why = Denial(ErrorCode.INVALID_REQUEST, "The request names it more than once.")
    return {position: why for position, key in enumerate(keys) if counts[key] > 1}


def whole_denial(need: Need, request: Any, may: May) -> Denial | None:
    """Return why a need refuses the whole request, None if it does not."""
    if need.resources is None:
        return None
    for target in need.resources(request):
        if isinstance(target, int):
            return Denial(target, "The request cannot be authorized as it is.")
        if target is not None and not may(need.operation, *target):
            code = need.code or REFUSAL[target[0]]
            return denial(code, need.operation, *target)
    return None


def entry_denials(
    need: Need, asked: Sequence[Any], request: Any, may: May, topics: Topics
) -> dict[int, Denial]:
    """Return what the need refuses of the entries, by their positions."""
    if need.resource is None:
        return {}
    targets = [need.resource(entry, request, topics) for entry in asked]
    allowed = _allowed(need.operation, targets, may)
    denials = {}
    for position, target in enumerate(targets):
        if isinstance(target, int):
            denials[position] = Denial(target, ErrorCode(target).name)
        elif target is not None and target not in allowed:
            code = need.code or REFUSAL[target[0]]
            denials[position] = denial(code, need.operation, *target)
    if denials and need.spare is not None:
        spared = Denial(need.spare, "Not attempted, since other parts of the request are refused.")
        return {position: denials.get(position, spared) for position in range(len(asked))}
    return denials


def _allowed(
    operation: AclOperation, targets: Iterable[Target], may: May, *, quietly: bool = False
) -> set[Target]:
    counts: dict[ResourceType, Counter[str | None]] = {}
    for target in targets:
        if isinstance(target, tuple):
            counts.setdefault(target[0], Counter())[target[1]] += 1
    return {
        (resource_type, name)
        for resource_type, names in counts.items()
        for name in may.allowed(operation, resource_type, names, quietly=quietly)
    }


def _parted(
    row: Row, answer: Answer, request: Any, denials: dict[int, Denial], trims: list[Complete]
) -> Verdict:
    echoed = answer.echo
    if not denials or echoed is None:
        return Verdict(request, None, _chain(trims))
    response_class = APIS[row.key].response
    asked = getattr(request, echoed.asked)
    refusals = {
        position: echoed.refuse(response_class, asked[position], why)
        for position, why in denials.items()
    }
    if len(refusals) == len(asked) and not answer.top_decides:
        refusing = [refusals[position] for position in range(len(asked))]
        return refused(response_class(**{echoed.answer: refusing}, **answer.fill))

    def put_back(response: Any) -> Any:
        if answer.top_decides and response.error_code:
            return response
        answered = getattr(response, echoed.answer)
        setattr(response, echoed.answer, echoed.merged(asked, refusals, answered))
        return response

    return Verdict(without(request, echoed.asked, refusals), None, _chain([*trims, put_back]))


def _chain(steps: list[Complete]) -> Complete:
    def complete(response: Any) -> Any:
        for step in steps:
            response = step(response)
        return response

    return complete if steps else unchanged


def _keep(response: Any, *, may: May, need: Need, topics: Topics) -> Any:
    """Leave out of an answer's array what the session may not know of."""
    if need.resource is None:
        return response
    entries = getattr(response, need.array)
    targets = [need.resource(entry, None, topics) for entry in entries]
    allowed = _allowed(need.operation, targets, may, quietly=True)
    kept = [entry for entry, target in zip(entries, targets, strict=True) if target in allowed]
    setattr(response, need.array, kept)
    return response
