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
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from functools import lru_cache
from typing import Final, NamedTuple

from broker.acl.authorizer import RuleKind
from broker.acl.hosts import canonical
from pipeline.ingest.record import ASKED, PRINCIPAL_FORM, RESOURCES, Record


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
    BETWEEN = "stands between the pieces of a broken record: a client may have written it"


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
TIME: Final = r"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} [0-9]{2}:[0-9]{2}:[0-9]{2},[0-9]{3}\] "
"""How a line begins: with the broker's local time."""

TIME_BYTES: Final = TIME.encode()
TIME_LENGTH: Final = len("[2026-11-21 07:48:42,328] ")
LEVELS: Final = frozenset(["TRACE", "DEBUG", "INFO", "WARN"])
"""Not a key to the decision: Kafka writes both kinds at TRACE, and has changed the others."""

TAIL: Final = " (kafka.authorizer.logger)"

_PRINCIPAL: Final = re.compile(PRINCIPAL_FORM)
HOST_FORM: Final = r"[0-9a-fA-F.:]+(?:%[0-9A-Za-z._-]+)?"


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


def parse(line: bytes, cluster: str, zone: tzinfo = UTC) -> tuple[datetime, Record] | Reason:
    r"""Return what a line, without its ``\n`` or ``\r\n``, says, or the reason to quarantine it.

    ``cluster`` is what the record shall name, since the line does not. ``zone``: that of the
    broker's clock, which the log does not name either. Of an hour that occurs twice when clocks are
    set back, the first is taken.
    """
    if not re.match(TIME_BYTES, line):
        return Reason.HEAD
    record = parse_rest(line[TIME_LENGTH:], cluster)
    if isinstance(record, Reason):
        return record
    second = second_of(line[1:20].decode(), zone)
    if second is None:
        return Reason.TIME
    return second + timedelta(milliseconds=int(line[21:24])), record


def second_of(text: str, zone: tzinfo) -> datetime | None:
    """Return the time in UTC of ``YYYY-MM-DD hh:mm:ss`` in a zone; None if there is none such."""
    try:
        return datetime.fromisoformat(text).replace(tzinfo=zone).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def parse_rest(rest: bytes, cluster: str) -> Record | Reason:
    """Return what a line says behind its time, or the reason to quarantine it.

    It is the same for many lines of a log.
    """
    try:
        text = rest.decode()
    except UnicodeDecodeError:
        return Reason.ENCODING
    level = text.partition(" ")[0]
    if level not in LEVELS or not text.startswith(f"{PRINCIPAL} ", len(level)):
        return Reason.HEAD
    text = text.removesuffix("\r")
    if not text.endswith(TAIL):
        return Reason.CUT_OFF
    body = text[len(level) : -len(TAIL)]
    form = _FORMS.get(tuple(map(body.count, WORDS)))
    fields = _fields(body, form.words) if form else None
    if form is None or fields is None:
        return Reason.WORDS
    return _record(fields, form, level == "TRACE", cluster)


class _Form(NamedTuple):
    """The fixed words of a line in their order, and what they tell."""

    words: tuple[str, ...]
    allowed: bool
    is_old: bool


def _forms() -> Iterator[_Form]:
    for verdict in (ALLOWED, DENIED, ALLOWED_OLD, DENIED_OLD):
        is_old = verdict in (ALLOWED_OLD, DENIED_OLD)
        base = (PRINCIPAL, verdict, HOST, RESOURCE)
        ends = [(), (REQUEST, COUNT)] if is_old else [(REQUEST, COUNT, RULE)]
        for end in ends:
            yield _Form((*base, *end), verdict in (ALLOWED, ALLOWED_OLD), is_old)


_FORMS: Final = {tuple(int(word in form.words) for word in WORDS): form for form in _forms()}
"""The forms of a line by how often each of `WORDS` occurs."""


def _fields(text: str, words: tuple[str, ...]) -> list[str] | None:
    """Return what stands behind each word, or None if they are in another order."""
    fields = []
    for word in reversed(words):
        text, found, field = text.rpartition(word)
        if not found or not field.startswith(" "):
            return None
        fields.append(field[1:])
    return fields[::-1]


def _record(fields: list[str], form: _Form, quiet: bool, cluster: str) -> Record | Reason:
    principal, operation, host, resource, *request = fields
    if not _PRINCIPAL.match(principal):
        return Reason.PRINCIPAL
    asked = (OLD_OPERATIONS if form.is_old else OPERATIONS).get(operation)
    if asked is None:
        return Reason.OPERATION
    address = _address(host)
    if address is None:
        return Reason.HOST
    named = _resource(resource, has_pattern=bool(request))
    if named is None:
        return Reason.RESOURCE
    api, count, rule = (*request, None, None, None)[:3]
    wrong = _wrong(api, count)
    if wrong is not None:
        return wrong
    decided = None if rule is None else _rule(rule, form.allowed)
    if isinstance(decided, Reason):
        return decided
    kind, source = decided or (None, Dialect.ZOOKEEPER)
    return Record(
        cluster=cluster,
        listener=None,
        principal=principal,
        other_principals=None,
        host=address,
        operation=asked,
        resource_type=named[0],
        resource_name=named[1],
        api=api,
        allowed=form.allowed,
        rule=kind,
        quiet=quiet,
        reference_count=1 if count is None else int(count),
        client_id=None,
        source=source.value,
    )


@lru_cache(maxsize=100_000)
def _address(host: str) -> str | None:
    """Return a host in canonical form, None for what Java prints for no address."""
    return canonical(host) if re.fullmatch(HOST_FORM, host) else None


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
    if count is not None and not (count.isascii() and count.isdigit() and len(count) < 10):
        return Reason.COUNT
    return None


def _rule(rule: str, allowed: bool) -> tuple[str, Dialect] | Reason:
    if rule in SIMPLE_RULES:
        return (rule, Dialect.ROUND) if SIMPLE_RULES[rule] == allowed else Reason.CONTRADICTION
    if rule == REMOVED_ACL:
        return MATCHING_ACL, Dialect.SQUARE
    for dialect, head, tails in _ACL_RULES:
        if rule.startswith(head):
            for tail, permits in tails.items():
                if rule.endswith(tail):
                    agrees = permits == allowed
                    return (MATCHING_ACL, dialect) if agrees else Reason.CONTRADICTION
    return Reason.RULE


def _acl_rule(dialect: Dialect, opening: str, closing: str) -> tuple[Dialect, str, dict[str, bool]]:
    """Return how a rule that names an ACL begins, and how it ends if it allows or denies."""
    tails = {
        f", permissionType={name}{closing})": permits
        for name, permits in (("ALLOW", True), ("DENY", False))
    }
    return dialect, f"{MATCHING_ACL}(acl=StandardAcl{opening}resourceType=", tails


_ACL_RULES: Final = (_acl_rule(Dialect.ROUND, *"()"), _acl_rule(Dialect.SQUARE, *"[]"))
