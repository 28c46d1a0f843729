"""One line of Kafka's kafka.authorizer.logger, read so strictly that it has one meaning or none.

A principal may hold spaces, commas and words such as `` is Denied``, and a client can ask for a
group or transactional id of any text, line breaks included: it can make a broker write a line
that looks like a record. So a line is read from its fixed words inward, never by spaces or commas.
It must begin and end as log4j's pattern ``[%d] %p %m (%c)%n`` has it, hold each fixed word exactly
once and in order, and have a known word wherever Kafka can only write one. Anything else is
quarantined. A client that forges a whole line, its end included, cannot be told from a broker: only
the broken lines around it can be seen. That is why our own JSON Lines are to be preferred.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from typing import Any, Final, NamedTuple

from aclbroker.acl.authorizer import ANY_RESOURCE, RuleKind
from aclbroker.pipeline.ingest import not_decisions
from aclbroker.pipeline.ingest.kafka_apis import APIS
from aclbroker.pipeline.ingest.record import (
    ASKED,
    PRINCIPAL_FORM,
    RESOURCES,
    Record,
    address_of,
    unwrapped,
)


class Dialect(StrEnum):
    """Who writes the line; the values are those of the column ``source``."""

    ZOOKEEPER = "kafka-zookeeper"
    """SimpleAclAuthorizer of Kafka 0.9-2.3, AclAuthorizer of 2.4-3.9: ``Operation = Read``."""

    ROUND = "kafka-3.3"
    """StandardAuthorizer since 3.3: ``operation = READ``, a rule, ``StandardAcl(...)``.

    A line whose rule names no ACL is the same since 4.2, and has this value too.
    """

    SQUARE = "kafka-4.2"
    """StandardAuthorizer since 4.2: ``StandardAcl[...]``."""


class KafkaReason(StrEnum):
    """Why a line is quarantined, in the order in which it is asked."""

    HEAD = "does not begin as a record of the authorizer"
    CUT_OFF = "begins as a record and is cut off: the lines beside it may be forged"
    ENCODING = "bytes that are not UTF-8"
    WORDS = "the words of a record are missing, repeated or out of order"
    TIME = "no such time"
    PRINCIPAL = "no principal of the form Type:name"
    OPERATION = "unknown operation"
    HOST = "no host"
    RESOURCE = "no resource of the form Type:LITERAL:name"
    API = "unknown request"
    COUNT = "no count of references"
    RULE = "unknown rule"
    CONTRADICTION = "the rule contradicts the decision"
    ANOTHERS = "the ACL in the rule is of another principal"
    BETWEEN = "stands between the pieces of a broken record: a client may have written it"
    OTHER = "no decision: a line of another logger, or of a stack trace"
    OLD_DEBUG = "no decision: written at DEBUG beside decisions by authorizers before KRaft"


NOT_DECISIONS: Final = frozenset([KafkaReason.OTHER, KafkaReason.OLD_DEBUG])
"""The reasons of lines that are counted apart from quarantine, because they hold no decision."""


PRINCIPAL, HOST, RESOURCE = " Principal =", " from host =", " on resource ="
REQUEST, COUNT, RULE = " for request =", " with resourceRefCount =", " based on rule"
ALLOWED, DENIED = " is Allowed operation =", " is Denied operation ="
ALLOWED_OLD, DENIED_OLD = " is Allowed Operation =", " is Denied Operation ="
WORDS: Final = (
    *(PRINCIPAL, ALLOWED, DENIED, ALLOWED_OLD, DENIED_OLD),
    *(HOST, RESOURCE, REQUEST, COUNT, RULE),
)
"""The fixed words. No two can overlap: none begins with the end of another."""

CUTS: Final = (HOST, RESOURCE, REQUEST, RULE)
"""The words at which a line is cut. The last two are not in the logs of old versions."""

_WORD_BYTES: Final = tuple(word.encode() for word in WORDS)

# Kafka is younger than the century. Bounding the year keeps every zone's time within the tables'.
TIME: Final = r"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}\] "
"""How a line begins: with the broker's local time."""

TIME_BYTES: Final = TIME.encode()
TIME_LENGTH: Final = len("[2026-11-21 07:48:42,328] ")
LEVELS: Final = frozenset(["TRACE", "DEBUG", "INFO", "WARN"])
"""The level does not tell the decision: both kinds come at TRACE, and versions differ in others."""

TAIL: Final = " (kafka.authorizer.logger)"

LONGEST_RECORD: Final = 1 << 16
"""The largest distance in bytes between pieces of one record: Kafka's texts have 32,767 each."""

REPLACED: Final = "\ufffd".encode()
"""Kafka writes these three bytes for each byte, or some bytes, of a name that are not UTF-8."""


