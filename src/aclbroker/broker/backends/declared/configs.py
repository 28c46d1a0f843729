"""DescribeConfigs and ListConfigResources; only the broker itself has settings to show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.broker.backends.declared.backend import DeclaredBackend
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.kafka_settings import PASSWORD, STRING, KafkaSetting, kafka_settings
from aclbroker.broker.gate.conditions import (
    BROKER_CONFIG,
    BROKER_LOGGER_CONFIG,
    CLIENT_METRICS_CONFIG,
    GROUP_CONFIG,
    TOPIC_CONFIG,
)
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from aclbroker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from aclbroker.turns import in_turns

_STATIC_BROKER_CONFIG: Final = 4
_DEFAULT_CONFIG: Final = 5
_IDS: Final = ("node.id", "broker.id")
_OWN: Final = KafkaSetting(STRING, None)
_MOST_SETTINGS: Final = 20_000
"""How many settings an answer may have; a request may name this node a million times."""


def describe_configs(
    backend: DeclaredBackend, rights: RequestRights, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Answer with the settings of this node, all marked as read-only and without secrets.

    As in Kafka, the answer has all settings of a broker. A setting that is not configured has this
    broker's default, or Kafka's default if this broker does not use the setting.
    """
    room = _MOST_SETTINGS
    results = []
    for resource in in_turns(request.resources, 1):
        result = DescribeConfigsResult(0, None, resource.resource_type, resource.resource_name, [])
        results.append(result)
        result.error_code, result.error_message = _refusal(backend, rights, resource)
        if result.error_code or resource.resource_type != BROKER_CONFIG:
            continue
        if resource.resource_name and room > 0:
            result.configs = _settings(backend, rights, request, resource)
            room -= len(result.configs)
        elif resource.resource_name:
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "The answer has too many settings already."
    return DescribeConfigsResponse(results=results)


def _refusal(
    backend: DeclaredBackend, rights: RequestRights, resource: DescribeConfigsResource
) -> tuple[ErrorCode, str | None]:
    name = resource.resource_name
    if resource.resource_type == TOPIC_CONFIG and not backend.catalog.exists(name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, None
    if resource.resource_type in (BROKER_CONFIG, BROKER_LOGGER_CONFIG):
        node_id = str(backend.node(rights).node_id)
        if name not in ("", node_id):
            message = f"This broker is {node_id}, not {shown_name(name)}."
            return ErrorCode.INVALID_REQUEST, message
    return ErrorCode.NONE, None


def _settings(
    backend: DeclaredBackend,
    rights: RequestRights,
    request: DescribeConfigsRequest,
    resource: DescribeConfigsResource,
) -> list[DescribeConfigsResourceResult]:
    # Clients of a further cluster may not see the settings of the server that serves it.
    if not backend.settings:
        return []
    asked = resource.configuration_keys
    keys = None if asked is None else set(in_turns(asked))
    node_id = str(backend.node(rights).node_id)
    given = dict(backend.settings) | dict.fromkeys(_IDS, node_id)
    names = dict.fromkeys([*given, *kafka_settings()])
    return [_setting(given, name, request) for name in names if keys is None or name in keys]


def _setting(
    given: Mapping[str, str], name: str, request: DescribeConfigsRequest
) -> DescribeConfigsResourceResult:
    definition = DEFINITIONS.get(name)
    kind, default = kafka_settings().get(name, _OWN)
    if definition is not None and definition.default is not None:
        default = definition.default
    is_secret = kind == PASSWORD or (definition is not None and definition.secret)
    value = None if is_secret else given.get(name, default)
    source = _STATIC_BROKER_CONFIG if name in given else _DEFAULT_CONFIG
    synonyms = []
    if request.include_synonyms and source == _STATIC_BROKER_CONFIG:
        synonyms.append(DescribeConfigsSynonym(name, value, source))
    if request.include_synonyms and default is not None:
        shown = None if is_secret else default
        synonyms.append(DescribeConfigsSynonym(name, shown, _DEFAULT_CONFIG))
    return DescribeConfigsResourceResult(
        name,
        value,
        read_only=True,
        is_default=source == _DEFAULT_CONFIG,
        config_source=source,
        is_sensitive=is_secret,
        synonyms=synonyms,
        config_type=kind,
        documentation=definition.doc
        if request.include_documentation and definition is not None
        else None,
    )


def not_altered(backend: DeclaredBackend, entry: Any) -> ErrorCode:
    """Return why a resource's settings are not altered."""
    if entry.resource_type == TOPIC_CONFIG and not backend.catalog.exists(entry.resource_name):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return ErrorCode.POLICY_VIOLATION


def list_config_resources(
    backend: DeclaredBackend, rights: RequestRights, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List all nodes and the declared topics and groups; there are no client metrics resources."""
    nodes = [str(node.node_id) for node in backend.nodes(rights)]
    named: dict[int, list[str]] = {
        BROKER_CONFIG: nodes,
        BROKER_LOGGER_CONFIG: nodes,
        CLIENT_METRICS_CONFIG: [],
        TOPIC_CONFIG: list(backend.catalog.topics),
        GROUP_CONFIG: list(backend.catalog.groups),
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
