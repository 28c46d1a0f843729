"""Reads a file and overrides into a `Config`, or tells everything that is wrong with them."""

import os
import re
from collections.abc import Mapping
from typing import Any

from aclbroker.acl.settings import inter_broker_listener
from aclbroker.broker.config.access_rules import (
    MIGRATES,
    PROVIDERS,
    AccessRuleError,
    AccessRules,
    access_rules,
)
from aclbroker.broker.config.clusters import (
    read_clusters,
    read_metadata_listeners,
    warn_of_clusters,
)
from aclbroker.broker.config.definition import Scope
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.endpoints import is_loopback, parse_endpoints
from aclbroker.broker.config.listeners import reachable_listeners, read_listeners
from aclbroker.broker.config.metadata_definitions import METADATA_PREFIX
from aclbroker.broker.config.model import NO_AUTHORIZER, Config, ConfigError, Listener
from aclbroker.broker.config.names import is_known, warn_without_effect
from aclbroker.broker.config.properties import (
    display_name,
    override_settings,
    read_properties,
)
from aclbroker.broker.config.providers import resolved
from aclbroker.broker.config.reader import Reader, Report, unprefixed
from aclbroker.broker.config.setting import Setting
from aclbroker.broker.config.store_url import (
    CONFLUENT_AUTHORIZER,
    ZOOKEEPER,
    store_url,
    topics_of,
)
from aclbroker.broker.config.topic_defaults import topic_defaults
from aclbroker.broker.config.upstream_definitions import (
    BOOTSTRAP_SERVERS,
    FIRST_PORT,
    UPSTREAM_PREFIX,
)

_NEXT_PRINCIPAL = re.compile(r"[,\s]\s*[A-Za-z]+:")

_LIKE_A_REFERENCE = re.compile(r"\$\{(file|env|dir|directory|secrets?):[^}]+\}")
_SHORTEST_TOKEN = 16
_NO_FILE = "default without a file"
# Without a file everybody on this machine may change ACLs, and nobody else can connect.
_WITHOUT_FILE = {
    "listeners": Setting("listeners", "PLAINTEXT://127.0.0.1:9092", _NO_FILE),
    "super.users": Setting("super.users", "User:ANONYMOUS", _NO_FILE),
}


def load(path: str | None = None, overrides: Mapping[str, str] | None = None) -> Config:
    """The configuration in the file, if there is one, with the overrides on top.

    Raises ConfigError with all problems at once.
    """
    report = Report()
    settings = _settings(path, overrides or {}, report)
    reader = Reader(settings, report)
    fields = _fields(reader)
    for check in (
        _check_connection_limits,
        _check_failure_delay,
        _check_audit_files,
        _check_cluster,
        _check_upstream,
        _check_groups,
        _check_faults,
    ):
        check(reader)
    listeners = read_listeners(reader)
    clusters = read_clusters(reader, listeners)
    metadata_listeners = read_metadata_listeners(reader, listeners, clusters)
    _check_workers(reader, has_metadata=bool(metadata_listeners))
    if path is None:
        _check_without_file(reader, listeners)
    elif not any(is_known(name) for name in settings):
        report.problems.append(
            f"{path}: has no setting of Kafka or aclbroker; allowed: a server.properties of Kafka"
        )
    properties = {name: setting.value for name, setting in settings.items()}
    fields["upstream"] = _upstream(reader)
    fields["store"] = store_url(properties)
    rules = _access_rules(reader, properties)
    if rules is not None and fields["workers"] > 1:
        reader.refuse("aclbroker.workers", "several providers are in one process", "1")
    stores = [fields["store"], *(each.store for each in (rules.providers if rules else ()))]
    fields["reserved_topics"] = topics_of([*stores, *(each.store for each in clusters)])
    _check_catalog(reader, fields["reserved_topics"])
    warn_without_effect(
        settings.values(),
        *_listener_names(reader),
        report,
        with_zookeeper=any(each.startswith(ZOOKEEPER) for each in stores),
    )
    if report.problems:
        raise ConfigError(tuple(report.problems), tuple(report.warnings))
    _warn_of_open_doors(reader, listeners)
    warn_of_clusters(reader, listeners, clusters)
    _warn_of_broker_users(reader, listeners, inter_broker_listener(properties))
    return Config(
        **fields,
        topic_defaults=topic_defaults(reader),
        listeners=listeners,
        clusters=clusters,
        metadata_listeners=metadata_listeners,
        properties=properties,
        warnings=tuple(report.warnings),
        notes=tuple(report.notes),
    )


def _settings(path: str | None, overrides: Mapping[str, str], report: Report) -> dict[str, Setting]:
    """Return what is set, with references resolved. Raises ConfigError if one of them cannot be."""
    settings = dict(_WITHOUT_FILE)
    if path is not None:
        settings, warnings = read_properties(path)
        report.warnings += warnings
    settings |= override_settings(overrides)
    _warn_of_references(settings, report)
    settings = resolved(settings, report.problems)
    if report.problems:
        raise ConfigError(tuple(report.problems), tuple(report.warnings))
    return settings