def sent_size(text: bytes) -> int:
    """Return the least number of bytes that a client sent if a text is a part of its name."""
    return len(text) - (len(REPLACED) - 1) * text.count(REPLACED)


_LITERAL: Final = "LITERAL:"

_HEAD: Final = re.compile(f"(?:{'|'.join(sorted(LEVELS))}){PRINCIPAL} ".encode())
_PRINCIPAL: Final = re.compile(PRINCIPAL_FORM)


def pascal(name: str) -> str:
    """Return an enum's name as Kafka prints it: ``TRANSACTIONAL_ID`` as ``TransactionalId``."""
    return name.title().replace("_", "")


OPERATIONS: Final = {o.name: o.name for o in ASKED}
OLD_OPERATIONS: Final = {pascal(o.name): o.name for o in ASKED}
RESOURCE_TYPES: Final = {pascal(t.name): t.name for t in RESOURCES}
SIMPLE_RULES: Final = {
    RuleKind.SUPER_USER.value: True,
    RuleKind.DEFAULT_ALLOW.value: True,
    RuleKind.DEFAULT_DENY.value: False,
}
"""Rules that name no ACL, and what they decide."""

MATCHING_ACL: Final = RuleKind.MATCHING_ACL.value
REMOVED_ACL: Final = f"{MATCHING_ACL}(acl=null)"
"""Our own broker's, in the form of Kafka 4.3, if the ACL was removed meanwhile."""

RESERVED: Final = RuleKind.RESERVED_TOPIC.value
"""Our own broker's, of decisions that no ACL can change."""

PROBED: Final = "hardcode"
"""The topic that Kafka's authorizer asks for when any topic would do (KIP-679), 0 times of it.

So it finds out who may do all, super users among them. If that is denied it goes on to look at all
ACLs, and logs nothing of it. So what is denied here was not denied: no decision on it is in the log
(`Authorizer.authorizeByResourceType` of Kafka 4.3.0).
"""

PROBING: Final = "InitProducerId"
"""The request in which any topic would do."""


def parse(
    line: bytes, cluster: str, zone: tzinfo = UTC
) -> tuple[datetime, Record] | KafkaReason | None:
    r"""Return what a line, without its ``\n`` or ``\r\n``, says, or the reason to quarantine it.

    None if it records no decision, but the first part of one (`PROBED`), or one that no ACL can
    change (`RESERVED`).

    ``cluster`` is what the record shall name, since the line does not. ``zone``: that of the
    broker's clock, which the log does not name either. Of an hour that occurs twice when clocks are
    set back, the first is taken.
    """
    if not re.match(TIME_BYTES, line):
        return without_head(line)
    record = parse_rest(line[TIME_LENGTH:], cluster)
    if isinstance(record, KafkaReason):
        return record
    second = second_of(line[1:20].decode(), zone)
    if second is None:
        return KafkaReason.TIME
    if record is None:
        return None
    return second + timedelta(milliseconds=int(line[21:24])), record


def second_of(text: str, zone: tzinfo) -> datetime | None:
    """Return ``YYYY-MM-DD hh:mm:ss`` in a zone as a time in UTC; None if it is none."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_rest(rest: bytes, cluster: str) -> Record | KafkaReason | None:
    """Return what a line says behind its time, or the reason to quarantine it.

    None if it records no decision that counts.
    """
    if not _HEAD.match(rest):
        return without_head(rest, is_timed=True)
    if not ends_as_record(rest):
        return KafkaReason.CUT_OFF
    if _decoded(rest) is None:
        return KafkaReason.ENCODING
    parts = parted(without_end(rest).removesuffix(TAIL.encode()))
    found = [read(part) for (read, _), part in zip(PARTS, parts, strict=True)]
    reasons = [each for each in found if isinstance(each, KafkaReason)]
    if reasons:
        return min(reasons, key=list(KafkaReason).index)
    return _together(cluster, *found)


def _together(
    cluster: str,
    asker: Asker,
    host: Host,
    resource: ResourcePart,
    request: RequestPart,
    rule: RulePart,
) -> Record | KafkaReason | None:
    if asker.is_old != rule.is_missing:
        return KafkaReason.WORDS
    if not (resource.has_pattern or request.is_missing):
        return KafkaReason.RESOURCE
    if not (rule.may_allow if asker.allowed else rule.may_deny):
        return KafkaReason.CONTRADICTION
    if rule.acl is not None and not is_of(rule.acl, asker.principal.encode()):
        return KafkaReason.ANOTHERS
    probes = (request.api, request.reference_count, resource.resource_type) == (PROBING, 0, "TOPIC")
    is_any = probes and resource.resource_name == PROBED
    if rule.rule == RESERVED or (is_any and not asker.allowed):
        return None
    return Record(
        cluster=cluster,
        listener=None,
        principal=asker.principal,
        other_principals=None,
        host=host.host,
        operation=asker.operation,
        resource_type=resource.resource_type,
        resource_name=ANY_RESOURCE if is_any else resource.resource_name,
        api=request.api,
        allowed=asker.allowed,
        rule=rule.rule,
        quiet=asker.quiet,
        reference_count=request.reference_count,
        client_id=None,
        source=rule.source,
    )


def without_head(text: bytes, *, is_timed: bool = False) -> KafkaReason:
    """Return the reason for a line that does not begin as a record.

    With ``is_timed``, ``text`` is the part of the line behind its time.
    """
    old = not_decisions.old_debug(without_end(text), TAIL.encode()) if is_timed else None
    if old and PRINCIPAL.strip().encode() in text:
        # The broker was killed in mid-line, and wrote a record behind it after its restart.
        return KafkaReason.HEAD
    if old is not None:
        return KafkaReason.OLD_DEBUG if old else KafkaReason.CUT_OFF
    if ends_as_record(text) and not is_timed:
        return KafkaReason.HEAD
    may_be_piece = not_decisions.may_be_piece(text, _WORD_BYTES, is_timed=is_timed)
    return KafkaReason.HEAD if may_be_piece else KafkaReason.OTHER


def ends_as_record(line: bytes) -> bool:
    """Tell whether a line, or its part behind the time, ends as an authorizer's line does."""
    return without_end(line).endswith(TAIL.encode())


