"""What a recommended set is held to: every request near it, however hosts are read.

Among the requests is also whether something is allowed on any topic, which is no request about one
resource. And of a few ACLs the smallest set is found by trying all.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import combinations, product
from typing import Any

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from tests import model
from tests.pipeline.universe import (
    ELSEWHERE,
    Asking,
    Universe,
    allowed,
    companies,
    is_of_any,
    on_kafka,
    with_subnets,
)

TOPIC, WRITE = ResourceType.TOPIC, AclOperation.WRITE


def as_given(rules: Ruleset) -> Ruleset:
    return rules


READ_AS = (as_given, on_kafka, with_subnets)
USED_AS = (as_given, on_kafka)


def any_topic(principals: str, host: str = ELSEWHERE) -> Asking:
    """Whether a session may write to any topic, as an idempotent producer asks."""
    return Asking(tuple(principals.split()), host, WRITE, TOPIC, ANY_RESOURCE)


def on_any_topic(sessions: Iterable[tuple[str, ...]], hosts: Iterable[str]) -> list[Asking]:
    """That question of all sessions from all hosts."""
    return [
        Asking(session, host, WRITE, TOPIC, ANY_RESOURCE)
        for session, host in product(sessions, hosts)
    ]


def allowed_by_model(rules: Ruleset, requests: Iterable[Asking]) -> set[Asking]:
    """The same by the plain model."""
    settings: dict[str, Any] = {
        "super_users": rules.super_users,
        "allow_if_no_acl": rules.allow_everyone_if_no_acl_found,
        "cidr": rules.cidr,
    }
    return {
        each
        for each in requests
        if (
            model.authorize_by_type(rules.acls, *each[:4], **settings)
            if is_of_any(*each[2:])
            else model.authorize(rules.acls, *each, **settings)
        )
    }


def near(rules: Ruleset, log: Collection[Asking], *others: Ruleset) -> list[Asking]:
    """Every request near a case, each once."""
    acls = {acl for each in (rules, *others) for acl in each.acls}
    supers = [(each,) for each in sorted(rules.super_users)]
    sessions = [*supers, *companies(acls), *(each.principals for each in log)]
    found = Universe(acls, sessions, {each.host for each in log})
    of_any = on_any_topic(found.sessions, found.hosts)
    return list(dict.fromkeys([*log, *found.requests, *of_any]))


def opens(rules: Ruleset, proposed: Ruleset, requests: Collection[Asking]) -> set[Asking]:
    """The requests that a proposal opens, however hosts are read."""
    return {
        each
        for read in READ_AS
        for each in allowed(read(proposed), requests) - allowed(read(rules), requests)
    }


def loses(rules: Ruleset, proposed: Ruleset, log: Collection[Asking]) -> set[Asking]:
    """What is allowed now, and would not be, here or on a Kafka."""
    return {
        each
        for read in USED_AS
        for each in allowed(read(rules), log) - allowed(read(proposed), log)
    }


def fewest_allows(rules: Ruleset, log: Sequence[Asking]) -> tuple[int, int]:
    """How many ALLOWs suffice for a log, of those within the current ones: by trying all.

    They are of one name and operation that were used. Where these do not suffice for what was asked
    of any topic, one may be on all names of a current ALLOW; the first number is how many are.
    """
    denies = [acl for acl in rules.acls if acl.permission is AclPermission.DENY]
    single = set(on_used_names(rules, log))
    wide = set(_on_all_names(rules, log)) - single
    for size, others in product(range(len(wide) + 1), range(len(single) + 1)):
        for some in product(combinations(wide, size), combinations(single, others)):
            proposed = rules.with_acls([*denies, *some[0], *some[1]])
            if not loses(rules, proposed, log):
                return size, size + others
    raise AssertionError


def on_used_names(rules: Ruleset, log: Sequence[Asking]) -> Iterator[AclBinding]:
    """The ALLOWs of one name and operation, each within a current one and of something used."""
    single = [each for each in log if not is_of_any(*each[2:])]
    used = {(each.name, each.operation) for each in single}
    for acl, (name, operation) in product(rules.acls, used):
        if model.pattern_matches(acl, TOPIC, name) and may(acl, operation):
            literal = acl._replace(resource_name=name, pattern_type=PatternType.LITERAL)
            for each in _granted(literal, operation, log):
                # Who did not use it there is not granted it, though others were allowed it.
                alike = [use for use in single if use.operation is operation]
                if allowed(Ruleset((each,), cidr=rules.cidr), alike):
                    yield each


def _on_all_names(rules: Ruleset, log: Sequence[Asking]) -> Iterator[AclBinding]:
    for acl in rules.acls:
        if any(is_of_any(*each[2:]) for each in log) and may(acl, WRITE):
            yield from _granted(acl, WRITE, log)


def may(acl: AclBinding, operation: AclOperation) -> bool:
    """Whether an ACL allows an operation."""
    sources = (operation, AclOperation.ALL, *model.IMPLIED.get(operation, ()))
    return acl.permission is AclPermission.ALLOW and acl.operation in sources


def _granted(acl: AclBinding, operation: AclOperation, log: Sequence[Asking]) -> list[AclBinding]:
    is_for_all = acl.principal == "User:*"
    principals = {each.principals[0] for each in log} if is_for_all else {acl.principal}
    return [acl._replace(principal=each, operation=operation) for each in sorted(principals)]
