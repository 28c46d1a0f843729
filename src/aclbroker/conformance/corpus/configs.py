"""Cases that describe, alter and list configurations of topics, brokers, groups and clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from aclbroker.conformance.case import INVALID, Case
from aclbroker.conformance.resources import ABSENT_TOPICS, GROUPS, TOPICS, group, topic
from aclbroker.protocol.messages import (
    ApiKey,
    alter_configs,
    describe_configs,
    incremental_alter_configs,
    list_config_resources,
)

_UNKNOWN, _TOPIC, _BROKER, _BROKER_LOGGER, _CLIENT_METRICS, _GROUP = 0, 2, 4, 8, 16, 32
_SET, _DELETE = 0, 1
_NO_BROKER: Final = "2147483647"

# One setting of each resource keeps the answers short. Changes are only validated.
_RESOURCES: Final = (
    *((_TOPIC, name, "retention.ms", "1000") for name in (*TOPICS, *ABSENT_TOPICS)),
    *((_GROUP, name, "consumer.session.timeout.ms", "45000") for name in GROUPS),
    (_BROKER, "", "log.retention.ms", "1000"),
    (_BROKER, _NO_BROKER, "log.retention.ms", "1000"),
    (_BROKER_LOGGER, _NO_BROKER, "kafka", "INFO"),
    (_CLIENT_METRICS, "conformance", "interval.ms", "1000"),
)
"""The type and name of a resource, one of its settings and a value for it."""

_SOME_NAMES: Final = (
    topic("closed"),
    topic("alter-configs"),
    group("closed"),
    "",
    _NO_BROKER,
    "conformance",
)

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
        settings = [(kind, name, ((key, value),)) for kind, name, key, value in resources]
        yield _replaced(label, *settings)
        yield _altered(label, *settings)
    yield from _malformed()
    for types in ((), (_CLIENT_METRICS,), (_TOPIC, _GROUP)):
        yield Case(
            ApiKey.LIST_CONFIG_RESOURCES,
            f"of types {list(types)}",
            list_config_resources.ListConfigResourcesRequest(types),
        )


_Settings = tuple[tuple[str, str | None], ...]


def _replaced(label: str, *resources: tuple[int, str, _Settings], wrong: bool = False) -> Case:
    m = alter_configs
    asked = [
        m.AlterConfigsResource(kind, name, [m.AlterableConfig(*each) for each in settings])
        for kind, name, settings in resources
    ]
    request = m.AlterConfigsRequest(asked, validate_only=True)
    return Case(ApiKey.ALTER_CONFIGS, label, request, codes=(INVALID,) if wrong else ())


def _altered(
    label: str,
    *resources: tuple[int, str, _Settings],
    operation: int = _SET,
    wrong: bool = False,
) -> Case:
    m = incremental_alter_configs
    asked = [
        m.AlterConfigsResource(
            kind, name, [m.AlterableConfig(key, operation, value) for key, value in settings]
        )
        for kind, name, settings in resources
    ]
    request = m.IncrementalAlterConfigsRequest(asked, validate_only=True)
    codes = (INVALID,) if wrong else ()
    return Case(ApiKey.INCREMENTAL_ALTER_CONFIGS, label, request, codes=codes)


def _malformed() -> Iterator[Case]:
    """Yield requests that Kafka refuses for their form, before it asks for any right."""
    some = [each for each in _RESOURCES if each[1] in _SOME_NAMES]
    null = [(kind, name, ((key, None),)) for kind, name, key, _ in some]
    twice = [(kind, name, ((key, value),) * 2) for kind, name, key, value in some]
    for label, resources in (("with null values", null), ("with keys twice", twice)):
        yield _replaced(label, *resources, wrong=True)
        yield _altered(label, *resources, wrong=True)
    topics = [each for each in null if each[0] == _TOPIC]
    yield _altered("with null values to delete", *topics, operation=_DELETE)
    setting = (("retention.ms", "1"),)
    read, closed = ((_TOPIC, topic(right), setting) for right in ("read", "closed"))
    # Only an IncrementalAlterConfigs: Kafka never answers an AlterConfigs like this one.
    yield _altered("of a resource twice", closed, read, closed, wrong=True)
    loggers = [(_BROKER_LOGGER, name, (("kafka", "INFO"),)) for name in ("", "1", _NO_BROKER)]
    yield _replaced("of loggers", *loggers, closed, wrong=True)
    yield Case(
        ApiKey.DESCRIBE_CONFIGS,
        "an unknown type beside others",
        describe_configs.DescribeConfigsRequest(
            [
                describe_configs.DescribeConfigsResource(kind, name, ["retention.ms"])
                for kind, name in (read[:2], (127, "x"), closed[:2], (_BROKER, ""))
            ]
        ),
        codes=(INVALID,),
    )
