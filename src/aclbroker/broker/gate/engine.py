"""Checks a request against its row: which part of it may pass, and how the rest is refused.

A request to which no need of its row applies is refused. So a case that a row does not cover is
never allowed by mistake.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.echo import Denial, Echo, Form, without
from aclbroker.broker.gate.need import (
    REFUSAL,
    Each,
    Keep,
    Need,
    Refusal,
    Repeats,
    Row,
    Target,
    Whole,
)
from aclbroker.broker.gate.reserved import reserved_in
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import show
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages import APIS
from aclbroker.turns import in_turns

Complete = Callable[[Any], Any]
"""Takes the answer to the allowed part of a request; returns the answer to the whole of it."""


class Verdict(NamedTuple):
    """The outcome of a check.

    The part of the request that may be answered is ``request``. It is None if no part may; then
    ``response`` is the refusal. The function ``complete`` makes the answer to the part an answer to
    all. The set ``creatable`` has the missing topics that a Metadata request may create.
    """

    request: Any
    response: Any
    complete: Complete
    creatable: frozenset[str | None] = frozenset()


def unchanged(response: Any) -> Any:
    """Return a response unchanged."""
    return response


def refused(response: Any) -> Verdict:
    """Return the verdict that refuses the whole request with a response."""
    return Verdict(None, response, unchanged)


def refuse(request: Any, rights: RequestRights, why: Refusal) -> Verdict:
    """Refuse a whole request: with a given response, or with a denial in the form of its answer."""
    if not isinstance(why, Denial):
        return refused(why)
    key = rights.row.key
    return refused(
        form_of(key, rights.context.api_version).refuse(APIS[key].response, request, why)
    )


def denial(code: int, operation: AclOperation, resource_type: ResourceType, name: Any) -> Denial:
    """Return a denial whose message names the right that is missing."""
    return Denial(
        code,
        f"Not authorized: {operation.name} on {resource_type.name} {shown_name(name)} is needed.",
    )


BY_ID: Final = "of that id"
"""Stands in messages for the name of a topic that the request gave by its id alone."""


def require_enforceable(row: Row) -> None:
    """Raise ValueError if the engine cannot enforce a row in one of its key's versions.

    If the engine asks for a need of each entry, the form of the answer must have entries. The
    engine can filter an answer only at a path of one array and one field.
    """
    for version in APIS[row.key].versions:
        echo = form_of(row.key, version).echo
        for need in row.needs:
            if need.name or version not in need.versions or not isinstance(need, Each | Keep):
                continue
            if isinstance(need, Each) and echo is None:
                raise ValueError(
                    f"{row.key.name} v{version} needs {need.operation.name} of each entry, and its "
                    "answer has no entries"
                )
            if isinstance(need, Keep) and need.shown.count(".") != 1:
                raise ValueError(f"{row.key.name} v{version} keeps {need.shown!r}, not array.field")


def check(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check a request against its row."""
    row = rights.row
    if row.early is not None and (why := row.early(request, rights.context, topics)) is not None:
        return refuse(request, rights, why)
    verdict: Verdict
    if row.own is not None:
        verdict = row.own(request, rights, topics)
    elif row.exempt:
        verdict = _hiding(Verdict(request, None, unchanged), rights, topics)
    else:
        verdict = check_needs(request, rights, topics)
    if rights.reserved and verdict.request is not None:
        return _without_reserved(verdict, rights, topics)
    return verdict


