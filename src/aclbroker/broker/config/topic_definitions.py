"""The broker's settings for new topics of a cluster in memory, and its defaults for their settings.

Names, types, defaults and limits are those of Kafka 4.3.0 (ServerLogConfigs, CleanerConfig and
ServerTopicConfigSynonyms).
"""

from typing import Final

from aclbroker.broker.config.definition import Definition
from aclbroker.broker.config.values import LONG_MAX, ValueType, integer
from aclbroker.broker.topic_configs import (
    TOPIC_CONFIGS,
    ConfigType,
    InvalidConfig,
    TopicConfig,
    check,
    shown,
)

_HOUR_MS: Final = 3_600_000
_MINUTE_MS: Final = 60_000

TIMES: Final = {
    "retention.ms": {
        "log.retention.ms": 1,
        "log.retention.minutes": _MINUTE_MS,
        "log.retention.hours": _HOUR_MS,
    },
    "segment.ms": {"log.roll.ms": 1, "log.roll.hours": _HOUR_MS},
    "segment.jitter.ms": {"log.roll.jitter.ms": 1, "log.roll.jitter.hours": _HOUR_MS},
    "flush.ms": {"log.flush.interval.ms": 1},
}
"""The topic settings for which a broker has one setting for each unit of time, with the unit in
milliseconds. The first one that is set counts.
"""

_LEAST_TIME: Final = {"retention.ms": (1, -1), "segment.ms": (1, None)}
_TIME_DEFAULTS: Final = {
    "log.retention.hours": "168",
    "log.roll.hours": "168",
    "log.roll.jitter.hours": "0",
}


def _allowed(setting: TopicConfig) -> str:
    if setting.allowed:
        parts = ", ".join(setting.allowed)
        return f"{parts}, or several" if setting.type is ConfigType.LIST else parts
    if setting.type is ConfigType.BOOLEAN:
        return "true, false"
    kind = "a number" if setting.type is ConfigType.DOUBLE else "an integer"
    limits = (("from", setting.least), ("to", setting.most))
    return " ".join([kind, *(f"{word} {limit}" for word, limit in limits if limit is not None)])


def _type(name: str, setting: TopicConfig) -> ValueType:
    def parse(text: str) -> str:
        try:
            check(name, text)
        except InvalidConfig as why:
            raise ValueError(str(why)) from None
        return shown(name, text)

    return ValueType(_allowed(setting), parse)


def _time(name: str, setting: str, unit_ms: int) -> Definition:
    least, never = _LEAST_TIME.get(name, (0, None))
    return Definition(
        setting,
        "",
        integer(least, LONG_MAX // unit_ms, never=never),
        _TIME_DEFAULTS.get(setting),
        f"The default of a topic's `{name}` in a cluster in memory.",
        default_doc="" if setting in _TIME_DEFAULTS else "(unset)",
    )


TOPICS: Final = (
    Definition(
        "num.partitions", "num_partitions", integer(1), "1",
        "How many partitions a topic of a cluster in memory gets that is created automatically, or "
        "without a number of its own.",
    ),
    Definition(
        "default.replication.factor", "default_replication_factor", integer(1, 100), "1",
        "How many replicas each of these partitions gets; at most `aclbroker.nodes`.",
    ),
    *(
        Definition(
            setting.broker_name, "", _type(name, setting), setting.default,
            f"The default of a topic's `{name}` in a cluster in memory.",
        )
        for name, setting in TOPIC_CONFIGS.items()
        if setting.broker_name
    ),
    *(
        _time(name, setting, unit_ms)
        for name, settings in TIMES.items()
        for setting, unit_ms in settings.items()
    ),
)  # fmt: skip
