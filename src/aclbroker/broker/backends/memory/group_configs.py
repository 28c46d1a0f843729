"""The settings of single groups: what DescribeConfigs and the requests that alter say of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from aclbroker.broker.backends.declared import configs as standalone
from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.conditions import GROUP_CONFIG
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.groups.group_configs import GroupConfig
from aclbroker.broker.topic_configs import InvalidConfig
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)
from aclbroker.protocol.messages.list_config_resources import (
    ConfigResource,
    ListConfigResourcesRequest,
    ListConfigResourcesResponse,
)
from aclbroker.turns import in_turns

_OF_GROUP: Final = 8
_BY_DEFAULT: Final = 5
_OTHERS: Final = ("consumer.", "streams.")
_NOT_OF_OTHERS: Final = "In a cluster in memory only share groups have settings of their own."


def described(
    backend: MemoryBackend, resource: DescribeConfigsResource, *, synonyms: bool
) -> DescribeConfigsResult:
    """Return the settings of a group, whether or not there is one."""
    name = resource.resource_name
    result = DescribeConfigsResult(0, None, resource.resource_type, name, [])
    if not name:
        result.error_code = ErrorCode.INVALID_REQUEST
        result.error_message = "Group name must not be empty"
        return result
    asked = resource.configuration_keys
    keys = None if asked is None else set(in_turns(asked))
    configs = backend.cluster.groups.configs
    result.configs = [
        _setting(configs.of(name), each, setting, synonyms=synonyms)
        for each, setting in configs.known.items()
        if keys is None or each in keys
    ]
    return result


def _setting(
    own: Mapping[str, str], name: str, setting: GroupConfig, *, synonyms: bool
) -> DescribeConfigsResourceResult:
    value = own.get(name, setting.default).strip()
    told = []
    if synonyms and name in own:
        told.append(DescribeConfigsSynonym(name, value, _OF_GROUP))
    if synonyms:
        told.append(
            DescribeConfigsSynonym(setting.broker_name or name, setting.default, _BY_DEFAULT)
        )
    return DescribeConfigsResourceResult(
        name,
        value,
        is_default=name not in own,
        config_source=_OF_GROUP if name in own else _BY_DEFAULT,
        synonyms=told,
        config_type=setting.type,
        documentation=None,
    )


def altered(
    backend: MemoryBackend,
    resource: Any,
    change: Callable[[Mapping[str, str], Any], dict[str, str]],
    *,
    tried: bool,
) -> tuple[int, str | None]:
    """Alter the settings of a group, unless that is only ``tried``; returns a code and a message.

    Raises `LogError` and `InvalidConfig` for settings that cannot be.
    """
    group_id = resource.resource_name
    if not group_id:
        return ErrorCode.INVALID_REQUEST, "Default group resources are not allowed."
    if any(entry.name.startswith(_OTHERS) for entry in in_turns(resource.configs)):
        return ErrorCode.POLICY_VIOLATION, _NOT_OF_OTHERS
    configs = backend.cluster.groups.configs
    new = change(configs.of(group_id), resource.configs)
    if any(value is None for value in new.values()):
        raise InvalidConfig("A setting has no value.")
    if tried:
        configs.validate(new)
    else:
        configs.set(group_id, new)
    return ErrorCode.NONE, None


def list_config_resources(
    backend: MemoryBackend, rights: RequestRights, request: ListConfigResourcesRequest
) -> ListConfigResourcesResponse:
    """List what a broker without data does, and the groups that have settings of their own."""
    response = standalone.list_config_resources(backend, rights, request)
    types = request.resource_types
    if (
        not response.error_code
        and rights.context.api_version
        and (not types or GROUP_CONFIG in types)
    ):
        listed = backend.cluster.groups.configs.by_group
        response.config_resources = [
            *in_turns(response.config_resources),
            *(ConfigResource(name, GROUP_CONFIG) for name in in_turns(list(listed))),
        ]
    return response
