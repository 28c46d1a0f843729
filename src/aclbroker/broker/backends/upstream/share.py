"""ShareFetch and ShareAcknowledge (KIP-932): topics without a right leave the session."""

from __future__ import annotations

from functools import partial
from typing import Any, Final

from aclbroker.broker.backends.backend import Later
from aclbroker.broker.backends.upstream.backend import UpstreamBackend
from aclbroker.broker.backends.upstream.forwarding import forward, later, read_answer, send
from aclbroker.broker.backends.upstream.kept_session import (
    SHARE_FETCH,
    KeptSession,
    keep_session,
)
from aclbroker.broker.backends.upstream.share_members import Beginning
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.share_acknowledge import ShareAcknowledgeRequest
from aclbroker.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from aclbroker.protocol.primitives import Frame
from aclbroker.turns import in_turns

_BEGINS: Final = 0
_ENDS: Final = -1
"""The epochs of requests that begin a session and that end one."""


def forward_share_fetch(
    backend: UpstreamBackend, rights: RequestRights, request: ShareFetchRequest
) -> Later | ShareFetchResponse:
    """Forward a ShareFetch, and keep the partitions of its session.

    A topic whose right was revoked is forgotten upstream, so that no more of its records are
    acquired. Those that were acquired are released when their lock ends.

    A session that another connection has begun is unknown, because the broker would acquire records
    of its topics, on which this client may have no right. So is one that another client has begun
    anew meanwhile.
    """
    sessions = backend.pipelines[rights.context.session.connection].share_sessions
    key = request.group_id, request.member_id
    session = sessions.pop(key, None)
    epoch = request.share_session_epoch
    is_own = backend.share_members.has_begun(key, rights)
    is_known = session is not None and not session.is_too_large
    if not (is_known and is_own) and epoch not in (_BEGINS, _ENDS):
        return ShareFetchResponse(error_code=ErrorCode.SHARE_SESSION_NOT_FOUND)
    beginning = None
    if epoch == _BEGINS:
        beginning = backend.share_members.begin(key, rights)
        session = KeptSession(SHARE_FETCH, backend.directory)
        session.begin(rights.asked, request, rights.checked_with)
    elif session is not None and epoch != _ENDS:
        request = session.continued(rights, request)
    if session is not None and epoch != _ENDS:
        keep_session(sessions, key, session)
    read = partial(_read, backend, rights, request, session, beginning)
    sent = send(backend, rights, request, rights.context.api_version)
    return later(backend, rights, sent, read)


def forward_share_acknowledge(
    backend: UpstreamBackend, rights: RequestRights, request: ShareAcknowledgeRequest
) -> Later:
    """Forward a ShareAcknowledge; the last of a session ends it."""
    if request.share_session_epoch == _ENDS:
        sessions = backend.pipelines[rights.context.session.connection].share_sessions
        sessions.pop((request.group_id, request.member_id), None)
    return forward(backend, rights, request)


def _read(
    backend: UpstreamBackend,
    rights: RequestRights,
    request: ShareFetchRequest,
    session: KeptSession | None,
    beginning: Beginning | None,
    frame: Frame,
) -> Any:
    """Return the answer to a ShareFetch, with the refusals of topics of its session."""
    response: ShareFetchResponse = read_answer(
        backend, rights, request, rights.context.api_version, frame
    )
    if response.error_code:
        return response
    if beginning is not None:
        beginning.is_confirmed = True
    if not rights.allowed("member", (request.group_id,)):
        # The right to read the group was revoked while the broker waited for records.
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
        for topic in in_turns(response.responses):
            topic.partitions = [
                SHARE_FETCH.refused(each.partition_index, code) for each in topic.partitions
            ]
    elif session is not None and request.share_session_epoch != _BEGINS:
        refusals = session.refusals(rights.asked.topics)
        response.responses = [*in_turns(response.responses), *refusals]
    return response
