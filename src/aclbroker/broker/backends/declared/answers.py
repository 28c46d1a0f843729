"""Makes the handlers of most API keys, whose answers repeat the request and add error codes.

How an answer repeats its request is declared in `broker.gate.answers`. A handler therefore needs
only one code, or a function that returns the code of each entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aclbroker.broker.backends.backend import BackendHandler
from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.turns import in_turns

STANDALONE: Final = (
    "aclbroker keeps ACLs and no data: the request was allowed, and what it asks for cannot be "
    "kept here. Topics and groups are those of aclbroker.catalog.topics and "
    "aclbroker.catalog.groups."
)
"""The error message that says why this broker cannot store something."""

_MESSAGES: Final = {
    ErrorCode.POLICY_VIOLATION: STANDALONE,
    ErrorCode.TOPIC_DELETION_DISABLED: STANDALONE,
    ErrorCode.INVALID_PARTITIONS: "The topic has as many partitions already, or more.",
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "There is no such topic or partition.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "This broker coordinates no groups and transactions.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such group.",
}


def because(code: ErrorCode) -> Denial:
    """Return an error code together with its message."""
    return Denial(code, _MESSAGES.get(code, code.name))


def with_code(code: ErrorCode, message: str | None = None) -> BackendHandler:
    """Return a handler that answers every request with one code, where a refusal has its code.

    ``message`` says why, in place of what is said of that code elsewhere.
    """
    denial = because(code) if message is None else Denial(code, message)

    def answer(_backend: DeclaredBackend, rights: RequestRights, request: Any) -> Any:
        key, version = rights.context.api_key, rights.context.api_version
        return form_of(key, version).refuse(APIS[key].response, request, denial)

    return answer


def with_codes(code_of: Callable[[DeclaredBackend, Any], ErrorCode]) -> BackendHandler:
    """Return a handler that answers each entry of a request with the code of ``code_of``."""

    def answer(backend: DeclaredBackend, rights: RequestRights, request: Any) -> Any:
        key, version = rights.context.api_key, rights.context.api_version
        form = form_of(key, version)
        response = APIS[key].response
        echoed = form.echo
        if echoed is None:
            raise TypeError(f"{APIS[key].name} v{version} has no entries to answer")
        entries = [
            echoed.refuse(response, entry, because(code_of(backend, entry)))
            for entry in in_turns(getattr(request, echoed.asked) or ())
        ]
        return response(**{echoed.answer: entries})

    return answer


def by_topic(known: ErrorCode, field: str = "name") -> BackendHandler:
    """Return a handler that answers each entry of a request according to its topic.

    The entry of a declared topic gets the code ``known``, any other UNKNOWN_TOPIC_OR_PARTITION.
    ``field`` is the field with the topic's name.
    """

    def code_of(backend: DeclaredBackend, entry: Any) -> ErrorCode:
        if backend.catalog.exists(topic_name(backend, entry, field)):
            return known
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return with_codes(code_of)


def empty(_backend: DeclaredBackend, rights: RequestRights, _request: Any) -> Any:
    """Answer with a response whose fields all have their defaults: nothing was found."""
    return APIS[rights.context.api_key].response()


def topic_name(backend: DeclaredBackend, entry: Any, field: str = "name") -> str:
    """Return the name of the topic that an entry names directly or by its id.

    Returns "" for an id that no declared topic has.
    """
    if isinstance(entry, str):
        return entry
    topic_id = getattr(entry, "topic_id", ZERO_UUID)
    if topic_id != ZERO_UUID:
        return backend.catalog.name_of(topic_id) or ""
    return getattr(entry, field) or ""
