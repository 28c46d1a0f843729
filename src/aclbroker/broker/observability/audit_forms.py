"""The forms of audit lines: JSON, and the text of Kafka's authorizer log; docs/audit.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from enum import IntEnum
from functools import cache, lru_cache
from ipaddress import IPv6Address
from json.encoder import encode_basestring_ascii as _quoted
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import Position, Rule, RuleKind
from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasons import OF_ANY_TOPIC
from aclbroker.acl.why_denied import WhyDenied
from aclbroker.broker.observability.audit_record import (
    MOST_CHARACTERS,
    MOST_OF_PRINCIPAL,
    Asked,
    Record,
)
from aclbroker.broker.observability.logs import escape, json_line
from aclbroker.protocol.messages import APIS

_PRINCIPAL: Final = "principal"


class Level(IntEnum):
    """The levels of records, which are those of Kafka's StandardAuthorizer."""

    TRACE = 0
    DEBUG = 1
    INFO = 2
    OFF = 3


def level_of(allowed: bool, log_if_denied: bool) -> Level:
    """Return the level of a decision; without ``log_if_denied`` it only filters an answer."""
    if allowed:
        return Level.DEBUG
    return Level.INFO if log_if_denied else Level.TRACE


class Line(NamedTuple):
    """A record that is written.

    ``why`` tells why it was denied; None if that was not looked up.
    """

    record: Record
    why: WhyDenied | None = None


class Node(NamedTuple):
    """The cluster and the node, which stand in each JSON line."""

    cluster_id: str
    node_id: int

    def json_lines(self, lines: Iterable[Line]) -> list[str]:
        """Return `events` as JSON; what several have in common is encoded once."""
        tails: dict[tuple[int, int, Position | None], str] = {}
        found = []
        for line in lines:
            record = line.record
            asked, allowed = record.asked, record.allowed
            if allowed not in asked.heads:
                asked.heads[allowed] = json_line(self._head(asked, allowed))[1:-1]
            # All denials by default, for example, are the same object.
            key = id(record.request), id(record.decision), record.acls
            if key not in tails:
                tails[key] = json_line(_tail(record))[1:-1]
            more = json_line(_more(line))[1:-1]
            found.append(
                f'{{"timestamp":"{timestamp(record.first)}",{asked.heads[allowed]},"resource_name":'
                f"{json_line(record.text)},"
                f'"resource_ref_count":{record.references},{tails[key]}{"," * bool(more)}{more}}}'
            )
        return found

    def events(self, lines: Iterable[Line]) -> Iterator[dict[str, Any]]:
        """Yield records with the keys of docs/audit.md."""
        for line in lines:
            record = line.record
            yield {
                "timestamp": timestamp(record.first),
                **self._head(record.asked, record.allowed),
                "resource_name": record.text,
                "resource_ref_count": record.references,
                **_tail(record),
                **_more(line),
            }

    def other_event(self, now: float, level: str, event: str) -> dict[str, Any]:
        """Return the first keys of an event that is no decision."""
        node = {"cluster_id": self.cluster_id, "node_id": self.node_id}
        return {"timestamp": timestamp(now), "level": level, "event": event, **node}

    def _head(self, asked: Asked, allowed: bool) -> dict[str, Any]:
        """The keys between the time and the resource's name."""
        session = asked.session
        return {
            "level": level_of(allowed, asked.log_if_denied).name.lower(),
            "event": "authorization",
            "cluster_id": self.cluster_id,
            "node_id": self.node_id,
            "listener": session.listener,
            _PRINCIPAL: session.principals[0][:MOST_OF_PRINCIPAL],
            "host": session.host,
            "operation": asked.operation.name,
            "resource_type": asked.resource_type.name,
            "pattern_type": PatternType.LITERAL.name,
        }


