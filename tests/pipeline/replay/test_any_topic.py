"""What is behind a decision on any topic, against what the authorizer decides without each ACL."""

from random import Random

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission, PatternType
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.replay.any_topic import reasons_on_any_topic
from aclbroker.pipeline.replay.reasons import Reasons
from tests.acl.examples import ALL, DESCRIBE, PREFIXED, READ, TOPIC, WRITE, allow, deny

SESSIONS = [
    Session(principals, host, "")
    for principals in (("User:alice",), ("User:bob", "Group:staff"), ("User:bob", "User:bob"))
    for host in ("10.0.0.1", "10.0.0.2")
]
NAMES = ["a", "ab", "b", "*", "hardcode", "hard"]


def behind(rules: Ruleset, session: Session, operation: AclOperation = WRITE) -> Reasons:
    return reasons_on_any_topic(
        rules.authorizer().index,
        {acl: position for position, acl in enumerate(rules.acls)},
        session.peer,
        operation,
        is_open=rules.allow_everyone_if_no_acl_found,
    )


def is_allowed(rules: Ruleset, session: Session, operation: AclOperation = WRITE) -> bool:
    return rules.authorizer().authorize_by_resource_type(session, operation, TOPIC).allowed


def random_rules(random: Random, *, is_open: bool) -> Ruleset:
    acls = ordered(
        AclBinding(
            TOPIC,
            random.choice(NAMES),
            random.choice((PatternType.LITERAL, PREFIXED)),
            random.choice(("User:alice", "User:bob", "Group:staff", "User:*")),
            random.choice(("*", "*", "10.0.0.1")),
            random.choice((ALL, READ, WRITE, WRITE, DESCRIBE)),
            random.choice((AclPermission.ALLOW, AclPermission.DENY)),
        )
        for _ in range(random.randrange(9))
    )
    return Ruleset(acls, allow_everyone_if_no_acl_found=is_open)


@pytest.mark.parametrize("operation", [WRITE, DESCRIBE])
@pytest.mark.parametrize("is_open", [False, True], ids=["closed", "open"])
def test_all_that_suffice_are_told_and_each_that_decides_alone(
    operation: AclOperation, is_open: bool
) -> None:
    random = Random(f"any {operation} {is_open}")
    seen = {"several": 0, "denied": 0, "alone": 0}
    for _ in range(200):
        rules = random_rules(random, is_open=is_open)
        denies = {acl for acl in rules.acls if acl.permission is AclPermission.DENY}
        for session in SESSIONS:
            found = behind(rules, session, operation)
            before = is_allowed(rules, session, operation)
            without = {
                at: is_allowed(rules.with_acls({*rules.acls} - {acl}), session, operation)
                for at, acl in enumerate(rules.acls)
            }
            assert found.alone == [at for at, after in without.items() if after != before]
            # With closed resources the ALLOWs can be looked at one by one.
            closed = Ruleset(rules.acls)
            beside = set() if not before else denies
            sufficient = [
                at
                for at, acl in enumerate(rules.acls)
                if acl not in denies
                and is_allowed(closed.with_acls({*beside, acl}), session, operation)
            ]
            is_by_default = is_open and found.on_resource == []
            assert found.allows == ([] if is_by_default else sufficient)
            if before:
                assert found.denies == []
            elif found.allows:
                freed = rules.with_acls({*rules.acls} - {rules.acls[at] for at in found.denies})
                assert is_allowed(freed, session, operation)
            seen["several"] += before and len(found.allows) > 1
            seen["denied"] += not before and bool(found.denies)
            seen["alone"] += bool(found.alone)
    assert min(seen.values()) > 20


def test_an_operation_that_implies_it_suffices_on_the_name_asked_about_first_alone() -> None:
    rules = Ruleset(
        ordered([allow("User:alice", READ, "hardcode"), allow("User:alice", READ, "a")])
    )
    found = behind(rules, SESSIONS[0], DESCRIBE)
    assert [rules.acls[at].resource_name for at in found.allows] == ["hardcode"]


def test_a_deny_of_everything_is_told_though_no_allow_is_there() -> None:
    rules = Ruleset(ordered([deny("User:*", WRITE, "*")]))
    assert behind(rules, SESSIONS[0]) == Reasons([], [0], None, [])
