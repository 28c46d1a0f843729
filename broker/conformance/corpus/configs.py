"""Configurations of topics, brokers, groups and clients: described, altered, listed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.broker.conformance.case import Case
from aclbroker.broker.conformance.resources import ABSENT_TOPICS, GROUPS, TOPICS
from aclbroker.protocol.messages import (
    ApiKey,
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)

_UNKNOWN, _TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 0, 2, 4, 8, 16, 32
_SET: Final = 0

# Null configs and a broker that is not there keep answers short and alter nothing.
_RESOURCES: Final = (
    *((_TOPIC, name, "retention.ms", "1000") for name in (*TOPICS, *ABSENT_TOPICS)),
    *((_GROUP, name, "consumer.session.timeout.ms", "45000") for name in GROUPS),
    (_BROKER, "", "log.retention.ms", "1000"),
    (_BROKER, "2147483647", "log.retention.ms", "1000"),
    (_BROKER_LOGGER, "2147483647", "kafka", "INFO"),
    (_CLIENT_METRICS, "conformance", "interval.ms", "1000"),
)
"""Type, name, a configuration and its value."""

_SINGLE: Final = ((_UNKNOWN, "x", "y", "z"), (127, "x", "y", "z"), (_TOPIC, "", "y", "z"))


def cases() -> Iterator[Case]:
    """Yield the cases of this module's keys."""
    lists = {"each resource": _RESOURCES, "an empty list": ()} | {
        f"type {kind} named {name!r}": ((kind, name, key, value),)
        for kind, name, key, value in _SINGLE
    }
    for label, resources in lists.items():
        yield Case(
            ApiKey.DESCRIBE_CONFIGS,
            label,
            describe_configs.DescribeConfigsRequest(
                [
                    describe_configs.DescribeConfigsResource(kind, name, [key])
                    for kind, name, key, _ in resources
                ]
            ),
        )
        yield Case(
            ApiKey.ALTER_CONFIGS,
            label,
            alter_configs.AlterConfigsRequest(
                [
                    alter_configs.AlterConfigsResource(
                        kind, name, [alter_configs.AlterableConfig(key, value)]
                    )
                    for kind, name, key, value in resources
                ],
                validate_only=True,
            ),
        )
        yield Case(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            label,
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                [
                    incremental_alter_configs.AlterConfigsResource(
                        kind, name, [incremental_alter_configs.AlterableConfig(key, _SET, value)]
                    )
                    for kind, name, key, value in resources
                ],
                validate_only=True,
            ),
        )
    for types in ((), (_CLIENT_METRICS,), (_TOPIC, _GROUP)):
        yield Case(
            ApiKey.LIST_CONFIG_RESOURCES,
            f"of types {list(types)}",
            list_config_resources.ListConfigResourcesRequest(types),
        )
