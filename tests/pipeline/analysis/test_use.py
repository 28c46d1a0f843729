"""The use of ACLs: planted ones are told apart, and what goes changes no answer to any question."""

from collections.abc import Sequence
from datetime import date
from random import Random

import pytest

from aclbroker.broker.acl.authorizer import Action, Session
from aclbroker.broker.acl.bindings import AclBinding, AclOperation, AclPermission, ResourceType
from aclbroker.broker.acl.index import AclIndex
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.use import AclUse, Asked, Stay, UseKind, acl_uses
from tests import model
from tests.acl.examples import ALL, DESCRIBE, PREFIXED, READ, TOPIC, WRITE, allow, deny
from tests.pipeline.analysis.test_coverage import OPERATIONS, PEERS, random_acls

Question = tuple[tuple[str, ...], str, AclOperation, ResourceType, str]

DAY = date(2026, 1, 5)
PRINCIPALS_OF_SESSIONS = [
    ("User:alice",),
    ("User:bob",),
    ("User:carol",),
    ("User:alice", "Group:staff"),
    ("User:carol", "Group:staff"),
]


def asked(rules: Ruleset, question: Question, events: int = 1, day: date = DAY) -> Asked:
    """The question as replay explains it, worked out ACL by ACL."""
    who, peer, operation, kind, name = question
    allows, denies, on_resource = [], [], []
    for position, acl in enumerate(rules.acls):
        if model.pattern_matches(acl, kind, name):
            on_resource.append(position)
            if acl.permission is AclPermission.ALLOW:
                if model.authorize([acl], who, peer, operation, kind, name, cidr=rules.cidr):
                    allows.append(position)
            elif model.applies(acl, who, peer, rules.cidr) and acl.operation in (operation, ALL):
                denies.append(position)
    alone = rules.allow_everyone_if_no_acl_found and len(on_resource) == 1
    return Asked(allows, denies, on_resource[0] if alone else None, events, day)


def decisions(rules: Ruleset, questions: Sequence[Question]) -> list[bool]:
    core = rules.authorizer()
    return [
        core.decide(Session(who, peer, ""), Action(operation, kind, name)).allowed
        for who, peer, operation, kind, name in questions
    ]


def without(rules: Ruleset, *gone: AclBinding) -> Ruleset:
    return rules.with_acls(set(rules.acls) - set(gone))


def random_questions(random: Random, number: int) -> list[Question]:
    return [
        (
            random.choice(PRINCIPALS_OF_SESSIONS),
            random.choice(PEERS),
            random.choice(OPERATIONS[1:]),
            random.choice((TOPIC, ResourceType.GROUP)),
            random.choice(("a", "ab", "abc", "abd", "abde", "*", "other")),
        )
        for _ in range(number)
    ]


