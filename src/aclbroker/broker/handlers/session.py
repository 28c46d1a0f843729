"""ApiVersions, and the refusal of SASL requests from a session that may not authenticate now."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from aclbroker.broker.backends.backend import Backend, KeyVersions
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.compile.shared import SharedList
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import (
    ApiVersion,
    ApiVersionsRequest,
    ApiVersionsResponse,
    FinalizedFeatureKey,
    SupportedFeatureKey,
)
from aclbroker.protocol.messages.sasl_authenticate import (
    SaslAuthenticateRequest,
    SaslAuthenticateResponse,
)
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse

_FIRST_VERSION_WITH_SOFTWARE: Final = 3
_SOFTWARE: Final = re.compile(r"[a-zA-Z0-9]([a-zA-Z0-9.-]*[a-zA-Z0-9])?")


@lru_cache
def _ranges(answered_here: Sequence[int], listed: Sequence[KeyVersions]) -> Sequence[ApiVersion]:
    """Return the versions of all keys; all answers share the list, as each client asks first."""
    own = (KeyVersions(key, APIS[key].versions[0], APIS[key].versions[-1]) for key in answered_here)
    return SharedList(ApiVersion(*versions) for versions in sorted({*own, *listed}))


_FIRST_VERSION_WITH_LEVEL_0: Final = 4


def answer_api_versions(
    version: int,
    request: ApiVersionsRequest | None,
    answered_here: Sequence[int],
    backend: Backend,
) -> ApiVersionsResponse:
    """Answer ApiVersions with the keys that are ``answered_here`` and those of the backend.

    The answer has the versions of each key, and the features of the backend.

    ``request`` is None if its version is unknown. The answer, which the caller encodes at version
    0, then has UNSUPPORTED_VERSION and the range of ApiVersions itself, so that the client can try
    again (KIP-511). From version 3 on, a malformed name or version of the client's software is
    refused with INVALID_REQUEST.
    """
    if request is None:
        return ApiVersionsResponse(
            ErrorCode.UNSUPPORTED_VERSION, _ranges((ApiKey.API_VERSIONS,), ())
        )
    if version >= _FIRST_VERSION_WITH_SOFTWARE and not (
        _SOFTWARE.fullmatch(request.client_software_name)
        and _SOFTWARE.fullmatch(request.client_software_version)
    ):
        return ApiVersionsResponse(ErrorCode.INVALID_REQUEST)
    response = ApiVersionsResponse(api_keys=_ranges(answered_here, backend.listed))
    if backend.features:
        # Clients of version 3 cannot read that a level 0 is supported.
        least = 0 if version >= _FIRST_VERSION_WITH_LEVEL_0 else 1
        response.finalized_features_epoch = backend.features_epoch
        response.supported_features = [
            SupportedFeatureKey(name, max(least, feature.lowest), feature.highest)
            for name, feature in backend.features.items()
            if feature.highest >= least
        ]
        response.finalized_features = [
            FinalizedFeatureKey(name, feature.level, feature.level)
            for name, feature in backend.features.items()
            if feature.level
        ]
    return response


def api_versions(
    services: Services, rights: RequestRights, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Answer the ApiVersions request of an authenticated session."""
    version = rights.context.api_version
    return answer_api_versions(version, request, services.answered_here, services.backend)


def sasl_handshake(
    _services: Services, _rights: RequestRights, _request: SaslHandshakeRequest
) -> SaslHandshakeResponse:
    """Refuse a handshake, since the listener has no SASL or the session is authenticated."""
    return SaslHandshakeResponse(ErrorCode.ILLEGAL_SASL_STATE)


def sasl_authenticate(
    _services: Services, _rights: RequestRights, _request: SaslAuthenticateRequest
) -> SaslAuthenticateResponse:
    """Refuse a SASL token that does not follow a handshake."""
    message = "SaslAuthenticate is answered only between a SaslHandshake and the login."
    return SaslAuthenticateResponse(ErrorCode.ILLEGAL_SASL_STATE, message)
