"""Decided events as lines of a log: our JSON Lines (docs/audit.md), or Kafka 4.3's own text.

Most of a line is the same for all events of one action, so it is made once: a `Template` is the
line without its time, host, reference count and correlation id. The tests hold the lines to those
that `broker.observability.audit` writes.
"""

from __future__ import annotations

from sys import intern
from typing import Final, NamedTuple, Protocol

from aclbroker.acl.authorizer import Decision
from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.broker.observability.logs import json_line

CLUSTER_ID: Final = "synthetic-cluster-0001"
LISTENER: Final = "SASL_SSL"


class Asked(NamedTuple):
    """What the events of one template have in common: who asks for what, by which request.

    ``quietly``: the decision only filters an answer, so that a denial has the level TRACE.
    """

    principals: tuple[str, ...]
    operation: AclOperation
    resource_type: ResourceType
    name: str | None
    api: str
    api_version: int
    client_id: str
    node_id: int
    quietly: bool


class Kind(NamedTuple):
    """What the ground truth counts events by."""

    allowed: bool
    rule: str
    resource_type: str
    level: str


class Template(NamedTuple):
    """A line's constant parts, and the kind of its events."""

    parts: tuple[str, str, str, str]
    kind: Kind


class Form(Protocol):
    """A form of log lines."""

    def template(self, asked: Asked, decision: Decision) -> Template:
        """Return the template of the events of one decision."""

    def second(self, text: str) -> str:
        """Return how a line begins within a second: ``text`` is ``YYYY-MM-DD hh:mm:ss`` in UTC."""

    def line(
        self, second: str, micros: int, template: Template, host: str, count: int, correlation: int
    ) -> str:
        """Return the line of an event, with its line break."""


def level_of(allowed: bool, quietly: bool) -> str:
    """Return Kafka's level of a decision."""
    if allowed:
        return "DEBUG"
    return "TRACE" if quietly else "INFO"


def _kind(asked: Asked, decision: Decision) -> Kind:
    level = level_of(decision.allowed, asked.quietly)
    rule = decision.rule.kind.value
    return Kind(decision.allowed, rule, asked.resource_type.name, level)


class JsonLines:
    """The form that docs/audit.md calls `json`."""

    def template(self, asked: Asked, decision: Decision) -> Template:
        """Return the template of the events of one decision."""
        rule = decision.rule
        level = level_of(decision.allowed, asked.quietly)
        head = (
            f'"level":"{level.lower()}","event":"authorization","cluster_id":"{CLUSTER_ID}",'
            f'"node_id":{asked.node_id},"listener":"{LISTENER}",'
            f'"principal":{json_line(asked.principals[0])},"host":"'
        )
        resource = (
            f'","operation":"{asked.operation.name}","resource_type":"{asked.resource_type.name}",'
            f'"pattern_type":"LITERAL","resource_name":{json_line(asked.name)},"resource_ref_count":'
        )
        request = (
            f',"api_name":"{asked.api}","api_version":{asked.api_version},'
            f'"client_id":{json_line(asked.client_id)},"correlation_id":'
        )
        end: dict[str, object] = {
            "allowed": decision.allowed,
            "rule": rule.kind.value,
            "acl": _acl(rule.binding),
        }
        if len(asked.principals) > 1:
            end["principals"] = asked.principals
        tail = f",{json_line(end)[1:]}\n"
        # Equal parts are one object, so that many templates fit into memory.
        parts = intern(head), intern(resource), intern(request), intern(tail)
        return Template(parts, _kind(asked, decision))

    def second(self, text: str) -> str:
        """Return how a line begins within a second."""
        return f'{{"timestamp":"{text.replace(" ", "T")}.'

    def line(
        self, second: str, micros: int, template: Template, host: str, count: int, correlation: int
    ) -> str:
        """Return the line of an event, with its line break."""
        head, resource, request, tail = template.parts
        return f'{second}{micros:06}Z",{head}{host}{resource}{count}{request}{correlation}{tail}'


class KafkaText:
    """The form that docs/audit.md calls `kafka`, in UTC."""

    def template(self, asked: Asked, decision: Decision) -> Template:
        """Return the template of the events of one decision."""
        level = level_of(decision.allowed, asked.quietly)
        head = (
            f"] {level} Principal = {asked.principals[0]} is "
            f"{'Allowed' if decision.allowed else 'Denied'} "
            f"operation = {asked.operation.name} from host = "
        )
        resource_type = asked.resource_type.name.title().replace("_", "")
        name = "null" if asked.name is None else asked.name
        resource = (
            f" on resource = {resource_type}:LITERAL:{name} "
            f"for request = {asked.api} with resourceRefCount = "
        )
        tail = f" based on rule {_kafka_rule(decision)} (kafka.authorizer.logger)\n"
        parts = intern(head), intern(resource), intern(tail), ""
        return Template(parts, _kind(asked, decision))

    def second(self, text: str) -> str:
        """Return how a line begins within a second."""
        return f"[{text},"

    def line(
        self, second: str, micros: int, template: Template, host: str, count: int, correlation: int
    ) -> str:
        """Return the line of an event, with its line break."""
        head, resource, tail, _ = template.parts
        return f"{second}{micros // 1000:03}{head}{host}{resource}{count}{tail}"


def _acl(binding: AclBinding | None) -> dict[str, str] | None:
    if binding is None:
        return None
    return {
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern_type": PatternType(binding.pattern_type).name,
        "principal": binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission_type": binding.permission.name,
    }


def _kafka_rule(decision: Decision) -> str:
    kind, acl = decision.rule
    if acl is None:
        return kind.value
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType={acl.resource_type.name}, "
        f"resourceName={acl.resource_name}, patternType={acl.pattern_type.name}, "
        f"principal={acl.principal}, host={acl.host}, "
        f"operation={acl.operation.name}, permissionType={acl.permission.name}])"
    )
