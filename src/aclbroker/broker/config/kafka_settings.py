"""The settings of Kafka's brokers: their names, types and defaults."""

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Final, NamedTuple

PASSWORD: Final = 9
STRING: Final = 2


class KafkaSetting(NamedTuple):
    """A setting of Kafka 4.3.0: its type, as DescribeConfigs numbers it, and its default as text.

    The default is None where Kafka has none.
    """

    type: int
    default: str | None


@cache
def kafka_settings() -> Mapping[str, KafkaSetting]:
    """Return all settings that a Kafka 4.3.0 shows, sorted by name."""
    rows = [line.split("\t") for line in _lines("kafka_settings.tsv")]
    return {
        name: KafkaSetting(int(kind), default[0] if default else None)
        for name, kind, *default in rows
    }


def kafka_names() -> frozenset[str]:
    """Return the names of all settings of Kafka's brokers, from Kafka 4.3.0 and 3.9.1."""
    return frozenset([*kafka_settings(), *" ".join(_lines("kafka_names.txt")).split()])


def _lines(file: str) -> list[str]:
    text = resources.files("aclbroker.broker.config").joinpath(file).read_text("ascii")
    return [line for line in text.splitlines() if not line.startswith("#")]