def without_end(line: bytes) -> bytes:
    """Return a line without the blanks, and the carriage return, that may follow a record."""
    return line.removesuffix(b"\r").rstrip(b" \t")


NO_END: Final = b" \0"
"""Appended to a line that does not end as a record of its layout. No record of Kafka ends so."""


def parted(body: bytes) -> list[bytes | None]:
    """Return the parts of a record between `CUTS`; None for a part without its word."""
    parts: list[bytes | None] = []
    behind: bytes | None = body
    for word in CUTS:
        before, found, after = (behind or b"").partition(word.encode())
        parts.append(None if behind is None else before)
        behind = after if found else None
    return [*parts, behind]


# A log has many lines, and few different parts of them, so each part is read once. No fixed word
# begins with the end of another, so that none goes over a cut. So a line holds each of them once,
# and in order, if no part has one but those that belong there.


class Asker(NamedTuple):
    """What a line says before `HOST`. ``is_old``: in the words of ZooKeeper's time."""

    quiet: bool
    principal: str
    allowed: bool
    operation: str
    is_old: bool


def asker_of(part: bytes | None) -> Asker | KafkaReason:
    """Return what a part before `HOST` says, or the reason to quarantine the line."""
    text = _decoded(part)
    if part is None or text is None or not _HEAD.match(part):
        return KafkaReason.WORDS
    verdict = _VERDICTS.get(tuple(map(text.count, WORDS)))
    principal, found, operation = text.partition(f"{verdict} ")
    if verdict is None or not found:
        return KafkaReason.WORDS
    level, _, wrapped = principal.partition(f"{PRINCIPAL} ")
    principal = unwrapped(wrapped)
    if not _PRINCIPAL.match(principal):
        return KafkaReason.PRINCIPAL
    is_old = verdict in (ALLOWED_OLD, DENIED_OLD)
    asked = (OLD_OPERATIONS if is_old else OPERATIONS).get(operation)
    if asked is None:
        return KafkaReason.OPERATION
    return Asker(level == "TRACE", principal, verdict in (ALLOWED, ALLOWED_OLD), asked, is_old)


_VERDICTS: Final = {
    tuple(map(f"{PRINCIPAL}{verdict}".count, WORDS)): verdict
    for verdict in (ALLOWED, DENIED, ALLOWED_OLD, DENIED_OLD)
}
"""The verdict in the part before `HOST`, by how often each of `WORDS` occurs there."""


class Host(NamedTuple):
    """What a line says behind `HOST`, in canonical form."""

    host: str


def host_of(part: bytes | None) -> Host | KafkaReason:
    """Return what a part behind `HOST` says, or the reason to quarantine the line."""
    text = _decoded(part)
    if text is None or _has_word(text) or not text.startswith(" "):
        return KafkaReason.WORDS
    host = address_of(text[1:])
    return KafkaReason.HOST if host is None else Host(host)


class ResourcePart(NamedTuple):
    """What a line says behind `RESOURCE`. Before Kafka 2.0 it has no pattern type."""

    resource_type: str
    resource_name: str
    has_pattern: bool


