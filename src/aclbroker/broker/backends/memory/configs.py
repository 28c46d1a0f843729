"""DescribeConfigs, AlterConfigs and IncrementalAlterConfigs, of topics and groups in memory.

The other resources have the configuration of a broker without data, which cannot be altered. To
delete settings of a broker is confirmed, as there are none that were altered.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.broker.backends.declared import configs as standalone
from aclbroker.broker.backends.memory import group_configs
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.conditions import BROKER_CONFIG, GROUP_CONFIG, TOPIC_CONFIG
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.placing import why_invalid
from aclbroker.broker.memory.topics import MemoryTopics, Topic
from aclbroker.broker.topic_configs import (
    TOPIC_CONFIGS,
    ConfigType,
    InvalidConfig,
    shown,
    validate,
)
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages import alter_configs as replaced
from aclbroker.protocol.messages import incremental_alter_configs as altered
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from aclbroker.turns import in_turns

_OF_TOPIC: Final = 1
_OF_BROKER: Final = 4
_BY_DEFAULT: Final = 5
_SET: Final = 0
_DELETE: Final = 1
_APPEND: Final = 2
_SUBTRACT: Final = 3
_OPERATIONS: Final = {_SET: "SET", _DELETE: "DELETE", _APPEND: "APPEND", _SUBTRACT: "SUBTRACT"}
_FIXED: Final = "In a cluster in memory only the settings of topics and groups can be altered."
_KEPT: Final = (TOPIC_CONFIG, GROUP_CONFIG)
_MOST_SETTINGS: Final = 100_000
"""How many settings of topics an answer may have."""


def setting_source(topics: MemoryTopics, configs: Mapping[str, str], name: str) -> int:
    """Return where the value of a topic's setting comes from, as the protocol numbers it."""
    if name in configs:
        return _OF_TOPIC
    default = topics.defaults.get(name)
    return _OF_BROKER if default is not None and default.setting else _BY_DEFAULT