def timestamp(seconds: float) -> str:
    """Return a time since the epoch in ISO 8601, in UTC."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="microseconds")[:-6] + "Z"


def api_name(api_key: int) -> str:
    """Return the name of an API key, whether or not it is known."""
    api = APIS.get(api_key)
    return f"ApiKey{api_key}" if api is None else api.name


def acl_keys(binding: AclBinding | AclFilter) -> dict[str, Any]:
    """Return an ACL, or a filter of ACLs, as an object of JSON."""
    return limited(_acl_keys(binding))


def _acl_keys(binding: AclBinding | AclFilter) -> dict[str, Any]:
    return {
        "resource_type": binding.resource_type.name,
        "resource_name": binding.resource_name,
        "pattern_type": binding.pattern_type.name,
        _PRINCIPAL: binding.principal,
        "host": binding.host,
        "operation": binding.operation.name,
        "permission_type": binding.permission.name,
    }


def acl_json(binding: AclBinding) -> str:
    """Return `acl_keys` as JSON; "" if a text has to be shortened."""
    if not _is_short(binding):
        return ""
    _, name, _, principal, host, _, _ = binding
    codes = binding.resource_type, binding.pattern_type, binding.operation, binding.permission
    before, between, after = _acl_words(*codes)
    text = f'{before}{_quoted(name)}{between}{_quoted(principal)},"host":{_quoted(host)}{after}'
    return text.replace("\x7f", "\\u007f")  # as `json_line`


def _is_short(acl: AclBinding) -> bool:
    """Tell whether no text of an ACL has to be shortened."""
    _, name, _, principal, host, _, _ = acl
    return max(len(name), len(host)) <= MOST_CHARACTERS and len(principal) <= MOST_OF_PRINCIPAL


@cache
def _acl_words(
    resource_type: ResourceType,
    pattern_type: PatternType,
    operation: AclOperation,
    permission: AclPermission,
) -> tuple[str, str, str]:
    """The parts of an ACL's JSON before the name, after it, and after the host."""
    return (
        f'{{"resource_type":"{resource_type.name}","resource_name":',
        f',"pattern_type":"{pattern_type.name}","{_PRINCIPAL}":',
        f',"operation":"{operation.name}","permission_type":"{permission.name}"}}',
    )


def limited(keys: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object whose texts are shortened, with the full lengths of those that are."""
    found = dict(keys)
    lengths = {}
    for key, value in keys.items():
        most = MOST_OF_PRINCIPAL if key in _PRINCIPALS else MOST_CHARACTERS
        if isinstance(value, str) and len(value) > most:
            found[key] = value[:most]
            lengths[key] = len(value)
    return found | ({"shortened": lengths} if lengths else {})


_PRINCIPALS: Final = frozenset([_PRINCIPAL, "owner", "requester"])


def _tail(record: Record) -> dict[str, Any]:
    """The keys after the resource's name and count that follow from the request and the rule."""
    request, rule = record.request, record.rule
    tail = {
        "api_name": api_name(record.asked.api_key),
        "api_version": request.api_version,
        "client_id": request.client_id,
        "correlation_id": request.correlation_id,
        "allowed": record.allowed,
        "rule": rule.kind.value,
    }
    if isinstance(record.acls, int):
        tail["acls"] = record.acls
    tail["acl"] = None if rule.binding is None else acl_keys(rule.binding)
    principals = record.asked.session.principals
    if len(principals) > 1:
        tail["principals"] = [each[:MOST_OF_PRINCIPAL] for each in principals]
    return tail


def _positions(record: Record) -> dict[str, Any]:
    """The keys of positions of several providers, and of the first of several.

    They come behind the ACL, where whoever reads lines by their form looks for what only some have.
    """
    found: dict[str, Any] = {}
    if isinstance(record.acls, tuple):
        found["acls_by_provider"] = dict(record.acls)
    if record.first_acls != record.acls:
        first = record.first_acls
        if isinstance(first, tuple):
            found["first_acls_by_provider"] = dict(first)
        else:
            found["first_acls"] = first
    return found


def _more(line: Line) -> dict[str, Any]:
    """The keys that only some lines have."""
    record, more = line.record, dict[str, Any]()
    if record.asked.is_of_any_topic and record.rule.kind is RuleKind.DEFAULT_DENY:
        more["would_do"] = OF_ANY_TOPIC
    if line.why is not None:
        more |= _reasons(record, line.why)
    more |= _positions(record)
    if record.count:
        more |= {"count": record.count, "last_timestamp": timestamp(record.last)}
        if record.other_client_ids:
            more["other_client_ids"] = True
    lengths = _shortened(record)
    return more | {"shortened": lengths} if lengths else more


def _reasons(record: Record, why: WhyDenied) -> dict[str, Any]:
    """The keys that tell why it was denied, and what would allow it."""
    reasons = dict[str, Any]()
    if why.nearest is not None:
        reasons["nearest"] = [limited(_acl_keys(acl) | {"why": said}) for acl, said in why.nearest]
    change = why.change
    # With shortened texts it would be another change.
    if change is not None and not isinstance(record.name, tuple):
        is_whole = all(map(_is_short, (*change.add, *change.remove)))
        reasons |= {"smallest_change": str(change)} if is_whole else {}
    return reasons


def _shortened(record: Record) -> dict[str, int]:
    """The full lengths of the texts that are not whole, in characters."""
    lengths = {}
    principal = record.asked.session.principals[0]
    if len(principal) > MOST_OF_PRINCIPAL:
        lengths[_PRINCIPAL] = len(principal)
    if isinstance(record.name, tuple):
        lengths["resource_name"] = record.name[1]
    if record.request.client_id_length > MOST_CHARACTERS:
        lengths["client_id"] = record.request.client_id_length
    return lengths


def kafka_lines(lines: Iterable[Line]) -> list[str]:
    """Return the lines of Kafka 4.3's kafka.authorizer.logger in log4j's pattern `[%d] %p %m (%c)`.

    Unlike there, control characters and backslashes in names are escaped: in Kafka a client can
    forge lines by a group id with a line break. A long name is shortened, with its full length.
    """
    return [_kafka_line(line.record) for line in lines]


def kafka_other_line(now: float, level: str, event: Mapping[str, Any]) -> str:
    """Return an event that is no decision in the same pattern, as JSON, by a logger of its own."""
    return f"[{_kafka_time(now)}] {level.upper()} {json_line(event)} (aclbroker.audit)"


def _kafka_time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds).isoformat(" ", "milliseconds").replace(".", ",")


