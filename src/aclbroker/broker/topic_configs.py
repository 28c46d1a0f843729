"""The configuration of topics: the names that Kafka 4.3 has, their types, defaults and limits."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from enum import IntEnum
from types import MappingProxyType
from typing import Final, NamedTuple

from aclbroker.protocol.errors import shown_name

_REPLICA: Final = re.compile(r"[0-9]{1,10}:[0-9]{1,10}")
_MOST_INT: Final = (1 << 31) - 1
_MOST_LONG: Final = (1 << 63) - 1


class ConfigType(IntEnum):
    """The type of a value, as DescribeConfigs numbers it."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    LONG = 5
    DOUBLE = 6
    LIST = 7


class InvalidConfig(ValueError):
    """A configuration that a topic cannot have, with Kafka's words for why."""


class TopicConfig(NamedTuple):
    """A setting of topics: its type, its default, what it may be, and the broker's setting for it.

    ``least`` and ``most`` limit numbers, ``allowed`` texts. ``broker_name`` is empty where a broker
    has no such setting by default.
    """

    type: ConfigType
    default: str
    least: float | None = None
    most: float | None = None
    allowed: tuple[str, ...] = ()
    broker_name: str = ""


class BrokerDefault(NamedTuple):
    """A default of a topic's setting that the broker's configuration changes.

    ``setting`` is the broker's setting. It is empty for one in another unit, such as
    `log.retention.hours`, because Kafka shows its value as the default of all topics.
    """

    value: str
    setting: str = ""


def _whole(
    default: int, least: int | None, broker_name: str, most: int | None = None
) -> TopicConfig:
    return TopicConfig(ConfigType.INT, str(default), least, most, (), broker_name)


def _long(default: int, least: int | None, broker_name: str) -> TopicConfig:
    return TopicConfig(ConfigType.LONG, str(default), least, None, (), broker_name)


def _flag(broker_name: str = "") -> TopicConfig:
    return TopicConfig(ConfigType.BOOLEAN, "false", broker_name=broker_name)


def _text(default: str, allowed: tuple[str, ...], broker_name: str) -> TopicConfig:
    return TopicConfig(ConfigType.STRING, default, None, None, allowed, broker_name)


_WEEK_MS: Final = 604_800_000
_POLICIES: Final = ("compact", "delete")
_CODECS: Final = ("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")

# fmt: off
TOPIC_CONFIGS: Final[Mapping[str, TopicConfig]] = {
    "cleanup.policy": TopicConfig(
        ConfigType.LIST, "delete", None, None, _POLICIES, "log.cleanup.policy"),
    "compression.gzip.level": _whole(-1, -1, "compression.gzip.level", 9),
    "compression.lz4.level": _whole(9, 1, "compression.lz4.level", 17),
    "compression.type": _text("producer", _CODECS, "compression.type"),
    "compression.zstd.level": _whole(3, -131_072, "compression.zstd.level", 22),
    "delete.retention.ms": _long(86_400_000, 0, "log.cleaner.delete.retention.ms"),
    "file.delete.delay.ms": _long(60_000, 0, "log.segment.delete.delay.ms"),
    "flush.messages": _long(_MOST_LONG, 1, "log.flush.interval.messages"),
    "flush.ms": _long(_MOST_LONG, 0, ""),
    "follower.replication.throttled.replicas": TopicConfig(ConfigType.LIST, ""),
    "index.interval.bytes": _whole(4096, 0, "log.index.interval.bytes"),
    "leader.replication.throttled.replicas": TopicConfig(ConfigType.LIST, ""),
    "local.retention.bytes": _long(-2, -2, "log.local.retention.bytes"),
    "local.retention.ms": _long(-2, -2, "log.local.retention.ms"),
    "max.compaction.lag.ms": _long(_MOST_LONG, 1, "log.cleaner.max.compaction.lag.ms"),
    "max.message.bytes": _whole(1_048_588, 0, "message.max.bytes"),
    "message.timestamp.after.max.ms": _long(3_600_000, 0, "log.message.timestamp.after.max.ms"),
    "message.timestamp.before.max.ms": _long(
        _MOST_LONG, 0, "log.message.timestamp.before.max.ms"),
    "message.timestamp.type": _text(
        "CreateTime", ("CreateTime", "LogAppendTime"), "log.message.timestamp.type"),
    "min.cleanable.dirty.ratio": TopicConfig(
        ConfigType.DOUBLE, "0.5", 0, 1, (), "log.cleaner.min.cleanable.ratio"),
    "min.compaction.lag.ms": _long(0, 0, "log.cleaner.min.compaction.lag.ms"),
    "min.insync.replicas": _whole(1, 1, "min.insync.replicas"),
    "preallocate": _flag("log.preallocate"),
    "remote.log.copy.disable": _flag(),
    "remote.log.delete.on.disable": _flag(),
    "remote.storage.enable": _flag(),
    "retention.bytes": _long(-1, None, "log.retention.bytes"),
    "retention.ms": _long(_WEEK_MS, -1, ""),
    "segment.bytes": _whole(1 << 30, 1 << 20, "log.segment.bytes"),
    "segment.index.bytes": _whole(10 << 20, 4, "log.index.size.max.bytes"),
    "segment.jitter.ms": _long(0, 0, ""),
    "segment.ms": _long(_WEEK_MS, 1, ""),
    "unclean.leader.election.enable": _flag("unclean.leader.election.enable"),
}
# fmt: on
"""All settings of topics by name, in the order in which they are shown."""