def _check_catalog(reader: Reader, reserved: frozenset[str]) -> None:
    """Refuse a topic that clients are to see and that keeps ACLs, which none may see."""
    name = "aclbroker.catalog.topics"
    for topic in sorted(reserved.intersection(reader.value(name))):
        why = f"topic {topic!r} keeps the ACLs of a store, and no client may see it"
        reader.refuse(name, why, "other topics than those of stores")


def _fields(reader: Reader) -> dict[str, Any]:
    """Return the values of all settings that are fields of the configuration."""
    # Settings without a field are read, too, so that a bad value is told now.
    values = {
        name: reader.value(name)
        for name, definition in DEFINITIONS.items()
        if definition.field or definition.scope is Scope.BROKER
    }
    fields = {DEFINITIONS[name].field: value for name, value in values.items()}
    del fields[""]
    return fields | {"node_id": _node_id(reader)}


def shown_settings(properties: Mapping[str, str]) -> dict[str, str]:
    """The settings that DescribeConfigs may tell: the known ones that are no secrets."""
    definitions = {name: DEFINITIONS.get(unprefixed(name)) for name in properties}
    return {
        name: properties[name]
        for name, definition in definitions.items()
        if definition is not None and not definition.secret
    }


def _access_rules(reader: Reader, properties: Mapping[str, str]) -> AccessRules | None:
    """The providers that decide together; what is wrong with them is reported."""
    try:
        rules = access_rules(properties)
    except AccessRuleError as error:
        reader.refuse(error.setting, error.reason, error.allowed)
        return None
    for name in (PROVIDERS, MIGRATES):
        if rules is None and reader.given(name):
            reader.report.warn(
                f"{reader.setting(name).origin}: {name}: no effect, because authorizer.class.name "
                f"is not {CONFLUENT_AUTHORIZER}"
            )
    return rules


def _node_id(reader: Reader) -> int:
    broker_id: int = reader.value("broker.id")
    node_id: int | None = reader.value("node.id")
    if node_id is None:
        return broker_id
    if reader.given("broker.id") and broker_id != node_id:
        setting = reader.setting("node.id")
        reader.report.refuse(setting, "differs from broker.id", f"{broker_id}, or only one of them")
    return node_id


def _check_connection_limits(reader: Reader) -> None:
    if reader.value("max.connections.per.ip") == 0 and not reader.value(
        "max.connections.per.ip.overrides"
    ):
        setting = reader.setting("max.connections.per.ip")
        reader.report.refuse(
            setting, "nobody could connect", "0 only beside max.connections.per.ip.overrides"
        )


def _check_failure_delay(reader: Reader) -> None:
    name, idle = "connection.failed.authentication.delay.ms", "connections.max.idle.ms"
    if 0 <= reader.value(idle) <= reader.value(name):
        reader.refuse(name, f"not below {idle}", f"less than {reader.value(idle)}")


def _check_cluster(reader: Reader) -> None:
    if reader.value("aclbroker.cluster") == "memory":
        if reader.value("aclbroker.catalog.groups"):
            reader.refuse(
                "aclbroker.catalog.groups",
                "the cluster in memory has the groups that clients make",
                "nothing beside aclbroker.cluster=memory",
            )
    elif reader.value("aclbroker.nodes") > 1:
        reader.refuse("aclbroker.nodes", "there is one node", "1 without aclbroker.cluster=memory")


def _upstream(reader: Reader) -> dict[str, Setting]:
    """The settings of the cluster behind a gateway; empty if there is none."""
    if reader.value(BOOTSTRAP_SERVERS) is None:
        return {}
    return {
        name: setting
        for name, setting in reader.settings.items()
        if name.startswith(UPSTREAM_PREFIX)
    }


def _check_upstream(reader: Reader) -> None:
    """Refuse settings of a cluster of our own beside a cluster upstream."""
    if reader.value(BOOTSTRAP_SERVERS) is None:
        given = [name for name in reader.settings if name.startswith(UPSTREAM_PREFIX)]
        if given:
            reader.report.warn(
                f"{reader.settings[given[0]].origin}: {given[0]}: no effect without "
                f"{BOOTSTRAP_SERVERS}"
            )
        return
    needed = f"nothing beside {BOOTSTRAP_SERVERS}"
    if reader.value("aclbroker.cluster") == "memory":
        reader.refuse("aclbroker.cluster", "the cluster is the one upstream", needed)
    for name in ("aclbroker.catalog.topics", "aclbroker.catalog.groups"):
        if reader.value(name):
            reader.refuse(name, "topics and groups are those of the cluster upstream", needed)


def _check_workers(reader: Reader, *, has_metadata: bool) -> None:
    name = "aclbroker.workers"
    if reader.value(name) == 1:
        return
    if not hasattr(os, "fork"):
        reader.refuse(name, "this system cannot fork a process", "1")
    if any(name.endswith(FIRST_PORT) for name in reader.settings):
        reader.refuse(name, "one process opens the ports of brokers", f"1 beside {FIRST_PORT}")
    if reader.value("aclbroker.cluster") == "memory":
        needed = "1 with aclbroker.cluster=memory"
        reader.refuse(name, "a cluster in memory is in one process", needed)
    key = f"{METADATA_PREFIX}token.key.path"
    if has_metadata and reader.value(key) is None:
        reader.refuse(
            name,
            "each worker would sign tokens with a random key of its own",
            f"1, or {key} beside it",
        )


