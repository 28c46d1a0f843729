"""Fetch: full, or within a session (KIP-227); a right that is revoked meanwhile holds."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.forwarding import later, read_answer, send
from aclbroker.broker.backends.upstream.kept_session import (
    FETCH,
    KeptSession,
    is_same,
    keep_session,
)
from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.conditions import FULL_FETCH, is_follower
from aclbroker.broker.gate.echo import Denial
from aclbroker.broker.gate.fetching import READ_TOPIC
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.fetch import FetchRequest, FetchResponse
from aclbroker.protocol.primitives import Frame
from aclbroker.turns import in_turns

_NOT_A_BROKER: Final = Denial(
    ErrorCode.TOPIC_AUTHORIZATION_FAILED, "A gateway does not forward the Fetch of a follower."
)

Sessions = dict[int, KeptSession]
"""The fetch sessions of a client's connection, by their ids."""


def forward_fetch(
    backend: UpstreamBackend, rights: RequestRights, request: FetchRequest
) -> Later | FetchResponse:
    """Forward a Fetch, and keep the partitions of its session.

    A session that another connection has begun is unknown: clients begin another one when they
    connect again.
    """
    version = rights.context.api_version
    if is_follower(request):
        refused: FetchResponse = form_of(ApiKey.FETCH, version).refuse(
            FetchResponse, request, _NOT_A_BROKER
        )
        return refused
    sessions = backend.pipelines[rights.context.session.connection].fetch_sessions
    session = sessions.get(request.session_id)
    before = rights.checked_with
    if request.session_epoch in FULL_FETCH:
        if session is None and request.session_id:
            request = dataclasses.replace(request, session_id=0)
        sessions.pop(request.session_id, None)
        finish = partial(begun, backend, rights, request, sessions, before)
    elif session is None or session.is_too_large:
        sessions.pop(request.session_id, None)
        return FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    else:
        request = session.continued(rights, request)
        finish = partial(continued, rights, session, sessions, request.session_id)
    read = partial(read_fetch, backend, rights, request, before, finish)
    return later(backend, rights, send(backend, rights, request, version), read)


def begun(
    backend: UpstreamBackend,
    rights: RequestRights,
    request: FetchRequest,
    sessions: Sessions,
    before: object,
    response: FetchResponse,
) -> None:
    """Note the session that an answer begins, if it begins one."""
    if response.session_id and not response.error_code:
        session = KeptSession(FETCH, backend.directory)
        session.begin(rights.asked, request, before)
        keep_session(sessions, response.session_id, session)


def continued(
    rights: RequestRights,
    session: KeptSession,
    sessions: Sessions,
    session_id: int,
    response: FetchResponse,
) -> None:
    """Add the refused topics to the answer of a session; forget a session that has ended."""
    if response.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
        sessions.pop(session_id, None)
    elif not response.error_code:
        refusals = session.refusals(rights.asked.topics)
        response.responses = [*in_turns(response.responses), *refusals]


def read_fetch(
    backend: UpstreamBackend,
    rights: RequestRights,
    request: FetchRequest,
    before: object,
    finish: Callable[[FetchResponse], None],
    frame: Frame,
) -> Any:
    """Return the answer to a Fetch, without the records of topics whose right was revoked."""
    response = read_answer(backend, rights, request, rights.context.api_version, frame)
    if not is_same(before, rights.basis(*READ_TOPIC)):
        names = {
            topic.topic or backend.directory.names.get(topic.topic_id)
            for topic in in_turns(response.responses)
        }
        allowed = rights.allowed("session", names)
        for topic in in_turns(response.responses):
            name = topic.topic or backend.directory.names.get(topic.topic_id)
            if name not in allowed:
                code = ErrorCode.TOPIC_AUTHORIZATION_FAILED if name else ErrorCode.UNKNOWN_TOPIC_ID
                topic.partitions = [
                    FETCH.refused(partition.partition_index, code)
                    for partition in in_turns(topic.partitions)
                ]
    finish(response)
    return response
