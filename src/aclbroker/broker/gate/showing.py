"""Takes out of a decoded answer what the session may not see, as `broker.gate.shown` declares it.

The request is the part that was allowed; the refused entries are put back into the answer
afterwards. Nothing here waits for I/O, so a gateway has to resolve the ids of `unnamed` first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final

from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.broker.gate.disclosure import (
    AllOrRefused,
    Along,
    Blanked,
    Echoed,
    Line,
    Listed,
    Operations,
    Refusal,
    Sensitive,
    Tokens,
    Whoever,
)
from aclbroker.broker.gate.places import Place, entries_in, ids_in, owners_in, values_of
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.shown import SHOWN
from aclbroker.broker.gate.viewer import TopicNames, View
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.protocol.tags import drop_unknown_tags
from aclbroker.turns import in_turns

_UNKNOWN_OPERATIONS: Final = -(1 << 31)
HIDDEN_TOPICS: Final = "The group has topics that the principal may not describe."
"""The message of a group that is refused because of its topics."""

Visible = Callable[[Any], bool]
"""Returns whether the session may see an entry."""


def show(request: Any, response: Any, rights: RequestRights, topics: TopicNames) -> Any:
    """Remove from a decoded response what the session may not see; changes and returns it.

    Unknown tagged fields are removed as well, since nothing declares who may see them. Raises
    KeyError for a key that is not in `SHOWN`, and if `SHOWN` has a right that the key's row lacks.
    """
    view = View(request, rights, topics)
    lines = SHOWN[rights.row.key]
    drop_unknown_tags(response)
    for line in lines:
        match line:
            case Echoed():
                _show_echoed(line, [response], [request], view)
            case Listed():
                _show_listed(line, response, view)
            case AllOrRefused():
                _show_all_or_refused(line, response, view)
            case Blanked():
                _blank(line, response, view)
            case Sensitive():
                _hide_sensitive(line, response)
            case Operations():
                _set_operations(line, response, view)
            case Tokens():
                _show_tokens(line, response, view)
            case Along():
                _show_along(line, response, view)
    return response


def unnamed(key: int, response: Any) -> set[bytes]:
    """Return the topic ids in a response whose names `show` needs for its decisions."""
    found: set[bytes] = set()
    for line in SHOWN[key]:
        for roots, place in _places_of_topics(line, response):
            for entry in in_turns(entries_in(roots, place)):
                values = [getattr(entry, name) for name in place.fields]
                if not any(isinstance(value, str) and value for value in values):
                    found.update(value for value in values if isinstance(value, bytes))
    return found - {ZERO_UUID}


def _places_of_topics(line: Line, root: Any) -> Iterator[tuple[Sequence[Any], Place]]:
    """Yield the places of topics that need a right, each with the objects where its path begins."""
    match line:
        case Echoed(resource=ResourceType.TOPIC, all_to=AclOperation()):
            yield [root], line.place
        case Echoed(inside=Echoed() as inside):
            for entry in in_turns(entries_in([root], line.place)):
                yield from _places_of_topics(inside, entry)
        case Listed(resource=ResourceType.TOPIC) | Blanked():
            yield [root], line.place
        case AllOrRefused():
            for place in line.places:
                yield values_of(getattr(root, line.array)), place


def _show_echoed(line: Echoed, roots: Sequence[Any], requests: Sequence[Any], view: View) -> None:
    place = line.place
    if not _asks_for_all(line, requests, view.version):
        _keep(roots, place, _asked(line, requests), None, view)
    elif isinstance(line.all_to, AclOperation) and line.resource is not None:
        logs = line.refusal is not None
        right = _right(line.all_to, line.resource, entries_in(roots, place), place, view, logs=logs)
        _keep(roots, place, right, line.refusal, view)
    elif line.all_to is not Whoever.ASKS:
        _keep(roots, place, lambda _entry: False, None, view)
    elif line.resource is ResourceType.TOPIC and view.rights.reserved:
        _hide_reserved(roots, place, view)
    if line.inside is not None:
        by_id = _requests_by_id(line, requests)
        for entry in in_turns(entries_in(roots, place)):
            [entry_id] = ids_in(place)(entry)
            _show_echoed(line.inside, [entry], by_id[entry_id], view)


def _asks_for_all(line: Echoed, requests: Iterable[Any], version: int) -> bool:
    first = line.asked_places[0]
    array = (*first.owners, first.array)[0]
    return any(line.all_when(request, array, version) for request in requests)


def _asked(line: Echoed, requests: Sequence[Any]) -> Visible:
    asked: set[Any] = set()
    for place in line.asked_places:
        asked.update(chain.from_iterable(map(ids_in(place), in_turns(entries_in(requests, place)))))
    ids_of = ids_in(line.place)

    def is_asked(entry: Any) -> bool:
        ids = ids_of(entry)
        # An entry with neither a name nor an id discloses nothing.
        return not ids or not asked.isdisjoint(ids)

    return is_asked


def _requests_by_id(line: Echoed, requests: Sequence[Any]) -> Mapping[Any, list[Any]]:
    found: dict[Any, list[Any]] = defaultdict(list)
    for place in line.asked_places:
        for entry in in_turns(entries_in(requests, place)):
            for each in ids_in(place)(entry):
                found[each].append(entry)
    return found


def _right(
    operation: AclOperation,
    resource_type: ResourceType,
    entries: Collection[Any],
    place: Place,
    view: View,
    *,
    logs: bool = False,
) -> Visible:
    names = (view.name_of(entry, place) for entry in in_turns(entries))
    seen = view.allowed(operation, resource_type, names, logs=logs)
    return lambda entry: view.name_of(entry, place) in seen


def _hide_reserved(
    roots: Sequence[Any], place: Place, view: View, is_topic: Visible = lambda _entry: True
) -> None:
    """Take out topics that are reserved, where no right on a topic is needed."""
    reserved = view.rights.reserved

    def visible(entry: Any) -> bool:
        return not is_topic(entry) or view.name_of(entry, place) not in reserved

    _keep(roots, place, visible, None, view)


def _show_along(line: Along, response: Any, view: View) -> None:
    if line.topics is not None and view.rights.reserved:
        for place in line.places:
            _hide_reserved([response], place, view, line.topics)


def _show_listed(line: Listed, response: Any, view: View) -> None:
    place = line.place
    right = _right(line.to, line.resource, entries_in([response], place), place, view)
    _keep([response], place, right, None, view)


def _keep(
    roots: Sequence[Any],
    place: Place,
    visible: Visible,
    refusal: Refusal | None,
    view: View,
) -> None:
    """Remove or refuse the entries of each array that are not visible; a struct becomes null."""
    for owner in in_turns(owners_in(roots, place)):
        hidden = [
            entry
            for entry in in_turns(values_of(getattr(owner, place.array)))
            if not visible(entry)
        ]
        if refusal is not None:
            for entry in in_turns(hidden):
                _refuse(entry, place, refusal, view)
        elif hidden:
            value = getattr(owner, place.array)
            is_array = isinstance(value, list | tuple)
            shown = [entry for entry in in_turns(value) if visible(entry)] if is_array else None
            setattr(owner, place.array, shown)


def _refuse(entry: Any, place: Place, refusal: Refusal, view: View) -> None:
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if view.name_of(entry, place) is None:
        code = ErrorCode.UNKNOWN_TOPIC_ID
    refused = [
        type(inner)(
            **{refusal.key: getattr(inner, refusal.key), "error_code": code}, **refusal.fill
        )
        for inner in in_turns(getattr(entry, refusal.array))
    ]
    setattr(entry, refusal.array, refused)


def _show_all_or_refused(line: AllOrRefused, response: Any, view: View) -> None:
    groups = getattr(response, line.array)
    topics = [
        {
            view.name_of(topic, place)
            for place in line.places
            for topic in in_turns(entries_in([group], place))
        }
        for group in in_turns(groups)
    ]
    seen = view.allowed(line.to, line.resource, set().union(*topics))
    shown = [
        group
        if names <= seen
        else type(group)(
            error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED,
            error_message=HIDDEN_TOPICS,
            **{line.key: getattr(group, line.key)},
        )
        for group, names in zip(in_turns(groups), topics, strict=True)
    ]
    setattr(response, line.array, shown)


def _blank(line: Blanked, response: Any, view: View) -> None:
    place = line.place
    entries = list(filter(line.when(view.request), in_turns(entries_in([response], place))))
    may_see = _right(line.to, line.resource, entries, place, view)
    for entry in in_turns(entries):
        if not may_see(entry):
            for name, value in line.blanks.items():
                setattr(entry, name, value)


def _hide_sensitive(line: Sensitive, response: Any) -> None:
    for configuration in in_turns(entries_in([response], line.place)):
        if configuration.is_sensitive:
            for value in line.places:
                for owner in in_turns(owners_in([configuration], value)):
                    setattr(owner, value.array, None)


def _set_operations(line: Operations, response: Any, view: View) -> None:
    wanted = line.wanted is None or getattr(view.request, line.wanted)
    for owner in in_turns(owners_in([response], line.place)):
        value = _operations(line, owner, view) if wanted else _UNKNOWN_OPERATIONS
        setattr(owner, line.place.array, value)


def _operations(line: Operations, owner: Any, view: View) -> int:
    name = getattr(owner, line.key) if line.key else CLUSTER_NAME
    # As in Kafka, an entry with an error has no operations, unless it is a topic.
    failed = line.resource is not ResourceType.TOPIC and owner.error_code
    if failed or name is None:
        return _UNKNOWN_OPERATIONS
    is_cluster = line.resource is ResourceType.CLUSTER
    if is_cluster and not view.allowed(AclOperation.DESCRIBE, line.resource, [name]):
        return 0
    return view.rights.operations(line.resource, name)


def _show_tokens(line: Tokens, response: Any, view: View) -> None:
    tokens = getattr(response, line.array)
    owners = view.request.owners
    if owners is not None:
        asked = {_principal(owner) for owner in in_turns(owners)}
        tokens = [token for token in in_turns(tokens) if not asked.isdisjoint(_concerned(token))]
    own = {view.rights.context.session.principals[0]}
    others = [token for token in in_turns(tokens) if own.isdisjoint(_concerned(token))]
    seen = view.allowed(
        AclOperation.DESCRIBE,
        ResourceType.DELEGATION_TOKEN,
        (token.token_id for token in in_turns(others)),
    )
    others = [token for token in in_turns(others) if token.token_id not in seen]
    described = view.allowed(
        AclOperation.DESCRIBE_TOKENS,
        ResourceType.USER,
        (_principal(token) for token in in_turns(others)),
    )
    hidden = {token.token_id for token in in_turns(others) if _principal(token) not in described}
    setattr(
        response, line.array, [token for token in in_turns(tokens) if token.token_id not in hidden]
    )


def _concerned(token: Any) -> set[str]:
    """Return the principals whom a token concerns: its owner, its requester and its renewers."""
    requester = f"{token.token_requester_principal_type}:{token.token_requester_principal_name}"
    return {_principal(token), requester, *(_principal(renewer) for renewer in token.renewers)}


def _principal(entry: Any) -> str:
    return f"{entry.principal_type}:{entry.principal_name}"