@pytest.mark.parametrize("cidr", [False, True], ids=["addresses", "subnets"])
@pytest.mark.parametrize("default", [False, True], ids=["closed", "open"])
def test_what_goes_changes_no_answer_and_what_is_needed_does(cidr: bool, default: bool) -> None:
    random = Random(f"{cidr} {default}")
    gone_in_all = needed_in_all = 0
    for number in range(40):
        rules = Ruleset(
            random_acls(random, random.choice((5, 15, 40))),
            allow_everyone_if_no_acl_found=default,
            cidr=cidr,
        )
        questions = random_questions(random, random.choice((5, 30, 100)))
        young = random.sample(range(len(rules.acls)), len(rules.acls) // 5)
        uses = acl_uses(
            rules,
            [asked(rules, each) for each in questions],
            young=young,
            unmatched_denies=number % 2 == 0,
        )
        before = decisions(rules, questions)
        gone = [each.acl for each in uses if each.stays is None]
        remaining = without(rules, *gone)
        assert decisions(remaining, questions) == before
        assert not set(gone) & {rules.acls[position] for position in young}
        for each in uses:
            alone_matters = decisions(without(rules, each.acl), questions) != before
            assert (each.use is UseKind.NEEDED) == alone_matters
            if alone_matters:
                assert each.stays in (Stay.NEEDED, Stay.YOUNG)
                needed_in_all += 1
        if default:
            opened(rules, remaining)
        gone_in_all += len(gone)
    assert gone_in_all > 60
    assert needed_in_all > 20


def opened(rules: Ruleset, remaining: Ruleset) -> None:
    """No resource is without ACLs that had some, asked for or not."""
    index = AclIndex(remaining.acls)
    for acl in rules.acls:
        name = acl.resource_name
        for each in (name, f"{name}x"):
            if model.pattern_matches(acl, acl.resource_type, each):
                assert index.has_match(acl.resource_type, each)


def test_no_allow_that_was_chosen_to_stay_could_go_as_well() -> None:
    random = Random(5)
    chosen = 0
    for _ in range(20):
        rules = Ruleset(random_acls(random, 120), cidr=True)
        questions = random_questions(random, 60)
        uses = acl_uses(rules, [asked(rules, each) for each in questions])
        remaining = without(rules, *(each.acl for each in uses if each.stays is None))
        before = decisions(rules, questions)
        for each in uses:
            if each.stays is Stay.CHOSEN and each.acl.permission is AclPermission.ALLOW:
                chosen += 1
                assert decisions(without(remaining, each.acl), questions) != before
    assert chosen > 10


ALICE_READS = allow("User:alice", READ, "orders")
ALICE_DOES_ALL = allow("User:alice", ALL, "ord", pattern_type=PREFIXED)
ALICE_WRITES_PAY = allow("User:alice", WRITE, "pay")
BOB_WRITES = allow("User:bob", WRITE, "orders")
ALL_READ_NEWS = allow("User:*", READ, "news")
NOT_BOB = deny("User:bob", READ, "news")
NOT_DAVE = deny("User:dave", READ, "news")
NOT_BOB_ORDERS = deny("User:bob", READ, "orders")
PLANTED = ordered(
    [
        ALICE_READS,
        ALICE_DOES_ALL,
        ALICE_WRITES_PAY,
        BOB_WRITES,
        ALL_READ_NEWS,
        NOT_BOB,
        NOT_DAVE,
        NOT_BOB_ORDERS,
    ]
)
HOST = "192.0.2.7"
STORY: list[tuple[Question, int, date]] = [
    ((("User:alice",), HOST, READ, TOPIC, "orders"), 70, date(2026, 1, 3)),
    ((("User:alice",), HOST, DESCRIBE, TOPIC, "orders"), 7, date(2026, 1, 9)),
    ((("User:alice",), HOST, WRITE, TOPIC, "orders.eu"), 5, date(2026, 1, 2)),
    ((("User:carol",), HOST, READ, TOPIC, "news"), 4, date(2026, 1, 4)),
    ((("User:bob",), HOST, READ, TOPIC, "news"), 3, date(2026, 1, 6)),
    ((("User:bob",), HOST, READ, TOPIC, "orders"), 2, date(2026, 1, 7)),
    ((("User:mallory",), HOST, READ, TOPIC, "orders"), 1, date(2026, 1, 8)),
]


def uses_of(
    acls: Sequence[AclBinding], story: list[tuple[Question, int, date]], default: bool = False
) -> dict[AclBinding, AclUse]:
    rules = Ruleset(ordered(acls), allow_everyone_if_no_acl_found=default)
    return {
        each.acl: each
        for each in acl_uses(rules, [asked(rules, *questions) for questions in story])
    }


def test_planted_acls_are_told_apart() -> None:
    found = uses_of(PLANTED, STORY)
    assert {acl: each[1:] for acl, each in found.items()} == {
        # Everything alice did with it, she may do by the prefix, of which she needs one part.
        ALICE_READS: (UseKind.NEVER_DECISIVE, None, 77, 0, date(2026, 1, 9)),
        ALICE_DOES_ALL: (UseKind.NEEDED, Stay.NEEDED, 82, 5, date(2026, 1, 9)),
        ALICE_WRITES_PAY: (UseKind.UNMATCHED, None, 0, 0, None),
        BOB_WRITES: (UseKind.UNMATCHED, None, 0, 0, None),
        ALL_READ_NEWS: (UseKind.NEEDED, Stay.NEEDED, 7, 4, date(2026, 1, 6)),
        NOT_BOB: (UseKind.NEEDED, Stay.NEEDED, 3, 3, date(2026, 1, 6)),
        NOT_DAVE: (UseKind.UNMATCHED, Stay.UNMATCHED_DENY, 0, 0, None),
        # No ALLOW would let bob read orders.
        NOT_BOB_ORDERS: (UseKind.NEVER_DECISIVE, None, 2, 0, date(2026, 1, 7)),
    }


def test_of_several_that_allow_the_same_the_one_that_says_least_stays() -> None:
    read = allow("User:alice", READ, "orders")
    wide = [allow("User:*", READ, "orders"), allow("User:alice", ALL, "o", pattern_type=PREFIXED)]
    found = uses_of([read, *wide], STORY[:2])
    assert {acl: each.stays for acl, each in found.items()} == {
        read: Stay.CHOSEN,
        wide[0]: None,
        wide[1]: None,
    }


def test_one_that_allows_more_of_what_was_asked_stays_for_several() -> None:
    several = [allow("User:alice", READ, "orders"), allow("User:alice", WRITE, "orders.eu")]
    found = uses_of([*several, ALICE_DOES_ALL], STORY[:3])
    assert [acl for acl, each in found.items() if each.stays] == [ALICE_DOES_ALL]


def test_a_young_acl_stays_and_may_stand_for_others() -> None:
    rules = Ruleset(ordered([ALICE_READS, ALICE_DOES_ALL]))
    questions = [asked(rules, *each) for each in STORY[:2]]
    for young in range(2):
        uses = acl_uses(rules, questions, young=[young])
        assert [each.stays for each in uses].index(Stay.YOUNG) == young
        assert [each.stays for each in uses].count(None) == 1


def test_two_denies_of_the_same_are_not_both_removed() -> None:
    denies = [NOT_BOB, deny("User:bob", ALL, "news")]
    found = uses_of([ALL_READ_NEWS, *denies], STORY)
    assert {found[acl].stays for acl in denies} == {None, Stay.CHOSEN}
    assert {found[acl].use for acl in denies} == {UseKind.NEVER_DECISIVE}


class TestWhereEveryoneIsAllowedIfNoAclIsFound:
    def test_the_only_acl_of_a_resource_is_needed_for_those_it_does_not_name(self) -> None:
        found = uses_of([ALICE_READS], STORY[-1:], default=True)
        assert found[ALICE_READS][1:] == (UseKind.NEEDED, Stay.NEEDED, 0, 1, None)

    def test_the_only_acl_of_a_resource_is_not_needed_to_allow_but_stays(self) -> None:
        found = uses_of([ALICE_READS], STORY[:1], default=True)
        assert found[ALICE_READS][1:3] == (UseKind.NEVER_DECISIVE, Stay.CHOSEN)

    def test_no_unused_acl_goes_that_alone_keeps_a_resource_closed(self) -> None:
        alone = [allow("User:alice", READ, "pay"), allow("User:bob", READ, "hr")]
        two = [allow("User:alice", READ, "x"), deny("User:bob", READ, "x")]
        inner = [allow("User:alice", READ, "y."), allow("User:a", READ, "y", pattern_type=PREFIXED)]
        found = uses_of([*alone, *two, *inner], [], default=True)
        assert {acl for acl, each in found.items() if each.stays is Stay.CLOSES} == {
            *alone,
            inner[1],
        }
        assert found[two[0]].stays is None
        assert found[inner[0]].stays is None


def test_an_address_that_kafka_overlooks_does_not_stand_for_one_that_it_matches() -> None:
    matched = allow("User:alice", READ, "orders", host="0:0:0:0:0:0:0:1")
    overlooked = allow("User:alice", ALL, "*", host="::1")
    story: list[tuple[Question, int, date]] = [
        ((("User:alice",), "::1", READ, TOPIC, "orders"), 1, DAY),
        ((("User:alice",), "::1", READ, TOPIC, "pay"), 1, DAY),
    ]
    found = uses_of([matched, overlooked], story)
    assert found[matched].stays is Stay.CHOSEN
    assert found[overlooked].stays is Stay.NEEDED