def check(name: str, value: str) -> None:
    """Check a value of one setting of topics. Raises `InvalidConfig`."""
    setting = TOPIC_CONFIGS.get(name)
    if setting is None:
        raise InvalidConfig(f"Unknown topic config name: {shown_name(name)}")
    _CHECKS[setting.type](name, value.strip(), setting)


def with_defaults(
    configs: Mapping[str, str], defaults: Mapping[str, BrokerDefault]
) -> dict[str, str]:
    """Return a topic's configuration with the broker's own defaults for the rest."""
    return {name: default.value for name, default in defaults.items()} | dict(configs)


def validate(
    configs: Mapping[str, str], defaults: Mapping[str, BrokerDefault] = MappingProxyType({})
) -> None:
    """Check a topic's whole configuration beside the broker's defaults. Raises `InvalidConfig`."""
    for name, value in configs.items():
        check(name, value)
    configs = with_defaults(configs, defaults)
    least = config_number(configs, "min.compaction.lag.ms")
    most = config_number(configs, "max.compaction.lag.ms")
    if least > most:
        raise InvalidConfig(
            f"conflict topic config setting min.compaction.lag.ms ({least}) > "
            f"max.compaction.lag.ms ({most})"
        )
    if _flagged(configs, "remote.storage.enable"):
        raise InvalidConfig(
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured "
            "with remote log storage."
        )


def _invalid(name: str, value: str, why: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {shown_name(value)} for configuration {name}: {why}")


def _check_flag(name: str, value: str, _setting: TopicConfig) -> None:
    if value.lower() not in ("true", "false"):
        raise _invalid(name, value, "Expected value to be either true or false")


def _check_text(name: str, value: str, setting: TopicConfig) -> None:
    if value not in setting.allowed:
        raise _invalid(name, value, f"String must be one of: {', '.join(setting.allowed)}")


def _check_list(name: str, value: str, setting: TopicConfig) -> None:
    parts = list_values(value)
    for part in parts:
        if setting.allowed and part not in setting.allowed:
            raise _invalid(name, part, f"String must be one of: {', '.join(setting.allowed)}")
    if not setting.allowed and parts != ["*"] and not all(map(_REPLICA.fullmatch, parts)):
        raise _invalid(
            name,
            f"[{', '.join(parts)}]",
            f"{name} must be the literal '*' or a list of replicas in the following format: "
            "[partitionId]:[brokerId],[partitionId]:[brokerId],...",
        )


def _check_whole(name: str, value: str, setting: TopicConfig) -> None:
    most = _MOST_INT if setting.type is ConfigType.INT else _MOST_LONG
    digits = value[1:] if value[:1] in ("+", "-") else value
    known = digits.isascii() and digits.isdigit() and len(digits) <= len(str(most))
    if not known or not -most - 1 <= int(value) <= most:
        raise _invalid(name, value, f"Not a number of type {setting.type.name}")
    _check_range(name, int(value), setting)
    if name == "compression.gzip.level" and value == "0":
        raise _invalid(name, value, "Value must be between 1 and 9 or equal to -1")


def _check_real(name: str, value: str, setting: TopicConfig) -> None:
    try:
        number = float(value)
    except ValueError:
        raise _invalid(name, value, f"Not a number of type {setting.type.name}") from None
    _check_range(name, number, setting)


def _check_range(name: str, number: float, setting: TopicConfig) -> None:
    if setting.least is not None and not number >= setting.least:
        raise _invalid(name, str(number), f"Value must be at least {setting.least}")
    if setting.most is not None and number > setting.most:
        raise _invalid(name, str(number), f"Value must be no more than {setting.most}")


_CHECKS: Final[Mapping[ConfigType, Callable[[str, str, TopicConfig], None]]] = {
    ConfigType.BOOLEAN: _check_flag,
    ConfigType.STRING: _check_text,
    ConfigType.INT: _check_whole,
    ConfigType.LONG: _check_whole,
    ConfigType.DOUBLE: _check_real,
    ConfigType.LIST: _check_list,
}


def list_values(value: str) -> list[str]:
    """Return the parts of a value of a setting that is a list."""
    return [part.strip() for part in value.split(",")] if value.strip() else []


def config_value(configs: Mapping[str, str], name: str) -> str:
    """Return the value of a setting as it is written, or its default."""
    return configs.get(name, TOPIC_CONFIGS[name].default).strip()


def config_number(configs: Mapping[str, str], name: str) -> int:
    """Return the value of a setting that is a whole number."""
    return int(config_value(configs, name))


def _flagged(configs: Mapping[str, str], name: str) -> bool:
    return config_value(configs, name).lower() == "true"


def shown(name: str, value: str) -> str:
    """Return a valid value as Kafka shows it: parsed and put into words again."""
    kind = TOPIC_CONFIGS[name].type
    if kind is ConfigType.LIST:
        return ",".join(list_values(value))
    if kind is ConfigType.BOOLEAN:
        return value.strip().lower()
    if kind in (ConfigType.INT, ConfigType.LONG):
        return str(int(value))
    return str(float(value)) if kind is ConfigType.DOUBLE else value.strip()
