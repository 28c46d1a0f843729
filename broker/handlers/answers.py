"""Words for standalone answers: what a broker without data says of what it was asked.

Most answers repeat their request with a code, and `gate.answers` says how an answer repeats its
request. So an answer here is a code, or a code for each entry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Handler, Services
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ZERO_UUID

STANDALONE: Final = (
    "This broker keeps ACLs and no data: it runs standalone. Gateway mode "
    "(aclbroker.upstream.bootstrap.servers) puts it in front of a cluster that does."
)
"""Why something cannot be kept, for error messages."""

_MESSAGES: Final = {
    ErrorCode.POLICY_VIOLATION: STANDALONE,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION: "There is no such topic or partition.",
    ErrorCode.COORDINATOR_NOT_AVAILABLE: "This broker coordinates no groups and transactions.",
    ErrorCode.GROUP_ID_NOT_FOUND: "There is no such group.",
}


def because(code: ErrorCode) -> Denial:
    """Return a code with its message."""
    return Denial(code, _MESSAGES.get(code, code.name))


def with_code(code: ErrorCode) -> Handler:
    """Answer each request with a code, in the places where a refusal has its own."""

    def answer(_services: Services, rights: RequestRights, request: Any) -> Any:
        key, version = rights.context.api_key, rights.context.api_version
        return form_of(key, version).refuse(APIS[key].response, request, because(code))

    return answer


def with_codes(code_of: Callable[[Services, Any], ErrorCode]) -> Handler:
    """Answer each entry of a request with a code of its own."""

    def answer(services: Services, rights: RequestRights, request: Any) -> Any:
        key, version = rights.context.api_key, rights.context.api_version
        form = form_of(key, version)
        response = APIS[key].response
        echoed = form.echo
        if echoed is None:
            raise TypeError(f"{APIS[key].name} v{version} has no entries to answer")
        entries = [
            echoed.refuse(response, entry, because(code_of(services, entry)))
            for entry in getattr(request, echoed.asked) or ()
        ]
        return response(**{echoed.answer: entries})

    return answer


def by_topic(known: ErrorCode, field: str = "name") -> Handler:
    """Answer each entry by its topic: ``known`` for a declared one, else that there is none."""

    def code_of(services: Services, entry: Any) -> ErrorCode:
        if services.catalog.exists(topic_name(services, entry, field)):
            return known
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    return with_codes(code_of)


def empty(_services: Services, rights: RequestRights, _request: Any) -> Any:
    """Answer that there is nothing."""
    return APIS[rights.context.api_key].response()


def topic_name(services: Services, entry: Any, field: str = "name") -> str:
    """Return the name of an entry's topic, given by name or by id."""
    if isinstance(entry, str):
        return entry
    topic_id = getattr(entry, "topic_id", ZERO_UUID)
    if topic_id != ZERO_UUID:
        return services.catalog.name_of(topic_id) or ""
    return getattr(entry, field) or ""
