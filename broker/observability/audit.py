"""The audit log: a record of who was allowed or denied what, and why.

Levels are those of Kafka's StandardAuthorizer: a denial is info and an allowed action debug, but
what only filters an answer or fills an authorized-operations field is trace.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from enum import IntEnum
from functools import lru_cache
from ipaddress import IPv6Address
from time import time
from typing import Any, Final, NamedTuple

from aclbroker.broker.acl.authorizer import Decision, RequestContext, Rule
from aclbroker.broker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.broker.config.model import Config
from aclbroker.broker.observability.audit_file import AuditFile
from aclbroker.broker.observability.logs import LogOutput, escape, json_line
from aclbroker.protocol.messages import APIS

Decided = tuple[str | None, int, Decision]
"""A resource's name, how often the request names it, and what was decided."""

# A request may name a million topics: their records are not all held in memory at once.
_RECORDS_AT_ONCE: Final = 500


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
        least = _LEAST[config.audit_level]
        self._wanted = tuple(
            tuple(allowed for allowed in (False, True) if _level(allowed, log_if_denied) >= least)
            for log_if_denied in (False, True)
        )
        self._is_kafka = config.audit_format == "kafka"
        self._cluster_id = cluster_id
        self._node_id = config.node_id
        self._output = output
        path = None if least is _Level.OFF else config.audit_file
        self._file = None if path is None else AuditFile(path)

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        """Return which decisions are recorded: of the denied (False) and the allowed ones (True).

        Without ``log_if_denied`` the decisions only filter an answer.
        """
        return self._wanted[log_if_denied]

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[Decided],
        *,
        log_if_denied: bool = True,
    ) -> None:
        """Record decisions that are `wanted`. If they cannot be written it does not raise."""
        for first in range(0, len(decided), _RECORDS_AT_ONCE):
            some = decided[first : first + _RECORDS_AT_ONCE]
            records = _Records(context, operation, resource_type, log_if_denied, time())
            if self._is_kafka:
                lines = _kafka_lines(records, some)
            elif self._file is None and not self._output.is_json:
                lines = [self._output.rendered(event) for event in self._events(records, some)]
            else:
                lines = self._json_lines(records, some)
            if self._file is None:
                self._output.write_lines(lines)
            else:
                self._file.write(lines)

    def reopen(self) -> None:
        """Open the file anew, after a log rotation."""
        if self._file is not None:
            self._file.reopen()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self._file.close()

    def _json_lines(self, records: _Records, decided: Sequence[Decided]) -> list[str]:
        """Return `_events` as JSON lines; what they have in common is encoded once."""
        heads: dict[bool, str] = {}
        tails: dict[int, str] = {}
        lines = []
        for name, count, decision in decided:
            allowed = decision.allowed
            if allowed not in heads:
                heads[allowed] = json_line(self._head(records, allowed))[:-1]
            # All denials by default, for example, are the same object.
            if id(decision) not in tails:
                tails[id(decision)] = json_line(_tail(records.context, decision))[1:]
            lines.append(
                f'{heads[allowed]},"resource_name":{json_line(name)},'
                f'"resource_ref_count":{count},{tails[id(decision)]}'
            )
        return lines

    def _events(self, records: _Records, decided: Sequence[Decided]) -> Iterator[dict[str, Any]]:
        """Yield the records with the keys of docs/audit.md."""
        for name, count, decision in decided:
            resource = {"resource_name": name, "resource_ref_count": count}
            head = self._head(records, decision.allowed)
            yield head | resource | _tail(records.context, decision)

    def _head(self, records: _Records, allowed: bool) -> dict[str, Any]:
        """The keys before the resource's name."""
        session = records.context.session
        now = datetime.fromtimestamp(records.time, UTC).isoformat(timespec="microseconds")
        return {
            "timestamp": now.replace("+00:00", "Z"),
            "level": _level(allowed, records.log_if_denied).name.lower(),
            "event": "authorization",
            "cluster_id": self._cluster_id,
            "node_id": self._node_id,
            "listener": session.listener,
            "principal": session.principals[0],
            "host": session.host,
            "operation": records.operation.name,
            "resource_type": records.resource_type.name,
            "pattern_type": PatternType.LITERAL.name,
        }


class _Records(NamedTuple):
    """What the records of one check have in common."""

    context: RequestContext
    operation: AclOperation
    resource_type: ResourceType
    log_if_denied: bool
    time: float


def _level(allowed: bool, log_if_denied: bool) -> _Level:
    if allowed:
        return _Level.DEBUG
    return _Level.INFO if log_if_denied else _Level.TRACE


def _tail(context: RequestContext, decision: Decision) -> dict[str, Any]:
    """The keys after the resource's name and count."""
    rule = decision.rule
    tail = {
        "api_name": _api_name(context.api_key),
        "api_version": context.api_version,
        "client_id": context.client_id,
        "correlation_id": context.correlation_id,
        "allowed": decision.allowed,
        "rule": rule.kind.value,
        "acl": _acl(rule.binding),
    }
    if len(context.session.principals) > 1:
        tail["principals"] = context.session.principals
    return tail


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


def _kafka_lines(records: _Records, decided: Sequence[Decided]) -> list[str]:
    """The lines of Kafka 4.3's kafka.authorizer.logger with log4j's pattern `[%d] %p %m (%c)`.

    Unlike there, control characters and backslashes in names are escaped: in Kafka a client can
    forge lines by a group id with a line break.
    """
    session = records.context.session
    now = datetime.fromtimestamp(records.time).isoformat(" ", "milliseconds").replace(".", ",")
    principal = escape(session.principals[0])
    asked = f"operation = {records.operation.name} from host = {_java_address(session.address)}"
    resource_type = records.resource_type.name.title().replace("_", "")
    api_name = _api_name(records.context.api_key)
    levels = [_level(allowed, records.log_if_denied).name for allowed in (False, True)]
    return [
        f"[{now}] {levels[decision.allowed]} Principal = {principal} is "
        f"{'Allowed' if decision.allowed else 'Denied'} {asked} "
        f"on resource = {resource_type}:LITERAL:{'null' if name is None else escape(name)} "
        f"for request = {api_name} with resourceRefCount = {count} "
        f"based on rule {_kafka_rule(decision.rule)} (kafka.authorizer.logger)"
        for name, count, decision in decided
    ]


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
