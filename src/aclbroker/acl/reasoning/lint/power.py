"""ALLOWs of more than anybody should have: too broad, or a way to what is not one's own."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.lint.findings import Finding, Severity, removing
from aclbroker.acl.reasoning.lint.scopes import said_by
from aclbroker.acl.reasoning.rules import matches

_ON_CLUSTER: Final = {
    AclOperation.ALL: "do everything to the cluster, such as give themselves any right",
    AclOperation.ALTER: "change ACLs, and so give themselves any right",
    AclOperation.CLUSTER_ACTION: "act as a broker, and so read all topics",
    AclOperation.ALTER_CONFIGS: "change the settings of brokers",
    AclOperation.DELETE: "delete every topic",
}
_AS_OTHERS: Final = (AclOperation.ALL, AclOperation.CREATE_TOKENS)
_TRANSACTIONS: Final = {
    AclOperation.ALL: Severity.WARNING,
    AclOperation.TWO_PHASE_COMMIT: Severity.WARNING,
    AclOperation.WRITE: Severity.NOTE,
}
_INTERNAL: Final = (
    "__consumer_offsets",
    "__transaction_state",
    "__share_group_state",
    "__cluster_metadata",
)
_CHANGING: Final = sum(
    1 << each
    for each in (
        AclOperation.WRITE,
        AclOperation.DELETE,
        AclOperation.ALTER,
        AclOperation.ALTER_CONFIGS,
    )
)


def too_powerful(acls: Iterable[AclBinding], super_users: Collection[str]) -> Iterator[Finding]:
    """Yield findings of ALLOWs that are too broad or risky."""
    for acl in acls:
        if acl.permission == AclPermission.ALLOW:
            yield from _over_broad(acl)
            yield from _RISKS.get(acl.resource_type, _no_risk)(acl, super_users)


def _is_any_name(acl: AclBinding) -> bool:
    return acl.pattern_type == PatternType.LITERAL and acl.resource_name == WILDCARD


def _severity(acl: AclBinding, severity: Severity = Severity.WARNING) -> Severity:
    """Return how bad it is, which is worse for everybody's than for one principal's."""
    return Severity.ERROR if acl.principal == WILDCARD_PRINCIPAL else severity


def _over_broad(acl: AclBinding) -> Iterator[Finding]:
    kind = acl.resource_type.name
    facts = []
    if acl.principal == WILDCARD_PRINCIPAL:
        facts.append("everybody")
    if acl.operation == AclOperation.ALL:
        facts.append("all operations")
    if _is_any_name(acl):
        facts.append(f"every {kind}")
    if len(facts) > 1:
        proof = f"It is for {' and '.join(facts)}; allow what is used (aclbroker audit recommend)."
        severity = Severity.ERROR if len(facts) > 2 else Severity.WARNING
        yield removing("over-broad", severity, acl, proof)


def _cluster(acl: AclBinding, _: Collection[str]) -> Iterator[Finding]:
    might = _ON_CLUSTER.get(acl.operation)
    if might is not None:
        yield removing("risky-cluster", _severity(acl), acl, f"Who has it may {might}.")


def _tokens(acl: AclBinding, super_users: Collection[str]) -> Iterator[Finding]:
    if acl.operation not in _AS_OTHERS:
        return
    supers = sorted(each for each in super_users if matches(acl, ResourceType.USER, each))
    if supers:
        proof = f"Who has it may log in as {supers[0]}, a super user, with a token."
        yield removing("risky-tokens", Severity.ERROR, acl, proof)
    elif _is_any_name(acl):
        proof = "Who has it may log in as anybody, with a token."
        yield removing("risky-tokens", _severity(acl), acl, proof)


def _transactions(acl: AclBinding, _: Collection[str]) -> Iterator[Finding]:
    severity = _TRANSACTIONS.get(acl.operation)
    if severity is not None and _is_any_name(acl):
        proof = "Who has it may take over any transactional id, and so fence its producer off."
        yield removing("risky-transactions", _severity(acl, severity), acl, proof)


def _topics(acl: AclBinding, _: Collection[str]) -> Iterator[Finding]:
    if _is_any_name(acl) or not said_by(acl) & _CHANGING:
        return
    internal = [each for each in _INTERNAL if matches(acl, ResourceType.TOPIC, each)]
    if internal:
        proof = f"Who has it may change {', '.join(internal)}, which Kafka keeps for itself."
        yield removing("risky-internal-topic", _severity(acl), acl, proof)


def _no_risk(_: AclBinding, __: Collection[str]) -> Iterator[Finding]:
    return iter(())


_RISKS: Final = {
    ResourceType.CLUSTER: _cluster,
    ResourceType.USER: _tokens,
    ResourceType.TRANSACTIONAL_ID: _transactions,
    ResourceType.TOPIC: _topics,
}
