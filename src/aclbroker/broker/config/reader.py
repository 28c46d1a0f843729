"""Looks settings up as Kafka does, with and without a listener's prefix, and collects problems."""

from collections.abc import Mapping
from typing import Any

from aclbroker.broker.config.definition import Scope
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.metadata_definitions import CLUSTER_PREFIX, METADATA_PREFIX
from aclbroker.broker.config.setting import Setting
from aclbroker.broker.urls import without_login


class Report:
    """What was found while reading: `problems` prevent the start, `warnings` and `notes` do not."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self.warnings: list[str] = []
        self.notes: list[str] = []

    def refuse(self, setting: Setting, reason: str, allowed: str) -> None:
        """Add a problem that names place, setting, value (unless secret), and what is allowed."""
        shown = setting.name
        if not DEFINITIONS[unprefixed(setting.name)].secret:
            shown += f"={setting.written or without_login(setting.value)!r}"
            if setting.written is not None:
                # The reason may hold some of the value.
                reason = "what it refers to is not allowed here"
        problem = f"{setting.origin}: {shown}: {reason}; allowed: {allowed}"
        if problem not in self.problems:
            self.problems.append(problem)

    def warn(self, warning: str) -> None:
        """Add a warning, once."""
        if warning not in self.warnings:
            self.warnings.append(warning)


def listener_prefix(listener: str) -> str:
    """The prefix of a listener's own settings: Kafka writes the name in lower case.

    A listener of the HTTP API has a URL for a name, and a prefix together with the others of it.
    """
    if "://" in listener:
        return METADATA_PREFIX
    return f"listener.name.{listener.lower()}."


def unprefixed(name: str) -> str:
    """The name in the table: without `listener.name.<listener>.`, with `<id>` for a cluster's."""
    if name.startswith(f"{METADATA_PREFIX}ssl."):
        return name.removeprefix(METADATA_PREFIX)
    if name.startswith(CLUSTER_PREFIX):
        _, dot, rest = name.removeprefix(CLUSTER_PREFIX).partition(".")
        return f"{CLUSTER_PREFIX}<id>.{rest}" if dot else name
    if not name.startswith("listener.name."):
        return name
    return name.removeprefix("listener.name.").partition(".")[2]


class Reader:
    """Typed access to settings; a value that is not allowed is reported, and read as default."""

    def __init__(self, settings: Mapping[str, Setting], report: Report) -> None:
        self.settings = settings
        self.report = report

    def setting(self, name: str, listener: str = "") -> Setting:
        """The setting that counts for the listener: its own, the broker's, or the default."""
        definition = DEFINITIONS[name]
        if listener:
            own = self.settings.get(listener_prefix(listener) + name)
            if own is not None:
                return own
        if definition.scope is not Scope.LISTENER and name in self.settings:
            return self.settings[name]
        return Setting(name, definition.default or "", "default")

    def given(self, name: str, listener: str = "") -> bool:
        """Whether somebody wrote the setting, so that it is not the default."""
        return self.setting(name, listener).origin != "default"

    def value(self, name: str, listener: str = "") -> Any:
        """The parsed value; None if it is not set and the default depends on other things."""
        definition = DEFINITIONS[name]
        setting = self.setting(name, listener)
        if not self.given(name, listener):
            return self._default(name)
        try:
            return definition.type.parse(setting.value)
        except ValueError as error:
            self.report.refuse(setting, str(error), definition.type.allowed)
            return self._default(name)

    def refuse(self, name: str, reason: str, allowed: str = "", listener: str = "") -> None:
        """Report that the setting that counts for the listener cannot be used."""
        setting = self.setting(name, listener)
        self.report.refuse(setting, reason, allowed or DEFINITIONS[name].type.allowed)

    def cluster_setting(self, cluster_id: str, name: str) -> Setting:
        """The setting that counts for one of the further clusters: its own, or the default."""
        own = f"{CLUSTER_PREFIX}{cluster_id}.{name}"
        default = DEFINITIONS[f"{CLUSTER_PREFIX}<id>.{name}"].default
        return self.settings.get(own) or Setting(own, default or "", "default")

    def cluster_value(self, cluster_id: str, name: str) -> Any:
        """The parsed value of a cluster's setting; None if it is not set and has no default."""
        setting = self.cluster_setting(cluster_id, name)
        definition = DEFINITIONS[f"{CLUSTER_PREFIX}<id>.{name}"]
        if setting.origin == "default":
            return self._default(definition.name)
        try:
            return definition.type.parse(setting.value)
        except ValueError as error:
            self.report.refuse(setting, str(error), definition.type.allowed)
            return self._default(definition.name)

    def refuse_of_cluster(self, cluster_id: str, name: str, reason: str, allowed: str = "") -> None:
        """Report that a cluster's setting cannot be used."""
        setting = self.cluster_setting(cluster_id, name)
        allowed = allowed or DEFINITIONS[f"{CLUSTER_PREFIX}<id>.{name}"].type.allowed
        self.report.refuse(setting, reason, allowed)

    def mechanism_value(self, mechanism: str, name: str, listener: str) -> Any:
        """The parsed value of a setting that a listener may have for one mechanism alone."""
        return self.value(self.mechanism_name(mechanism, name, listener), listener)

    def mechanism_name(self, mechanism: str, name: str, listener: str) -> str:
        """The name of such a setting under which its value counts."""
        own = f"{mechanism.lower()}.{name}"
        return own if self.given(own, listener) else name

    def _default(self, name: str) -> Any:
        definition = DEFINITIONS[name]
        return None if definition.default is None else definition.type.parse(definition.default)