def resource_of(part: bytes | None) -> ResourcePart | KafkaReason:
    """Return what a part behind `RESOURCE` says, or the reason to quarantine the line."""
    text = _decoded(part)
    if text is None or _has_word(text) or not text.startswith(" "):
        return KafkaReason.WORDS
    printed, colon, name = text[1:].partition(":")
    resource_type = RESOURCE_TYPES.get(printed)
    if resource_type is None or not colon:
        return KafkaReason.RESOURCE
    return ResourcePart(resource_type, name.removeprefix(_LITERAL), name.startswith(_LITERAL))


class RequestPart(NamedTuple):
    """What a line says behind `REQUEST`, which Kafka has there since 2.4."""

    api: str | None
    reference_count: int
    is_missing: bool


def request_of(part: bytes | None) -> RequestPart | KafkaReason:
    """Return what a part behind `REQUEST` says, or the reason to quarantine the line."""
    if part is None:
        return RequestPart(None, 1, is_missing=True)
    text = _decoded(part)
    api, found, count = (text or "").partition(f"{COUNT} ")
    if not found or _has_word(api) or _has_word(count) or not api.startswith(" "):
        return KafkaReason.WORDS
    if api[1:] not in APIS:
        return KafkaReason.API
    if not (count.isascii() and count.isdigit() and len(count) < 10):
        return KafkaReason.COUNT
    return RequestPart(api[1:], int(count), is_missing=False)


class RulePart(NamedTuple):
    """What a line says behind `RULE`, which Kafka has there since 3.3, and what that can decide."""

    rule: str | None
    source: str
    may_allow: bool
    may_deny: bool
    is_missing: bool
    acl: bytes | None = None
    """The ACL as the rule prints it; None if the rule prints none."""


def rule_of(part: bytes | None) -> RulePart | KafkaReason:
    """Return what a part behind `RULE` says, or the reason to quarantine the line."""
    if part is None:
        return RulePart(None, Dialect.ZOOKEEPER.value, True, True, is_missing=True)
    text = _decoded(part)
    if text is None or _has_word(text) or not text.startswith(" "):
        return KafkaReason.WORDS
    rule = text[1:]
    if rule in SIMPLE_RULES:
        return _rule(rule, Dialect.ROUND, SIMPLE_RULES[rule])
    if rule == RESERVED:
        return _rule(rule, Dialect.ROUND, permits=False)
    if rule == REMOVED_ACL:
        return RulePart(MATCHING_ACL, Dialect.SQUARE.value, True, True, is_missing=False)
    for dialect, head, tails in _ACL_RULES:
        if rule.startswith(head):
            for tail, permits in tails.items():
                if rule.endswith(tail):
                    acl = rule.removeprefix(head).encode()
                    return _rule(MATCHING_ACL, dialect, permits)._replace(acl=acl)
    return KafkaReason.RULE


def is_of(acl: bytes, principal: bytes) -> bool:
    """Tell whether an ACL in a rule may decide about a principal's request.

    False if the ACL names another principal of the same type. An ACL for a principal of another
    type may hold for a group of the session: the line does not name these groups.
    """
    named = b", principal=%b, host=" % principal
    kind = principal.partition(b":")[0]
    return (
        named in acl or b", principal=User:*, host=" in acl or b", principal=%b:" % kind not in acl
    )


def _rule(rule: str, dialect: Dialect, permits: bool) -> RulePart:
    return RulePart(rule, dialect.value, permits, not permits, is_missing=False)


PARTS: Final[Sequence[tuple[Callable[[bytes | None], Any], tuple[str, ...]]]] = (
    (asker_of, Asker._fields),
    (host_of, Host._fields),
    (resource_of, ResourcePart._fields),
    (request_of, RequestPart._fields),
    (rule_of, RulePart._fields),
)
"""What reads each of the parts of a line, in their order, and which fields it finds."""


def _decoded(part: bytes | None) -> str | None:
    try:
        return None if part is None else part.decode()
    except UnicodeDecodeError:
        return None


def _has_word(text: str) -> bool:
    # All fixed words but one end in this, and hardly any other text has it.
    return (" =" in text and any(map(text.__contains__, WORDS))) or RULE in text


def _acl_rule(dialect: Dialect, opening: str, closing: str) -> tuple[Dialect, str, dict[str, bool]]:
    """Return how a rule that names an ACL begins, and how it ends if it allows or denies."""
    tails = {
        f", permissionType={name}{closing})": permits
        for name, permits in (("ALLOW", True), ("DENY", False))
    }
    return dialect, f"{MATCHING_ACL}(acl=StandardAcl{opening}resourceType=", tails


_ACL_RULES: Final = (_acl_rule(Dialect.ROUND, *"()"), _acl_rule(Dialect.SQUARE, *"[]"))
