"""Proposals held against a log by Kafka's own authorizer, without our way of reading either.

The log is read as JSON, line by line; decisions are those of Kafka's StandardAuthorizer. Kafka has
one principal a session. Of several it is asked one after the other: what is denied to one of them
by an ACL is denied, else what one of them is allowed is allowed.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from tests.model import IMPLIED
from tests.pipeline.kafka_decides import KafkaAuthorizer, rule_kinds
from tests.pipeline.questions import Questions


class InLog(NamedTuple):
    """A question of a log."""

    principals: tuple[str, ...]
    host: str
    operation: str
    resource_type: str
    resource_name: str


def decided_in(log: Path) -> dict[InLog, bool]:
    """Return what a directory of our own audit records says of each question.

    Lines that are no JSON are passed over. Raises ValueError if a question has two answers.
    """
    found: dict[InLog, bool] = {}
    for path in sorted(log.iterdir()):
        for line in path.read_text().split("\n"):
            try:
                event = json.loads(line)
            except ValueError:
                continue
            principals = tuple(event.get("principals", [event["principal"]]))
            question = InLog(principals, *(event[name] for name in InLog._fields[1:]))
            if found.setdefault(question, event["allowed"]) != event["allowed"]:
                raise ValueError(f"the log has both answers to {question}")
    return found


def allowed_by_kafka(
    kafka: KafkaAuthorizer,
    acls: Iterable[AclBinding],
    questions: Sequence[InLog],
    super_users: Collection[str],
) -> list[bool]:
    """Decide questions under some ACLs."""
    rules = Ruleset(ordered(acls), frozenset(super_users))
    texts: dict[str, int] = {}
    asked = [
        (
            texts.setdefault(principal, len(texts)),
            texts.setdefault(each.host, len(texts)),
            AclOperation[each.operation],
            ResourceType[each.resource_type],
            texts.setdefault(each.resource_name, len(texts)),
        )
        for each in questions
        for principal in each.principals
    ]
    columns = np.array(asked, np.int32).T
    answers = kafka.decide(rules, Questions(list(texts), *columns))
    decisions = zip(answers.allowed.tolist(), rule_kinds(answers.rule), strict=True)
    found = []
    for each in questions:
        ones = [next(decisions) for _ in each.principals]
        is_super = (1, RuleKind.SUPER_USER.value) in ones
        is_denied = (0, RuleKind.MATCHING_ACL.value) in ones
        found.append(is_super or (not is_denied and any(allowed for allowed, _ in ones)))
    return found


def idle(
    acls: Collection[AclBinding], questions: Iterable[InLog], super_users: Collection[str]
) -> set[AclBinding]:
    """Return the ALLOWs without which all of some allowed questions would be so still."""
    on: dict[tuple[ResourceType, PatternType, str], list[AclBinding]] = {}
    for acl in acls:
        if acl.permission is AclPermission.ALLOW:
            key = acl.resource_type, acl.pattern_type, acl.resource_name
            on.setdefault(key, []).append(acl)
    found = {acl for every in on.values() for acl in every}
    for each in questions:
        if not set(super_users).isdisjoint(each.principals):
            continue
        behind = [acl for acl in _around(on, each) if _allows(acl, each)]
        if len(behind) == 1:
            found.discard(behind[0])
    return found


def _around(
    on: dict[tuple[ResourceType, PatternType, str], list[AclBinding]], asked: InLog
) -> Iterable[AclBinding]:
    kind, name = ResourceType[asked.resource_type], asked.resource_name
    for literal in {name, WILDCARD}:
        yield from on.get((kind, PatternType.LITERAL, literal), ())
    for length in range(1, len(name) + 1):
        yield from on.get((kind, PatternType.PREFIXED, name[:length]), ())


def _allows(acl: AclBinding, asked: InLog) -> bool:
    operation = AclOperation[asked.operation]
    return (
        acl.principal in (*asked.principals, WILDCARD_PRINCIPAL)
        and acl.host in (asked.host, WILDCARD)
        and acl.operation in {operation, AclOperation.ALL, *IMPLIED.get(operation, ())}
    )