def describe_configs(
    backend: MemoryBackend, rights: RequestRights, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Answer with the settings of each resource, those of topics with their defaults."""
    others = [each for each in in_turns(request.resources) if each.resource_type not in _KEPT]
    of_others = iter(
        standalone.describe_configs(
            backend,
            rights,
            DescribeConfigsRequest(
                others,
                include_synonyms=request.include_synonyms,
                include_documentation=request.include_documentation,
            ),
        ).results
    )
    room = _MOST_SETTINGS
    results = []
    for resource in in_turns(request.resources, 1):
        if resource.resource_type not in _KEPT:
            results.append(next(of_others))
            continue
        is_group = resource.resource_type == GROUP_CONFIG
        describe = group_configs.described if is_group else _described
        result = describe(backend, resource, synonyms=request.include_synonyms)
        room -= len(result.configs)
        if room < 0:
            result.configs = []
            result.error_code = ErrorCode.INVALID_REQUEST
            result.error_message = "The answer has too many settings already."
        results.append(result)
    return DescribeConfigsResponse(results=results)


def _described(
    backend: MemoryBackend, resource: DescribeConfigsResource, *, synonyms: bool
) -> DescribeConfigsResult:
    name = resource.resource_name
    result = DescribeConfigsResult(0, None, resource.resource_type, name, [])
    topic = backend.cluster.topics.by_name.get(name)
    if topic is None:
        result.error_code, result.error_message = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ""
        if (why := why_invalid(name)) is not None:
            result.error_code = ErrorCode.INVALID_TOPIC_EXCEPTION
            result.error_message = why
        return result
    asked = resource.configuration_keys
    keys = None if asked is None else set(in_turns(asked))
    result.configs = [
        _setting(backend.cluster.topics, topic, each, synonyms=synonyms)
        for each in TOPIC_CONFIGS
        if keys is None or each in keys
    ]
    return result


def _setting(
    topics: MemoryTopics, topic: Topic, name: str, *, synonyms: bool
) -> DescribeConfigsResourceResult:
    setting, value = TOPIC_CONFIGS[name], topics.config(topic.configs, name)
    source = setting_source(topics, topic.configs, name)
    named = []
    if synonyms and name in topic.configs:
        named.append(DescribeConfigsSynonym(name, value, _OF_TOPIC))
    default = topics.defaults.get(name)
    if synonyms and default is not None and default.setting:
        named.append(DescribeConfigsSynonym(default.setting, default.value, _OF_BROKER))
    if synonyms and setting.broker_name:
        default_value = shown(name, setting.default)
        named.append(DescribeConfigsSynonym(setting.broker_name, default_value, _BY_DEFAULT))
    return DescribeConfigsResourceResult(
        name,
        value,
        is_default=source == _BY_DEFAULT,
        config_source=source,
        synonyms=named,
        config_type=setting.type,
        documentation=None,
    )


def alter_configs(
    backend: MemoryBackend, _rights: RequestRights, request: replaced.AlterConfigsRequest
) -> replaced.AlterConfigsResponse:
    """Replace the whole configuration of each topic."""
    return replaced.AlterConfigsResponse(
        responses=[
            replaced.AlterConfigsResourceResponse(
                *_altered(backend, resource, _replaced, tried=request.validate_only),
                resource.resource_type,
                resource.resource_name,
            )
            for resource in in_turns(request.resources, 1)
        ]
    )


def incremental_alter_configs(
    backend: MemoryBackend, _rights: RequestRights, request: altered.IncrementalAlterConfigsRequest
) -> altered.IncrementalAlterConfigsResponse:
    """Alter single settings of each topic (KIP-339)."""
    return altered.IncrementalAlterConfigsResponse(
        responses=[
            altered.AlterConfigsResourceResponse(
                *_altered(backend, resource, _incremented, tried=request.validate_only),
                resource.resource_type,
                resource.resource_name,
            )
            for resource in in_turns(request.resources, 1)
        ]
    )


def _altered(
    backend: MemoryBackend, resource: Any, change: Any, *, tried: bool
) -> tuple[int, str | None]:
    """Alter a configuration, unless that is only ``tried``; returns a code and a message."""
    if resource.resource_type not in _KEPT:
        return _not_altered(resource)
    try:
        alter = group_configs.altered if resource.resource_type == GROUP_CONFIG else _topic_altered
        return alter(backend, resource, change, tried=tried)
    except (LogError, InvalidConfig) as why:
        return getattr(why, "code", ErrorCode.INVALID_CONFIG), str(why)


def _topic_altered(
    backend: MemoryBackend, resource: Any, change: Any, *, tried: bool
) -> tuple[int, str | None]:
    topic = backend.cluster.topics.by_name.get(resource.resource_name)
    if topic is None:
        message = f"The topic '{shown_name(resource.resource_name)}' does not exist."
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message
    configs = change(topic.configs, resource.configs)
    validate(configs, backend.cluster.topics.defaults)
    if not tried:
        backend.cluster.topics.configure(topic, configs)
    return ErrorCode.NONE, None


def _not_altered(resource: Any) -> tuple[int, str | None]:
    """Return a code and a message for a resource whose settings stay as they are.

    A broker is this node, or all of them: the gate refuses others. Kafka's tool for reassignments
    deletes throttles of brokers whether or not there are any.
    """
    if resource.resource_type == BROKER_CONFIG:
        entries = in_turns(resource.configs)
        if all(getattr(entry, "config_operation", _SET) == _DELETE for entry in entries):
            return ErrorCode.NONE, None
    return ErrorCode.POLICY_VIOLATION, _FIXED


def _replaced(_configs: Mapping[str, str], entries: Any) -> dict[str, str]:
    return {entry.name: entry.value for entry in in_turns(entries)}


def _incremented(configs: Mapping[str, str], entries: Any) -> dict[str, str]:
    """Return a configuration with single settings changed. Raises `LogError`."""
    changed = dict(configs)
    for entry in in_turns(entries):
        operation = entry.config_operation
        if operation not in _OPERATIONS:
            raise LogError(ErrorCode.INVALID_REQUEST, f"Unknown operation type {operation}.")
        if operation == _DELETE:
            changed.pop(entry.name, None)
        elif operation == _SET:
            changed[entry.name] = entry.value
        else:
            changed[entry.name] = _listed(changed, entry)
    return changed


def _listed(configs: Mapping[str, str], entry: Any) -> str:
    """Return a list with values added or removed."""
    setting = TOPIC_CONFIGS.get(entry.name)
    if setting is None or setting.type is not ConfigType.LIST:
        raise LogError(
            ErrorCode.INVALID_CONFIG,
            f"Can't {_OPERATIONS[entry.config_operation]} to key {shown_name(entry.name)} because "
            "its type is not LIST.",
        )
    now = [each for each in configs.get(entry.name, setting.default).split(",") if each]
    given = entry.value.split(",")
    if entry.config_operation == _APPEND:
        return ",".join(now + [each for each in given if each not in now])
    return ",".join(each for each in now if each not in given)
