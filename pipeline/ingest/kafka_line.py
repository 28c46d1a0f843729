"""One line of Kafka's kafka.authorizer.logger, read so strictly that it has one meaning or none.

This is the readable reference for `kafka_log`, which says the same in Spark's expressions.

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
from datetime import UTC, datetime, tzinfo
from enum import StrEnum
from typing import Final, NamedTuple

from broker.acl.authorizer import RuleKind
from broker.acl.bindings import AclOperation, PatternType, ResourceType


class Dialect(StrEnum):
    """Who writes the line; the values are those of the column ``source``."""

    ZOOKEEPER = "kafka-zookeeper"
    """SimpleAclAuthorizer of Kafka 0.9-2.3, AclAuthorizer of 2.4-3.9: ``Operation = Read``."""

    ROUND = "kafka-3.3"
    """StandardAuthorizer since 3.3: ``operation = READ``, a rule, ``StandardAcl(...)``.

    A line whose rule names no ACL is the same in 4.3, and has this value too.
    """

    SQUARE = "kafka-4.3"
    """StandardAuthorizer of 4.3: ``StandardAcl[...]``."""


class Reason(StrEnum):
    """Why a line is quarantined, in the order in which it is asked."""

    ENCODING = "bytes that are not UTF-8"
    HEAD = "does not begin as a record of the authorizer"
    CUT_OFF = "begins as a record and is cut off: the lines beside it may be forged"
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


class Record(NamedTuple):
    """What a line says; the fields are columns of `pipeline.schemas.events`."""

    timestamp: datetime
    principal: str
    host: str
    operation: str
    resource_type: str
    pattern_type: str
    resource_name: str
    allowed: bool
    reference_count: int | None
    api: str | None
    rule: str | None
    source: Dialect


PRINCIPAL, HOST, RESOURCE = " Principal =", " from host =", " on resource ="
REQUEST, COUNT, RULE = " for request =", " with resourceRefCount =", " based on rule"
ALLOWED, DENIED = " is Allowed operation =", " is Denied operation ="
ALLOWED_OLD, DENIED_OLD = " is Allowed Operation =", " is Denied Operation ="
WORDS: Final = (
    *(PRINCIPAL, ALLOWED, DENIED, ALLOWED_OLD, DENIED_OLD),
    *(HOST, RESOURCE, REQUEST, COUNT, RULE),
)
"""The fixed words. No two can overlap: none begins with the end of another."""

# Kafka is younger than the century. Bounding the year keeps every zone's time within the tables'.
HEAD: Final = r"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}\] "
LEVEL: Final = "(?:TRACE|DEBUG|INFO|WARN)"
"""Not a key to the decision: Kafka writes both kinds at TRACE, and has changed the others."""

TAIL: Final = " (kafka.authorizer.logger)"

# The type is a class's choice; a space in it would make the words before it doubtful.
PRINCIPAL_FORM: Final = "[^ :]+:"
HOST_FORM: Final = r"[0-9a-fA-F.:]+(?:%[0-9A-Za-z._-]+)?"
COUNT_FORM: Final = "[0-9]{1,9}"

ASKED: Final = tuple(
    operation
    for operation in AclOperation
    if operation not in (AclOperation.UNKNOWN, AclOperation.ANY, AclOperation.ALL)
)
"""What a request can ask for: ALL stands in ACLs, and never here."""

RESOURCES: Final = tuple(
    t for t in ResourceType if t not in (ResourceType.UNKNOWN, ResourceType.ANY)
)


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

ACL_BRACKETS: Final = {Dialect.ROUND: "()", Dialect.SQUARE: "[]"}

APIS: Final = frozenset(
    """
    AddOffsetsToTxn AddPartitionsToTxn AddRaftVoter AllocateProducerIds AlterClientQuotas
    AlterConfigs AlterIsr AlterPartition AlterPartitionReassignments AlterReplicaLogDirs
    AlterShareGroupOffsets AlterUserScramCredentials ApiVersions AssignReplicasToDirs
    BeginQuorumEpoch BrokerHeartbeat BrokerRegistration ConsumerGroupDescribe
    ConsumerGroupHeartbeat ControlledShutdown ControllerRegistration CreateAcls
    CreateDelegationToken CreatePartitions CreateTopics DeleteAcls DeleteGroups DeleteRecords
    DeleteShareGroupOffsets DeleteShareGroupState DeleteTopics DescribeAcls DescribeClientQuotas
    DescribeCluster DescribeConfigs DescribeDelegationToken DescribeGroups DescribeLogDirs
    DescribeProducers DescribeQuorum DescribeShareGroupOffsets DescribeTopicPartitions
    DescribeTransactions DescribeUserScramCredentials ElectLeaders EndQuorumEpoch EndTxn Envelope
    ExpireDelegationToken Fetch FetchSnapshot FindCoordinator GetTelemetrySubscriptions Heartbeat
    IncrementalAlterConfigs InitProducerId InitializeShareGroupState JoinGroup LeaderAndIsr
    LeaveGroup ListClientMetricsResources ListConfigResources ListGroups ListOffsets
    ListPartitionReassignments ListTransactions Metadata OffsetCommit OffsetDelete OffsetFetch
    OffsetForLeaderEpoch Produce PushTelemetry ReadShareGroupState ReadShareGroupStateSummary
    RemoveRaftVoter RenewDelegationToken SaslAuthenticate SaslHandshake ShareAcknowledge ShareFetch
    ShareGroupDescribe ShareGroupHeartbeat StopReplica StreamsGroupDescribe StreamsGroupHeartbeat
    SyncGroup TxnOffsetCommit UnregisterBroker UpdateFeatures UpdateMetadata UpdateRaftVoter Vote
    WriteShareGroupState WriteTxnMarkers
    """.split()  # noqa: SIM905
)
"""The names of API keys, by Kafka 2.4 to 4.3, as its log prints them."""


def parse(line: bytes, zone: tzinfo = UTC) -> Record | Reason:
    r"""Return what a line, without its ``\n`` or ``\r\n``, says, or the reason to quarantine it.

    ``zone``: that of the broker's clock, which the log does not name. Of an hour that occurs twice
    when clocks are set back, the first is taken.
    """
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Reason.ENCODING
    head = re.match(f"{HEAD}{LEVEL}(?={PRINCIPAL} )", text)
    if head is None:
        return Reason.HEAD
    text = text.removesuffix("\r")
    if not text.endswith(TAIL):
        return Reason.CUT_OFF
    rest = text[head.end() : -len(TAIL)]
    for verdict in (ALLOWED, DENIED, ALLOWED_OLD, DENIED_OLD):
        is_old = verdict in (ALLOWED_OLD, DENIED_OLD)
        fields = _fields(rest, _orders(verdict, is_old))
        if fields is not None:
            allowed = verdict in (ALLOWED, ALLOWED_OLD)
            return _record(head[0][1:24], fields, allowed, is_old, zone)
    return Reason.WORDS


def _orders(verdict: str, is_old: bool) -> tuple[tuple[str, ...], ...]:
    base = (PRINCIPAL, verdict, HOST, RESOURCE)
    if is_old:
        return (base, (*base, REQUEST, COUNT))
    return ((*base, REQUEST, COUNT, RULE),)


def _fields(text: str, orders: tuple[tuple[str, ...], ...]) -> list[str] | None:
    """Return what stands behind each word, or None if no order has each of its words once."""
    for order in orders:
        if any(text.count(word) != (word in order) for word in WORDS):
            continue
        fields = []
        rest = text
        for word in reversed(order):
            rest, found, field = rest.partition(word)
            fields.append(field)
            if not found or not field.startswith(" "):
                return None
        return [field[1:] for field in reversed(fields)]
    return None


def _record(
    time: str, fields: list[str], allowed: bool, is_old: bool, zone: tzinfo
) -> Record | Reason:
    principal, operation, host, resource, *request = fields
    timestamp = _time(time, zone)
    if timestamp is None:
        return Reason.TIME
    if not re.match(PRINCIPAL_FORM, principal):
        return Reason.PRINCIPAL
    asked = (OLD_OPERATIONS if is_old else OPERATIONS).get(operation)
    if asked is None:
        return Reason.OPERATION
    if not re.fullmatch(HOST_FORM, host):
        return Reason.HOST
    named = _resource(resource, has_pattern=bool(request))
    if named is None:
        return Reason.RESOURCE
    api, count, rule = (*request, None, None, None)[:3]
    wrong = _wrong(api, count)
    if wrong is not None:
        return wrong
    decided = None if rule is None else _rule(rule, allowed)
    if isinstance(decided, Reason):
        return decided
    kind, source = decided or (None, Dialect.ZOOKEEPER)
    return Record(
        *(timestamp, principal, host, asked, named[0], PatternType.LITERAL.name, named[1], allowed),
        *(None if count is None else int(count), api, kind, source),
    )


def _time(text: str, zone: tzinfo) -> datetime | None:
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _resource(text: str, has_pattern: bool) -> tuple[str, str] | None:
    """Return type and name. Before Kafka 2.0 no pattern type stands between them."""
    printed, _, name = text.partition(":")
    resource_type = RESOURCE_TYPES.get(printed)
    if resource_type is None:
        return None
    if name.startswith("LITERAL:"):
        return resource_type, name.removeprefix("LITERAL:")
    if has_pattern or not text.startswith(f"{printed}:"):
        return None
    return resource_type, name


def _wrong(api: str | None, count: str | None) -> Reason | None:
    if api is not None and api not in APIS:
        return Reason.API
    if count is not None and not re.fullmatch(COUNT_FORM, count):
        return Reason.COUNT
    return None


def _rule(rule: str, allowed: bool) -> tuple[str, Dialect] | Reason:
    if rule in SIMPLE_RULES:
        return (rule, Dialect.ROUND) if SIMPLE_RULES[rule] == allowed else Reason.CONTRADICTION
    if rule == REMOVED_ACL:
        return MATCHING_ACL, Dialect.SQUARE
    for dialect, brackets in ACL_BRACKETS.items():
        if not rule.startswith(acl_head(brackets)):
            continue
        for permission in ("ALLOW", "DENY"):
            if rule.endswith(acl_tail(brackets, permission)):
                agrees = (permission == "ALLOW") == allowed
                return (MATCHING_ACL, dialect) if agrees else Reason.CONTRADICTION
    return Reason.RULE


def acl_head(brackets: str) -> str:
    """Return how a rule begins that names an ACL."""
    return f"{MATCHING_ACL}(acl=StandardAcl{brackets[0]}resourceType="


def acl_tail(brackets: str, permission: str) -> str:
    """Return how a rule ends that names an ACL."""
    return f", permissionType={permission}{brackets[1]})"
