"""Requests that are answered with an error before anybody looks at what they ask for."""

from __future__ import annotations

import dataclasses
from typing import Any, Final

from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.echo import Denial
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.header import api_of, decode_request_header
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ZERO_UUID, Frame, TooMany
from aclbroker.protocol.wire import Request, response_frame

_FETCH_BY_TOPIC_ID: Final = 13

WAITS: Final = "This broker has not read its ACLs yet: their store is out of reach. Try again."
"""What clients of the whole broker are told while it waits."""

_COORDINATED: Final = (
    ApiKey.FIND_COORDINATOR,
    *(ApiKey.JOIN_GROUP, ApiKey.HEARTBEAT, ApiKey.LEAVE_GROUP, ApiKey.SYNC_GROUP),
    *(ApiKey.OFFSET_COMMIT, ApiKey.OFFSET_FETCH, ApiKey.OFFSET_DELETE, ApiKey.TXN_OFFSET_COMMIT),
    *(ApiKey.DESCRIBE_GROUPS, ApiKey.LIST_GROUPS, ApiKey.DELETE_GROUPS),
    *(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.CONSUMER_GROUP_DESCRIBE),
    *(ApiKey.SHARE_GROUP_HEARTBEAT, ApiKey.SHARE_GROUP_DESCRIBE),
    *(ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.ADD_OFFSETS_TO_TXN),
    *(ApiKey.END_TXN, ApiKey.DESCRIBE_TRANSACTIONS, ApiKey.LIST_TRANSACTIONS),
)
_LED: Final = (
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.LIST_OFFSETS, ApiKey.OFFSET_FOR_LEADER_EPOCH),
    *(ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE),
)
_NOT_YET: Final[dict[int, ErrorCode]] = {
    **dict.fromkeys(_COORDINATED, ErrorCode.COORDINATOR_NOT_AVAILABLE),
    **dict.fromkeys(_LED, ErrorCode.NOT_LEADER_OR_FOLLOWER),
    ApiKey.METADATA: ErrorCode.LEADER_NOT_AVAILABLE,
}
"""What clients try again after, in each API; any other has a request that timed out."""

_NOTHING: Final[dict[str, Any]] = {"string": "", "uuid": ZERO_UUID}
"""What an entry of a kind is that names nothing; numbers are 0."""


class RequestRefused(Exception):
    """A request whose ``answer``, a frame, is an error that the log is to tell of, too."""

    def __init__(self, reason: str, answer: bytes) -> None:
        super().__init__(reason)
        self.answer = answer


def error_response(request: Request, why: Denial) -> Any:
    """Return the response that answers a whole request with an error, as the key does that."""
    key, version = request.header.api_key, request.header.api_version
    response = form_of(key, version).refuse(request.api.response, request.message, why)
    # Kafka has more forms of an error than of a refusal for want of rights.
    if key == ApiKey.FETCH:
        response.error_code, response.session_id = why.code, request.message.session_id
        if version >= _FETCH_BY_TOPIC_ID:
            response.responses = []
    elif key == ApiKey.METADATA:
        response.error_code = why.code
        for topic in response.topics:
            topic.name = topic.name or ""
    return response


def not_yet(request: Request, why: str) -> Any:
    """Return the response to a request that cannot be answered until the ACLs are there.

    ``why`` is what its client is told. Its code is one after which clients try again. Metadata has
    no brokers, so that a client which has just begun waits, and asks nothing else before there are
    some.
    """
    key = request.header.api_key
    return error_response(request, Denial(_NOT_YET.get(key, ErrorCode.REQUEST_TIMED_OUT), why))


def unread(frame: Frame, why: TooMany) -> RequestRefused:
    """Return the refusal of a request that has too many entries or tagged fields to be read.

    Where an answer has its codes in entries, this one has a single entry, which names nothing.
    Raises `ProtocolError` if not even the header can be read.
    """
    key, _ = api_of(frame)
    api, reason = APIS[key], str(why)
    header = decode_request_header(api, frame)
    request = Request(api, header, _of_one_entry(api.request))
    response = error_response(request, Denial(ErrorCode.INVALID_REQUEST, reason))
    answer = response_frame(api, header.api_version, header.correlation_id, response)
    return RequestRefused(reason, answer)


def _of_one_entry(cls: Any) -> Any:
    """Return an object of a message's class with one entry in each array, and nothing in these."""
    values: dict[str, Any] = {}
    for field in dataclasses.fields(cls):
        spec = field.metadata.get("spec")
        kind = None if spec is None else spec.kind
        if isinstance(kind, list):
            [entry] = kind
            is_struct = isinstance(entry, type)
            only = _of_one_entry(entry) if is_struct else _NOTHING.get(entry, 0)
            values[field.name] = [only]
    return cls(**values)
