"""The audit log: a record of who was allowed or denied what, and why.

Levels are those of Kafka's StandardAuthorizer: a denial is info and an allowed action debug, but
what only filters an answer or fills an authorized-operations field is trace.
"""

from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv6Address
from time import time
from typing import Any

from broker.acl.authorizer import Action, Decision, RequestContext, Rule
from broker.acl.bindings import AclBinding, PatternType
from broker.audit_file import AuditFile
from broker.config.model import Config
from broker.logs import LogOutput, escape, json_line
from protocol.messages import APIS


class _Level(IntEnum):
    TRACE = 0
    DEBUG = 1
    INFO = 2
    OFF = 3


_LEAST = {"off": _Level.OFF, "denied": _Level.INFO, "all": _Level.DEBUG, "trace": _Level.TRACE}


class Audit:
    """Records decisions in the form and at the place that the configuration names.

    Without `aclbroker.audit.file` records go to the log's output, whatever the log's level. Raises
    OSError if the file cannot be opened.
    """

    def __init__(self, config: Config, cluster_id: str, output: LogOutput) -> None:
        self._least = _LEAST[config.audit_level]
        self._is_kafka = config.audit_format == "kafka"
        self._cluster_id = cluster_id
        self._node_id = config.node_id
        self._output = output
        path = None if self._least is _Level.OFF else config.audit_file
        self._file = None if path is None else AuditFile(path)

    def wants(self, allowed: bool, action: Action) -> bool:
        """Whether such a decision is recorded; ask this first, as it is cheap."""
        return _level(allowed, action) >= self._least

    def record(self, context: RequestContext, action: Action, decision: Decision) -> None:
        """Record a decision, if its kind is wanted. It never raises for want of a place."""
        level = _level(decision.allowed, action)
        if level < self._least:
            return
        if self._is_kafka:
            line = _kafka_line(level, context, action, decision)
            if self._file is None:
                self._output.write_line(line)
            else:
                self._file.write(line)
        else:
            event = self._event(level, context, action, decision)
            if self._file is None:
                self._output.write_event(event)
            else:
                self._file.write(json_line(event))

    def reopen(self) -> None:
        """Open the file anew, after a log rotation."""
        if self._file is not None:
            self._file.reopen()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _event(
        self, level: _Level, context: RequestContext, action: Action, decision: Decision
    ) -> dict[str, Any]:
        """The record with the keys of docs/audit.md."""
        session = context.session
        rule = decision.rule
        now = datetime.fromtimestamp(time(), UTC).isoformat(timespec="microseconds")
        event = {
            "timestamp": now.replace("+00:00", "Z"),
            "level": level.name.lower(),
            "event": "authorization",
            "cluster_id": self._cluster_id,
            "node_id": self._node_id,
            "listener": session.listener,
            "principal": session.principals[0],
            "host": session.host,
            "operation": action.operation.name,
            "resource_type": action.resource_type.name,
            "pattern_type": PatternType.LITERAL.name,
            "resource_name": action.resource_name,
            "resource_ref_count": action.reference_count,
            "api_name": _api_name(context.api_key),
            "api_version": context.api_version,
            "client_id": context.client_id,
            "correlation_id": context.correlation_id,
            "allowed": decision.allowed,
            "rule": rule.kind.value,
            "acl": _acl(rule.binding),
        }
        if len(session.principals) > 1:
            event["principals"] = session.principals
        return event


def _level(allowed: bool, action: Action) -> _Level:
    if allowed:
        return _Level.DEBUG if action.log_if_allowed else _Level.TRACE
    return _Level.INFO if action.log_if_denied else _Level.TRACE


def _acl(binding: AclBinding | None) -> dict[str, str] | None:
    if binding is None:
        return None
    return {
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern_type": binding.pattern_type.name,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission_type": binding.permission.name,
    }


def _kafka_line(level: _Level, context: RequestContext, action: Action, decision: Decision) -> str:
    """The line of Kafka 4.3's kafka.authorizer.logger with log4j's pattern `[%d] %p %m (%c)`.

    Unlike there, control characters and backslashes in names are escaped: in Kafka a group id with
    a line break writes whatever line a client likes.
    """
    now = datetime.fromtimestamp(time()).isoformat(" ", "milliseconds").replace(".", ",")
    resource_type = action.resource_type.name.title().replace("_", "")
    name = "null" if action.resource_name is None else escape(action.resource_name)
    verdict = "Allowed" if decision.allowed else "Denied"
    return (
        f"[{now}] {level.name} Principal = {escape(context.session.principals[0])} is {verdict} "
        f"operation = {action.operation.name} from host = {_java_address(context.session.address)} "
        f"on resource = {resource_type}:LITERAL:{name} "
        f"for request = {_api_name(context.api_key)} "
        f"with resourceRefCount = {action.reference_count} "
        f"based on rule {_kafka_rule(decision.rule)} (kafka.authorizer.logger)"
    )


def _kafka_rule(rule: Rule) -> str:
    if rule.kind.value != "MatchingAcl":
        return rule.kind.value
    if rule.binding is None:
        return "MatchingAcl(acl=null)"
    acl = rule.binding
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType={acl.resource_type.name}, "
        f"resourceName={escape(acl.resource_name)}, patternType={acl.pattern_type.name}, "
        f"principal={escape(acl.principal)}, host={escape(acl.host)}, "
        f"operation={acl.operation.name}, permissionType={acl.permission.name}])"
    )


@lru_cache(maxsize=1024)
def _java_address(address: str) -> str:
    """The address as Java prints it: the eight groups of an IPv6 address in full, without zeros."""
    try:
        parsed = IPv6Address(address)
    except ValueError:
        return escape(address)
    groups = (parsed.packed[i] << 8 | parsed.packed[i + 1] for i in range(0, 16, 2))
    scope = f"%{parsed.scope_id}" if parsed.scope_id else ""
    return escape(":".join(f"{group:x}" for group in groups) + scope)


def _api_name(api_key: int) -> str:
    api = APIS.get(api_key)
    return f"ApiKey{api_key}" if api is None else api.name
