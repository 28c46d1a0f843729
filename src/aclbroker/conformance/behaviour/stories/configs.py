"""Stories of the configurations of topics."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import (
    ApiKey,
    alter_configs,
    describe_configs,
    incremental_alter_configs,
)

_TOPIC: Final = 2
_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_SETTINGS: Final = (
    "cleanup.policy",
    "max.compaction.lag.ms",
    "max.message.bytes",
    "message.timestamp.type",
    "retention.ms",
)


def _described(teller: Teller, *settings: str, topic: str = "orders") -> Any:
    resource = describe_configs.DescribeConfigsResource(
        _TOPIC, teller.name(topic), settings or None
    )
    return describe_configs.DescribeConfigsRequest([resource])


def configs_are_described(teller: Teller) -> None:
    """Tell which settings of a topic are shown, and where they come from."""
    teller.ask_each(ApiKey.DESCRIBE_CONFIGS, _described(teller, *_SETTINGS))
    synonyms = _described(teller, "retention.ms", "cleanup.policy")
    synonyms.include_synonyms = True
    teller.ask_each(ApiKey.DESCRIBE_CONFIGS, synonyms, "with synonyms")
    teller.ask(ApiKey.DESCRIBE_CONFIGS, _described(teller, "colour"), "an unknown setting")
    missing = _described(teller, *_SETTINGS, topic="nowhere")
    teller.ask(ApiKey.DESCRIBE_CONFIGS, missing, "of a topic that is not there")
    twice = _described(teller, "retention.ms")
    twice.resources = [*twice.resources, *twice.resources]
    teller.ask(ApiKey.DESCRIBE_CONFIGS, twice, "a topic twice")
    nameless = _described(teller, "retention.ms")
    nameless.resources[0].resource_name = ""
    teller.ask(ApiKey.DESCRIBE_CONFIGS, nameless, "without a name")


def configs_are_changed_one_by_one(teller: Teller) -> None:
    """Tell which single settings can be changed, and what is shown then."""
    m = incremental_alter_configs

    def alter(
        about: str, *changes: tuple[str, int, str | None], topic: str = "orders", dry: bool = False
    ) -> None:
        configs = [m.AlterableConfig(*each) for each in changes]
        resource = m.AlterConfigsResource(_TOPIC, teller.name(topic), configs)
        request = m.IncrementalAlterConfigsRequest([resource], dry)
        teller.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, about)
        teller.settle()
        teller.ask(ApiKey.DESCRIBE_CONFIGS, _described(teller, *_SETTINGS), f"after {about}")

    alter("set", ("retention.ms", _SET, "60000"), ("max.message.bytes", _SET, "5000"))
    alter("only looked at", ("retention.ms", _SET, "70000"), dry=True)
    alter("deleted", ("retention.ms", _DELETE, None))
    alter("deleted again", ("retention.ms", _DELETE, None))
    alter("appended", ("cleanup.policy", _APPEND, "compact"))
    alter("appended again", ("cleanup.policy", _APPEND, "compact"))
    alter("subtracted", ("cleanup.policy", _SUBTRACT, "delete"))
    alter("appended to what is no list", ("retention.ms", _APPEND, "5"))
    alter("of a bad value", ("retention.ms", _SET, "soon"))
    alter("of a value too low", ("max.message.bytes", _SET, "-5"))
    alter("of no value", ("retention.ms", _SET, None))
    alter("of an unknown setting", ("colour", _SET, "red"))
    alter("of an unknown policy", ("cleanup.policy", _SET, "compact,burn"))
    alter("an unknown operation", ("retention.ms", 9, "5"))
    alter("one twice", ("retention.ms", _SET, "5"), ("retention.ms", _SET, "6"))
    alter("one right, one wrong", ("retention.ms", _SET, "5"), ("colour", _SET, "red"))
    alter("none")
    alter("of a topic that is not there", ("retention.ms", _SET, "5"), topic="nowhere")


def configs_are_replaced(teller: Teller) -> None:
    """Tell how all settings of a topic are replaced at once."""
    m = alter_configs

    def alter(
        about: str, *settings: tuple[str, str | None], topic: str = "orders", dry: bool = False
    ) -> None:
        configs = [m.AlterableConfig(*each) for each in settings]
        resource = m.AlterConfigsResource(_TOPIC, teller.name(topic), configs)
        request = m.AlterConfigsRequest([resource], dry)
        teller.ask(ApiKey.ALTER_CONFIGS, request, about)
        teller.settle()
        teller.ask(ApiKey.DESCRIBE_CONFIGS, _described(teller, *_SETTINGS), f"after {about}")

    alter("two", ("retention.ms", "60000"), ("cleanup.policy", "compact"))
    alter("only looked at", ("retention.ms", "70000"), dry=True)
    alter("another", ("max.message.bytes", "5000"))
    alter("of a bad value", ("retention.ms", "soon"))
    alter("of an unknown setting", ("colour", "red"))
    alter("of no value", ("retention.ms", None))
    alter("of a topic that is not there", ("retention.ms", "5"), topic="nowhere")
    alter("none")


_ONE: Final = {"orders": TopicWanted(is_plain=True)}
STORIES: Final = (
    Story(configs_are_described, {"orders": TopicWanted(configs={"retention.ms": "120000"})}),
    Story(configs_are_changed_one_by_one, _ONE),
    Story(configs_are_replaced, _ONE),
)
