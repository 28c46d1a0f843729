"""The settings of single groups: those of share groups, as Kafka's GroupConfig has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from aclbroker.broker.memory.groups.settings import GroupSettings
from aclbroker.broker.topic_configs import ConfigType, InvalidConfig
from aclbroker.protocol.errors import shown_name

EARLIEST: Final = "earliest"
LATEST: Final = "latest"
BY_DURATION: Final = "by_duration:"
READ_COMMITTED: Final = "read_committed"

_MOST_INT: Final = (1 << 31) - 1
_MOST_GROUPS: Final = 10_000
_DURATION: Final = re.compile(
    r"P(?:(?P<days>[0-9]{1,9})D)?"
    r"(?:T(?=[0-9])(?:(?P<hours>[0-9]{1,9})H)?(?:(?P<minutes>[0-9]{1,9})M)?"
    r"(?:(?P<seconds>[0-9]{1,9}(?:\.[0-9]{0,9})?)S)?)?",
    re.IGNORECASE,
)


class GroupConfig(NamedTuple):
    """A setting of groups: its type, its default for all, and what it may be.

    ``broker_name`` is the broker's setting for all groups, empty where there is none.
    """

    type: ConfigType
    default: str
    least: int = 0
    most: int = _MOST_INT
    broker_name: str = ""


def duration_ms(value: str) -> int | None:
    """Return an ISO 8601 duration of days and less in milliseconds, None if it is none."""
    found = _DURATION.fullmatch(value)
    if found is None or not any(found.groups()):
        return None
    parts = {name: float(part or 0) for name, part in found.groupdict().items()}
    hours = 24 * parts["days"] + parts["hours"]
    return round(1000 * (3600 * hours + 60 * parts["minutes"] + parts["seconds"]))


class GroupConfigs:
    """The settings of groups by group id, over what holds for all."""

    def __init__(self, settings: GroupSettings) -> None:
        def number(name: str, default: int, least: int, most: int) -> GroupConfig:
            # What holds for all may be outside of Kafka's limits, as tests want shorter times.
            return GroupConfig(
                ConfigType.INT,
                str(default),
                min(least, default),
                max(most, default),
                f"group.{name}",
            )

        numbers = (
            ("share.session.timeout.ms", settings.share_session_timeout_ms, 45_000, 60_000),
            ("share.heartbeat.interval.ms", settings.share_heartbeat_interval_ms, 5_000, 15_000),
            ("share.record.lock.duration.ms", settings.share_record_lock_ms, 15_000, 60_000),
            ("share.delivery.count.limit", settings.share_delivery_count_limit, 2, 10),
            ("share.partition.max.record.locks", settings.share_max_record_locks, 100, 4_000),
            ("share.assignment.interval.ms", 0, 0, 15_000),
        )
        self.known: Final[Mapping[str, GroupConfig]] = {
            "share.auto.offset.reset": GroupConfig(ConfigType.STRING, LATEST),
            "share.isolation.level": GroupConfig(ConfigType.STRING, "read_uncommitted"),
            "share.renew.acknowledge.enable": GroupConfig(ConfigType.BOOLEAN, "true"),
            **{name: number(name, *limits) for name, *limits in numbers},
        }
        self.by_group: dict[str, dict[str, str]] = {}

    def of(self, group_id: str) -> Mapping[str, str]:
        """Return what was set for a group."""
        return self.by_group.get(group_id, {})

    def set(self, group_id: str, configs: Mapping[str, str]) -> None:
        """Replace what is set for a group; raises `InvalidConfig`."""
        self.validate(configs)
        if not configs:
            self.by_group.pop(group_id, None)
        elif group_id not in self.by_group and len(self.by_group) >= _MOST_GROUPS:
            raise InvalidConfig(f"At most {_MOST_GROUPS} groups may have settings of their own.")
        else:
            self.by_group[group_id] = dict(configs)

    def text(self, group_id: str, name: str) -> str:
        """Return the value of a setting for a group."""
        return self.of(group_id).get(name, self.known[name].default).strip()

    def number(self, group_id: str, name: str) -> int:
        """Return the value of a setting for a group that is a number."""
        return int(self.text(group_id, name))

    def flag(self, group_id: str, name: str) -> bool:
        """Return the value of a setting for a group that is true or false."""
        return self.text(group_id, name).lower() == "true"

    def validate(self, configs: Mapping[str, str]) -> None:
        """Check all that is to be set for a group; raises `InvalidConfig`."""
        for name, value in configs.items():
            setting = self.known.get(name)
            if setting is None:
                raise InvalidConfig(f"Unknown group config name: {shown_name(name)}")
            _CHECKS[setting.type](name, value.strip(), setting)
        heartbeat, session = (
            int(configs.get(name, self.known[name].default))
            for name in ("share.heartbeat.interval.ms", "share.session.timeout.ms")
        )
        if session <= heartbeat:
            raise InvalidConfig(
                "share.session.timeout.ms must be greater than share.heartbeat.interval.ms"
            )


def _invalid(name: str, value: str, why: str) -> InvalidConfig:
    return InvalidConfig(f"Invalid value {shown_name(value)} for configuration {name}: {why}")


def _check_number(name: str, value: str, setting: GroupConfig) -> None:
    if not (value.isascii() and value.isdigit() and len(value) <= len(str(_MOST_INT))):
        raise _invalid(name, value, "Not a number of type INT")
    for is_wrong, what, limit in (
        (int(value) < setting.least, "greater", f"of {setting.least}"),
        (int(value) > setting.most, "less", f"of {setting.most}"),
    ):
        if is_wrong:
            end = "min" if what == "greater" else "max"
            bound = f"group.share.{end}.{name.removeprefix('share.')}"
            raise InvalidConfig(f"{name} must be {what} than or equal to {bound} ({limit})")


def _check_flag(name: str, value: str, _setting: GroupConfig) -> None:
    if value.lower() not in ("true", "false"):
        raise _invalid(name, value, "Expected value to be either true or false")


def _check_text(name: str, value: str, _setting: GroupConfig) -> None:
    if name == "share.isolation.level":
        if value not in (READ_COMMITTED, "read_uncommitted"):
            why = "String must be one of: read_committed, read_uncommitted"
            raise _invalid(name, value, why)
        return
    by_duration = value.startswith(BY_DURATION) and duration_ms(value.removeprefix(BY_DURATION))
    if value not in (EARLIEST, LATEST) and not by_duration:
        raise _invalid(
            name,
            value,
            "The value must be either 'earliest', 'latest' or of the format "
            "'by_duration:<PnDTnHnMn.nS>'.",
        )


_CHECKS: Final = {
    ConfigType.INT: _check_number,
    ConfigType.BOOLEAN: _check_flag,
    ConfigType.STRING: _check_text,
}