def _kafka_line(record: Record) -> str:
    asked, allowed = record.asked, record.allowed
    head = asked.heads.get(allowed)
    if head is None:
        head = asked.heads[allowed] = _kafka_head(asked, allowed)
    name = record.text
    shown = "null" if name is None else escape(name)
    if isinstance(record.name, tuple):
        shown += _cut(record.name[1])
    return (
        f"[{_kafka_time(record.first)}] {head}{shown} for request = {api_name(asked.api_key)} "
        f"with resourceRefCount = {record.references} "
        f"based on rule {_kafka_rule(record.rule)} (kafka.authorizer.logger)"
    )


def _kafka_head(asked: Asked, allowed: bool) -> str:
    session = asked.session
    return (
        f"{level_of(allowed, asked.log_if_denied).name} "
        f"Principal = {_kafka_text(session.principals[0], MOST_OF_PRINCIPAL)} "
        f"is {'Allowed' if allowed else 'Denied'} operation = {asked.operation.name} "
        f"from host = {_java_address(session.address)} on resource = "
        f"{asked.resource_type.name.title().replace('_', '')}:LITERAL:"
    )


def _kafka_rule(rule: Rule) -> str:
    if rule.kind.value != "MatchingAcl":
        return rule.kind.value
    if rule.binding is None:
        return "MatchingAcl(acl=null)"
    acl = rule.binding
    return (
        f"MatchingAcl(acl=StandardAcl[resourceType={acl.resource_type.name}, "
        f"resourceName={_kafka_text(acl.resource_name)}, patternType={acl.pattern_type.name}, "
        f"principal={_kafka_text(acl.principal, MOST_OF_PRINCIPAL)}, "
        f"host={_kafka_text(acl.host)}, "
        f"operation={acl.operation.name}, permissionType={acl.permission.name}])"
    )


def _kafka_text(text: str, most: int = MOST_CHARACTERS) -> str:
    return escape(text) if len(text) <= most else escape(text[:most]) + _cut(len(text))


def _cut(length: int) -> str:
    return f"...({length} characters)"


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
