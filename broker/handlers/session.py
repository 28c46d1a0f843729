"""ApiVersions, and SASL requests of a session that cannot authenticate again."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.compile.shared import SharedList
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
)
from aclbroker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_FIRST_VERSION_WITH_SOFTWARE: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@lru_cache
def _ranges(*keys: int) -> Sequence[ApiVersion]:
    """List the versions of keys; one list for all answers, since every client begins with it."""
    versions = ((key, APIS[key].versions) for key in keys)
    return SharedList(ApiVersion(key, known[0], known[-1]) for key, known in versions)


def answer_api_versions(
    version: int, request: ApiVersionsRequest | None, keys: Iterable[int]
) -> ApiVersionsResponse:
    """Answer ApiVersions with the ``keys`` that are answered, and their versions.

    ``request`` is None when its version is unknown: the answer, to be encoded as version 0, then
    has error 35 and the range of ApiVersions itself, for the client to try again (KIP-511). From
    version 3 on the client's software name and version must have their form, or the code is 42.
    """
    if request is None:
        return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION, _ranges(ApiKey.API_VERSIONS))
    if version >= _FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
    return ApiVersionsResponse(api_keys=_ranges(*keys))


def sasl_handshake(
    _services: Services, _rights: RequestRights, _request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse a handshake: the listener has no SASL, or the session is authenticated."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    _services: Services, _rights: RequestRights, _request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse a token outside the exchange that began with a handshake."""
    message = "SaslAuthenticate is answered only between a SaslHandshake and the login."
    return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, message)
