"""Reads a file and overrides into a `Config`, or tells everything that is wrong with them."""

from collections.abc import Mapping

from aclbroker.broker.acl.settings import inter_broker_listener
from aclbroker.broker.config.definition import Scope
from aclbroker.broker.config.definitions import DEFINITIONS
from aclbroker.broker.config.endpoints import parse_endpoints
from aclbroker.broker.config.listeners import reachable_listeners, read_listeners
from aclbroker.broker.config.model import NO_AUTHORIZER, Config, ConfigError, Listener
from aclbroker.broker.config.names import warn_without_effect
from aclbroker.broker.config.properties import Setting, override_settings, read_properties
from aclbroker.broker.config.reader import Reader, Report, unprefixed

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
    settings = dict(_WITHOUT_FILE)
    if path is not None:
        settings, warnings = read_properties(path)
        report.warnings += warnings
    settings |= override_settings(overrides or {})
    reader = Reader(settings, report)
    _refuse_provider_references(reader)
    # Settings without a field are read, too, so that a bad value is told now.
    values = {
        name: reader.value(name)
        for name, definition in DEFINITIONS.items()
        if definition.field or definition.scope is Scope.BROKER
    }
    fields = {DEFINITIONS[name].field: value for name, value in values.items()}
    del fields[""]
    fields["node_id"] = _node_id(reader)
    _check_connection_limits(reader)
    _check_failure_delay(reader)
    listeners = read_listeners(reader)
    if path is None:
        _check_without_file(reader, listeners)
    warn_without_effect(settings.values(), *_listener_names(reader), report)
    if report.problems:
        raise ConfigError(tuple(report.problems), tuple(report.warnings))
    _warn_of_open_doors(reader, listeners)
    properties = {name: setting.value for name, setting in settings.items()}
    _warn_of_broker_users(reader, listeners, inter_broker_listener(properties))
    return Config(
        **fields,
        listeners=listeners,
        properties=properties,
        warnings=tuple(report.warnings),
        notes=tuple(report.notes),
    )


def shown_settings(config: Config) -> dict[str, str]:
    """The settings that DescribeConfigs may tell: the known ones that are no secrets."""
    definitions = {name: DEFINITIONS.get(unprefixed(name)) for name in config.properties}
    return {
        name: config.properties[name]
        for name, definition in definitions.items()
        if definition is not None and not definition.secret
    }


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


def _refuse_provider_references(reader: Reader) -> None:
    """Refuse `${provider:...}`: Kafka would replace it, and here it would be taken as the value."""
    providers = reader.settings.get("config.providers")
    names = providers.value.split(",") if providers else []
    references = tuple("${" + name.strip() + ":" for name in names if name.strip())
    for setting in reader.settings.values():
        known = unprefixed(setting.name) in DEFINITIONS
        if known and any(reference in setting.value for reference in references):
            reader.report.refuse(setting, "config.providers are not supported", "the value itself")


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
