"""What is answered here: one function an API key, from a decoded request to a response."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from broker.acl.authorizer import RequestContext
from broker.handlers.acls import create_acls, delete_acls, describe_acls
from broker.handlers.cluster import describe_cluster, metadata
from broker.handlers.produce import produce
from broker.handlers.services import Handler, Services
from broker.handlers.session import answer_api_versions, sasl_authenticate, sasl_handshake
from protocol.messages import ApiKey
from protocol.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse


def api_versions(
    _services: Services, context: RequestContext, request: ApiVersionsRequest
) -> ApiVersionsResponse:
    """Answer ApiVersions of an authenticated session: with the keys below."""
    return answer_api_versions(context.api_version, request, HANDLERS)


HANDLERS: Final[Mapping[int, Handler]] = {
    ApiKey.PRODUCE: produce,
    ApiKey.METADATA: metadata,
    ApiKey.SASL_HANDSHAKE: sasl_handshake,
    ApiKey.API_VERSIONS: api_versions,
    ApiKey.DESCRIBE_ACLS: describe_acls,
    ApiKey.CREATE_ACLS: create_acls,
    ApiKey.DELETE_ACLS: delete_acls,
    ApiKey.SASL_AUTHENTICATE: sasl_authenticate,
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
}