def check_needs(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check a request against those needs of its row that have no name."""
    needs = [
        need
        for need in rights.applying()
        if not need.name and (need.when is None or need.when(request))
    ]
    if not needs:
        name = APIS[rights.row.key].name
        message = f"Not authorized: no rule of {name} covers this request."
        why = Denial(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, message)
        return refuse(request, rights, why)
    asked = [need for need in needs if not isinstance(need, Keep) and not _is_moot(need, rights)]
    if (refusal := _whole_refusal(asked, request, rights)) is not None:
        return refuse(request, rights, refusal)
    return _check_parts(asked, request, rights, topics)


def _is_moot(need: Need, rights: RequestRights) -> bool:
    """Return whether a right on the cluster makes a need moot.

    One on any resource is asked for only when the need does not hold, as in Kafka.
    """
    return need.unless is not None and need.unless.anywhere is None and rights.is_moot(need)


def _whole_refusal(needs: Iterable[Need], request: Any, rights: RequestRights) -> Refusal | None:
    """Return why the whole request is refused, None if it is not.

    The row's ``between`` comes after the first right of the whole request, or alone without one.
    """
    between = rights.row.between
    for need in needs:
        if not isinstance(need, Whole):
            continue
        if (why := whole_denial(need, request, rights)) is not None:
            return why
        if between is not None:
            if (refusal := between(request, rights.context)) is not None:
                return refusal
            between = None
    return None if between is None else between(request, rights.context)


def whole_denial(need: Whole, request: Any, rights: RequestRights) -> Denial | None:
    """Return the denial if a need refuses the whole request, None if it does not."""
    counts: dict[ResourceType, Counter[str | None]] = {}
    for target in in_turns(list(need.find(request))):
        if isinstance(target, int):
            return Denial(target, "The request cannot be authorized as it is.")
        counts.setdefault(target[0], Counter())[target[1]] += 1
    for resource_type, names in counts.items():
        allowed = rights.ask(need, resource_type, names)
        for name in in_turns(names):
            if name not in allowed:
                if rights.is_moot(need):
                    return None
                code = need.code or REFUSAL[resource_type]
                return denial(code, need.operation, resource_type, name)
    return None


def _check_parts(
    needs: Iterable[Need], request: Any, rights: RequestRights, topics: Topics
) -> Verdict:
    """Refuse the entries that are not allowed, and filter the answer if the row says so."""
    form = form_of(rights.row.key, rights.context.api_version)
    request, denials = single_entries(form, request, rights)
    for need in needs:
        if isinstance(need, Each) and form.echo is not None:
            found = entry_denials(need, form.echo, request, rights, topics, denials)
            denials = found | denials
    return _hiding(part(form, request, rights, denials), rights, topics)


def _hiding(verdict: Verdict, rights: RequestRights, topics: Topics) -> Verdict:
    """Return the verdict, with a filter for the answer if the row hides entries."""
    return hiding(verdict, rights, topics) if rights.row.hides else verdict


def filtered(verdict: Verdict, rights: RequestRights, topics: Topics) -> Verdict:
    """Return the verdict with a filter for the answer, also if the row hides no entries."""
    return verdict if rights.row.hides else hiding(verdict, rights, topics)


def hiding(verdict: Verdict, rights: RequestRights, topics: Topics) -> Verdict:
    """Return the verdict with a filter for the answer."""
    if verdict.request is None:
        return verdict

    def hide(response: Any) -> Any:
        return verdict.complete(show(verdict.request, response, rights, topics))

    return verdict._replace(complete=hide)


def _without_reserved(verdict: Verdict, rights: RequestRights, topics: Topics) -> Verdict:
    """Refuse what still names a reserved topic, which a right on the cluster may have let pass."""
    request, key = verdict.request, rights.row.key
    found = reserved_in(request, rights, topics)
    if not found:
        return verdict
    needs = [each for each in rights.applying() if each.when is None or each.when(request)]
    need = min(needs, key=lambda each: ResourceType.TOPIC not in each.types)
    counts: Counter[str | None] = Counter(each.name for each in in_turns(found))
    rights.unreserved(need, ResourceType.TOPIC, counts)
    form = form_of(key, rights.context.api_version)
    echo = form.echo
    is_told = echo is not None and echo.has_codes(APIS[key].response)
    if echo is None or not is_told or not all(each.is_of(echo.asked) for each in in_turns(found)):
        # The answer has no place for the code of such an entry.
        code, name = ErrorCode.TOPIC_AUTHORIZATION_FAILED, found[0].name
        return refuse(request, rights, denial(code, need.operation, ResourceType.TOPIC, name))
    denials = {
        each.position: _entry_denial(
            need.operation, echo, each.entry, ResourceType.TOPIC, each.name
        )
        for each in in_turns(found)
    }
    rest = part(form, request, rights, denials)
    if rest.request is None:
        return refused(verdict.complete(rest.response))
    return verdict._replace(
        request=rest.request, complete=lambda response: verdict.complete(rest.complete(response))
    )


def single_entries(
    form: Form, request: Any, rights: RequestRights
) -> tuple[Any, dict[int, Denial]]:
    """Treat entries that the request repeats as the row's ``repeats`` says.

    Returns the request, without repetitions that count as one entry, and the denials of the entries
    that are refused for being repeated, by their positions.
    """
    if form.echo is None or rights.row.repeats is Repeats.ANSWERED:
        return request, {}
    return _repeated(rights.row.repeats, form.echo, request)


def _repeated(repeats: Repeats, echo: Echo, request: Any) -> tuple[Any, dict[int, Denial]]:
    asked = getattr(request, echo.asked) or ()
    keys = [echo.key_of(entry) for entry in in_turns(asked)]
    counts = Counter(in_turns(keys))
    if len(counts) == len(keys):
        return request, {}
    if repeats is not Repeats.REFUSED:
        first: dict[Any, int] = {}
        for position, key in enumerate(in_turns(keys)):
            first.setdefault(key, position)
        request = without(request, echo.asked, set(range(len(keys))) - set(first.values()))
        keys = list(first)
    if repeats is Repeats.MERGED:
        return request, {}
    why = Denial(ErrorCode.INVALID_REQUEST, "The request names it more than once.")
    return request, {
        position: why for position, key in enumerate(in_turns(keys)) if counts[key] > 1
    }


def entry_denials(
    need: Each,
    echo: Echo,
    request: Any,
    rights: RequestRights,
    topics: Topics,
    refused_already: Iterable[int] = (),
) -> dict[int, Denial]:
    """Return the denials of the entries that a need refuses, by their positions.

    The authorizer is not asked about entries that are ``refused_already``.
    """
    asked = getattr(request, echo.asked) or ()
    over = set(refused_already)
    targets = {
        position: need.find(entry, request, topics)
        for position, entry in enumerate(in_turns(asked))
        if position not in over
    }
    allowed = _allowed(need, asked, targets, rights)
    denials = {}
    for position, target in in_turns(targets.items()):
        if isinstance(target, int):
            denials[position] = Denial(target, ErrorCode(target).name)
        elif target not in allowed:
            denials[position] = _entry_denial(need.operation, echo, asked[position], *target)
    if denials and need.others is not None:
        others = Denial(need.others, "Not attempted, since other parts of the request are refused.")
        return {position: denials.get(position, others) for position in in_turns(range(len(asked)))}
    return denials


def _entry_denial(
    operation: AclOperation, echo: Echo, entry: Any, resource_type: ResourceType, name: str | None
) -> Denial:
    # The message must not have the name of a topic that the client gave by its id.
    is_told = resource_type is ResourceType.CLUSTER or name in echo.key_of(entry)
    shown = name if is_told else BY_ID
    return denial(REFUSAL[resource_type], operation, resource_type, shown)


def _allowed(
    need: Each, asked: Sequence[Any], targets: Mapping[int, Target], rights: RequestRights
) -> set[Target]:
    counts: dict[ResourceType, Counter[str | None]] = {}
    for position, target in in_turns(targets.items()):
        if isinstance(target, tuple):
            weight = len(getattr(asked[position], need.counted)) if need.counted else 1
            counts.setdefault(target[0], Counter())[target[1]] += weight
    return {
        (resource_type, name)
        for resource_type, names in counts.items()
        for name in in_turns(rights.ask(need, resource_type, names))
    }


def part(
    form: Form,
    request: Any,
    rights: RequestRights,
    denials: Mapping[int, Denial],
) -> Verdict:
    """Divide a request into the part that passes and the entries that ``denials`` refuse.

    ``denials`` are by the position of the entry. The refused entries are put back into the answer.
    """
    echo = form.echo
    if echo is None or not denials:
        return Verdict(request, None, unchanged)
    response_class = APIS[rights.row.key].response
    asked = getattr(request, echo.asked)
    refusals = {
        position: echo.refuse(response_class, asked[position], why)
        for position, why in in_turns(denials.items())
    }
    if len(refusals) == len(asked) and not form.top_decides:
        refusing = [refusals[position] for position in in_turns(range(len(asked)))]
        return refused(response_class(**{echo.answer: refusing}, **form.fill))

    def put_back(response: Any) -> Any:
        if form.top_decides and response.error_code:
            return response
        answered = getattr(response, echo.answer)
        setattr(response, echo.answer, echo.merged(asked, refusals, answered))
        return response

    return Verdict(without(request, echo.asked, refusals), None, put_back)
