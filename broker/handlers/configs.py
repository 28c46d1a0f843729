"""DescribeConfigs and ListConfigResources; only the broker itself has settings to show."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.gate.conditions import (
    BROKER_CONFIG,
    BROKER_LOGGER_CONFIG,
    CLIENT_METRICS_CONFIG,
    GROUP_CONFIG,
    TOPIC_CONFIG,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.services import Services
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from aclbroker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from aclbroker.turns import in_turns

_STATIC_BROKER_CONFIG: Final = 4
_STRING: Final = 2
_MOST_SETTINGS: Final = 20_000
"""How many settings an answer may have; a request may name this node a million times."""


def describe_configs(
    services: Services, rights: RequestRights, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Answer with the settings of this node, all marked as read-only and without secrets."""
    room = _MOST_SETTINGS
    results = []
    for resource in in_turns(request.resources):
        result = _described(services, rights, resource)
        room -= len(result.configs)
        if room < 0:
            code, message = ErrorCode.INVALID_REQUEST, "The answer has too many settings already."
            result = DescribeConfigsResult(
                code, message, resource.resource_type, resource.resource_name
            )
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _described(
    services: Services, rights: RequestRights, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    code = ErrorCode.NONE
    message: str | None = None
    settings: list[DescribeConfigsResourceResult] = []
    name = resource.resource_name
    if resource.resource_type == TOPIC_CONFIG and not services.catalog.exists(name):
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    elif resource.resource_type in (BROKER_CONFIG, BROKER_LOGGER_CONFIG):
        node_id = str(services.node(rights).node_id)
        if name not in ("", node_id):
            code = ErrorCode.INVALID_REQUEST
            message = f"This broker is {node_id}, not {shown_name(name)}."
        elif name and resource.resource_type == BROKER_CONFIG:
            settings = _settings(services, resource)
    return DescribeConfigsResult(
        code, message, resource.resource_type, resource.resource_name, settings
    )


def _settings(
    services: Services, resource: DescribeConfigsResource
) -> list[DescribeConfigsResourceResult]:
    asked = resource.configuration_keys
    keys = None if asked is None else set(in_turns(asked))
    return [
        DescribeConfigsResourceResult(
            name, value, read_only=True, config_source=_STATIC_BROKER_CONFIG, config_type=_STRING
        )
        for name, value in services.settings.items()
        if keys is None or name in keys
    ]


def not_altered(services: Services, entry: Any) -> ErrorCode:
    """Return why a resource's settings are not altered."""
    if entry.resource_type == TOPIC_CONFIG and not services.catalog.exists(entry.resource_name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.POLICY_VIOLATION


def list_config_resources(
    services: Services, rights: RequestRights, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List all nodes and the declared topics and groups; there are no client metrics resources."""
    nodes = [str(node.node_id) for node in services.nodes(rights)]
    named: dict[int, list[str]] = {
        BROKER_CONFIG: nodes,
        BROKER_LOGGER_CONFIG: nodes,
        CLIENT_METRICS_CONFIG: [],
        TOPIC_CONFIG: list(services.catalog.topics),
        GROUP_CONFIG: list(services.catalog.groups),
    }
    # Version 0 (KIP-714) asks for client metrics resources only.
    supported = named if rights.context.api_version else {CLIENT_METRICS_CONFIG: []}
    types = dict.fromkeys(request.resource_types or supported)
    if not types.keys() <= supported.keys():
        return ListConfigResourcesResponse(error_code=ErrorCode.UNSUPPORTED_VERSION)
    return ListConfigResourcesResponse(
        config_resources=[
            ConfigResource(name, kind)
            for kind in in_turns(types)
            for name in in_turns(named.get(kind, ()))
        ]
    )