def _check_groups(reader: Reader) -> None:
    least, most = "group.min.session.timeout.ms", "group.max.session.timeout.ms"
    if reader.value(least) > reader.value(most):
        reader.refuse(least, f"above {most}", f"at most {reader.value(most)}")


def _check_faults(reader: Reader) -> None:
    name, token = "aclbroker.faults.address", reader.value("aclbroker.faults.token")
    address = reader.value(name)
    if token is not None and len(token) < _SHORTEST_TOKEN:
        needed = f"at least {_SHORTEST_TOKEN} characters, or empty"
        reader.refuse("aclbroker.faults.token", "too short", needed)
    if address is None:
        return
    if reader.value("aclbroker.cluster") != "memory":
        reader.refuse(name, "faults are for tests", "empty without aclbroker.cluster=memory")
    if token is None and not is_loopback(address[0]):
        reader.refuse(
            name,
            "whoever can reach it could let requests fail",
            "an address such as 127.0.0.1:9405, or aclbroker.faults.token beside it",
        )


def _check_audit_files(reader: Reader) -> None:
    name = "aclbroker.audit.files.max.total.bytes"
    total, most = reader.value(name), reader.value("aclbroker.audit.file.max.bytes")
    if total and not most:
        needed = "0, or a limit beside aclbroker.audit.file.max.bytes"
        reader.refuse(name, "one file has no limit", needed)
    elif total and total < 2 * most:
        reader.refuse(name, "less than two files", f"0, or at least {2 * most}")


def _warn_of_references(settings: Mapping[str, Setting], report: Report) -> None:
    """Warn of `${file:...}` and the like that nobody replaces, since the provider has no name."""
    names = settings.get("config.providers")
    for name, setting in settings.items():
        if names is None and _LIKE_A_REFERENCE.search(setting.value):
            report.warn(
                f"{setting.origin}: {display_name(name)} is taken as it stands, with its ${{...}}: "
                "config.providers names no provider"
            )


def _check_without_file(reader: Reader, listeners: tuple[Listener, ...]) -> None:
    setting = reader.setting("super.users")
    if setting.origin != _NO_FILE:
        return
    if reachable_listeners(listeners):
        reader.report.refuse(
            reader.setting("listeners"),
            "without a file, super.users is User:ANONYMOUS, so whoever can connect may do anything",
            "loopback addresses such as 127.0.0.1, or a file or an override with super.users",
        )
        return
    addresses = ", ".join(
        f"{listener.security_protocol}://{listener.host}:{listener.port}" for listener in listeners
    )
    reader.report.warn(
        f"no configuration file: listening on {addresses} with super.users={setting.value}, so "
        "everybody on this machine may change ACLs"
    )


def _warn_of_open_doors(reader: Reader, listeners: tuple[Listener, ...]) -> None:
    if reader.value("authorizer.class.name") == NO_AUTHORIZER:
        origin = reader.setting("authorizer.class.name").origin
        reader.report.warn(f"{origin}: there is no authorizer, so everything is allowed")
        return
    for name in ("super.users", "broker.users"):
        _warn_of_commas(reader, name)
    super_users = reader.value("super.users")
    if not super_users:
        reader.report.warn("super.users is empty: only whom an ACL allows it can change ACLs")
    if "User:ANONYMOUS" in super_users:
        for listener in reachable_listeners(listeners):
            if listener.admits_anybody:
                reader.report.warn(
                    f"super.users holds User:ANONYMOUS: whoever reaches listener {listener.name} "
                    "may do anything"
                )


def _warn_of_commas(reader: Reader, name: str) -> None:
    """Warn of a list with commas or blanks. They may stand in a name, such as a certificate's."""
    for principal in reader.value(name):
        if _NEXT_PRINCIPAL.search(principal):
            reader.report.warn(
                f"{reader.setting(name).origin}: {name}: {principal!r} is one principal, because "
                "semicolons separate them"
            )


def _warn_of_broker_users(reader: Reader, listeners: tuple[Listener, ...], name: str) -> None:
    if reader.value("broker.users") and name not in {listener.name for listener in listeners}:
        reader.report.warn(
            f"broker.users has no effect: brokers use listener {name}, which is not in listeners"
        )


def _listener_names(reader: Reader) -> tuple[list[str], list[str]]:
    """The names of the broker's own listeners, and those of a controller's."""
    controllers = [name.upper() for name in reader.value("controller.listener.names")]
    try:
        endpoints = parse_endpoints(reader.value("listeners"))
    except ValueError:
        endpoints = []
    own = [endpoint.name for endpoint in endpoints if endpoint.name not in controllers]
    return own, controllers
