"""Warns of settings without effect: Kafka's others, misplaced ones, and unknown ones.

A section cut out of a real broker's file must work unchanged, so none of them is an error.
"""

import difflib
from collections.abc import Collection, Iterable

from aclbroker.broker.config.definition import Scope
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.kafka_settings import kafka_names
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX, METADATA_PREFIX
from aclbroker.broker.config.properties import display_name
from aclbroker.broker.config.reader import Report, listener_prefix, unprefixed
from aclbroker.broker.config.setting import Setting
from aclbroker.broker.config.values import MECHANISMS
from aclbroker.broker.config.zookeeper_definitions import PREFIXES as ZOOKEEPER_PREFIXES

# Settings of plug-ins of Kafka, which choose their names themselves.
_PROVIDERS = "config.providers."
_PLUGIN_PREFIXES = (
    _PROVIDERS,
    "rsm.config.",
    "rlmm.config.",
    "authorizer.zookeeper.",
    "confluent.",
)


def is_known(name: str) -> bool:
    """Whether it is the name of a setting of ours or of Kafka's, with or without effect here."""
    return unprefixed(name) in DEFINITIONS or _is_of(kafka_names(), name)


def concerns_us(name: str) -> bool:
    """Whether the setting may have an effect here: it is a known one, or one of a plug-in."""
    return unprefixed(name) in DEFINITIONS or not is_known(name)


def warn_without_effect(
    settings: Iterable[Setting],
    listeners: Collection[str],
    controllers: Collection[str],
    report: Report,
    *,
    with_zookeeper: bool = False,
) -> None:
    """Add one warning for all of Kafka's settings without effect, and one for each other.

    `listeners` are the names of the broker's listeners, `controllers` those of its controller's.
    Those of ZooKeeper have one `with_zookeeper` alone.
    """
    candidates = [
        setting
        for setting in settings
        if not _has_effect(setting.name, listeners, with_zookeeper=with_zookeeper)
    ]
    if not candidates:
        return
    kafka = kafka_names()
    of_controllers = tuple(listener_prefix(name) for name in controllers)
    without_effect = []
    for setting in candidates:
        mistake = _mistake(setting.name, listeners)
        if setting.name.startswith(of_controllers) or (not mistake and _is_of(kafka, setting.name)):
            without_effect.append(setting.name)
        else:
            mistake = mistake or f"unknown setting{_suggestion(setting.name, kafka)}"
            report.warn(f"{setting.origin}: {display_name(setting.name)}: {mistake}")
    if without_effect:
        names = ", ".join(sorted(without_effect))
        report.warn(f"settings of Kafka that have no effect here: {names}")


def _has_effect(name: str, listeners: Collection[str], *, with_zookeeper: bool) -> bool:
    if name.startswith(ZOOKEEPER_PREFIXES):
        # What stands for the authorizer's own connection stands for one of ZooKeeper's.
        own = name.removeprefix("authorizer.").replace("zookeeper.url", "zookeeper.connect")
        return with_zookeeper and own in DEFINITIONS
    bare = unprefixed(name)
    if bare not in DEFINITIONS:
        return name.startswith(_PROVIDERS)
    scope = DEFINITIONS[bare].scope
    if name.startswith((CLUSTER_PREFIX, METADATA_PREFIX)):
        return scope is not Scope.LISTENER
    if bare == name:
        return scope is not Scope.LISTENER
    return scope is not Scope.BROKER and _names_one_of(listeners, name)


def _names_one_of(listeners: Collection[str], name: str) -> bool:
    return name.startswith(tuple(listener_prefix(listener) for listener in listeners))


def _mistake(name: str, listeners: Collection[str]) -> str:
    """Why the setting, or its prefix, does not have the effect that its author expects."""
    bare = unprefixed(name)
    is_prefixed = bare != name and not name.startswith(CLUSTER_PREFIX)
    if is_prefixed and not _names_one_of(listeners, name):
        prefixes = ", ".join(listener_prefix(listener) for listener in listeners)
        return f"no effect, because it names no listener; prefixes are {prefixes}"
    if bare == "sasl.jaas.config":
        prefix = name.removesuffix(bare) or "listener.name.<listener>."
        return f"no effect, as in Kafka; write {prefix}plain.{bare}"
    if name.startswith("aclbroker.zookeeper.") and bare in DEFINITIONS:
        return "no effect, because the store is not in ZooKeeper"
    if name.startswith(ZOOKEEPER_PREFIXES):
        return ""
    if bare in DEFINITIONS and is_prefixed:
        return f"no effect with the prefix of a listener; write {bare}"
    if bare in DEFINITIONS:
        return f"no effect, as in Kafka; write listener.name.<listener>.{bare}"
    return ""


def _is_of(kafka: Collection[str], name: str) -> bool:
    bare = unprefixed(name)
    for mechanism in MECHANISMS:
        bare = bare.removeprefix(f"{mechanism.lower()}.")
    return bare in kafka or name.startswith(_PLUGIN_PREFIXES)


def _suggestion(name: str, kafka: Iterable[str]) -> str:
    bare = unprefixed(name)
    close = difflib.get_close_matches(bare, [*DEFINITIONS, *kafka], n=1, cutoff=0.8)
    if not close:
        return ""
    if name.startswith(CLUSTER_PREFIX):
        cluster_id = name.removeprefix(CLUSTER_PREFIX).partition(".")[0]
        return f"; did you mean {close[0].replace('<id>', cluster_id)}?"
    return f"; did you mean {name.removesuffix(bare)}{close[0]}?"
