"""The use of ACLs: planted ones are told apart, and what goes does no harm and loses nothing."""

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations
from random import Random

import pytest

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.proof import removed
from aclbroker.pipeline.analysis.staying import Stay
from aclbroker.pipeline.analysis.use import AclUse, Asked, UseKind, acl_uses
from aclbroker.pipeline.replay.any_topic import reasons_on_any_topic
from aclbroker.pipeline.replay.reasons import Reasons, reasons
from tests import model
from tests.acl.examples import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    DELETE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.pipeline.random_acls import few_hosts, random_acls
from tests.pipeline.universe import (
    Asking,
    Universe,
    companies,
    is_allowed,
    is_of_any,
    on_kafka,
    with_subnets,
)

DAY = date(2026, 1, 5)


def asked(
    rules: Ruleset,
    question: tuple[tuple[str, ...], str, AclOperation, ResourceType, str],
    events: int = 1,
    day: date = DAY,
    was_allowed: bool | None = None,
) -> Asked:
    """The question as replay explains it, worked out ACL by ACL."""
    found = behind(rules, Asking(*question))
    if was_allowed is None:
        was_allowed = is_allowed(rules, Asking(*question))
    explaining: Sequence[int] = ()
    if was_allowed and not rules.cidr and not is_allowed(rules, Asking(*question)):
        explaining = asked(with_subnets(rules), question, was_allowed=False).allows
    return Asked(found.allows, found.denies, found.alone, events, day, was_allowed, explaining)


def behind(rules: Ruleset, question: Asking) -> Reasons:
    """The ACLs behind a decision."""
    who, peer, operation, kind, name = question
    if is_of_any(operation, kind, name):
        core = rules.authorizer()
        return reasons_on_any_topic(
            core.index,
            {acl: position for position, acl in enumerate(rules.acls)},
            Session(who, peer, "").peer,
            operation,
            is_open=rules.allow_everyone_if_no_acl_found,
        )
    allows, denies, on_resource = [], [], []
    for position, acl in enumerate(rules.acls):
        if model.pattern_matches(acl, kind, name):
            on_resource.append(position)
            if acl.permission is AclPermission.ALLOW:
                if model.authorize([acl], who, peer, operation, kind, name, cidr=rules.cidr):
                    allows.append(position)
            elif model.applies(acl, who, peer, rules.cidr) and acl.operation in (operation, ALL):
                denies.append(position)
    return reasons(allows, denies, on_resource if rules.allow_everyone_if_no_acl_found else None)


def allowing(rules: Ruleset, request: Asking) -> list[AclBinding]:
    """The ACLs of which an authorizer may name any, if it allows a request."""
    return [rules.acls[position] for position in asked(rules, request, was_allowed=False).allows]


def without(rules: Ruleset, gone: Iterable[AclBinding]) -> Ruleset:
    return rules.with_acls(set(rules.acls) - set(gone))


class Case:
    """ACLs, what was asked, and every request near them."""

    def __init__(self, rules: Ruleset, log: Sequence[Asking], young: Sequence[int] = ()) -> None:
        self.rules = rules
        self.log = log
        self.universe = Universe(rules.acls, companies(rules.acls))
        self.uses = acl_uses(rules, [asked(rules, each) for each in log], young=young)
        self.gone = {each.acl for each in self.uses if each.stays is None}
        self.remaining = without(rules, self.gone)
        # Where hosts are read alike, once is enough.
        self._readings = [
            read for read in READ_AS if read is as_given or read(rules) != as_given(rules)
        ]
        self._before = [self.universe.allowed(read(rules)) for read in self._readings]

    def opens(self, gone: Iterable[AclBinding]) -> list[Asking]:
        """The requests that become allowed without some ACLs, however hosts are read."""
        after = without(self.rules, gone)
        found: set[int] = set()
        for number, read in enumerate(self._readings):
            found |= self.universe.allowed(read(after)) - self._before[number]
        return [self.universe.requests[at] for at in found]

    def loses(self, gone: Iterable[AclBinding]) -> set[Asking]:
        """What was asked and allowed, and is not without some ACLs, here or on a Kafka."""
        after = without(self.rules, gone)
        return {
            each
            for each in self.log
            for read in (as_given, on_kafka)
            if is_allowed(read(self.rules), each) and not is_allowed(read(after), each)
        }


def as_given(rules: Ruleset) -> Ruleset:
    return rules


READ_AS = (as_given, on_kafka, with_subnets)


def random_case(random: Random, size: int, *, default: bool, cidr: bool) -> Case:
    acls = with_wider(random, random_acls(random, size, few_hosts(random)))
    rules = Ruleset(acls, allow_everyone_if_no_acl_found=default, cidr=cidr)
    universe = Universe(rules.acls, companies(rules.acls))
    allowed = sorted(universe.allowed(rules))
    log = random.choices(range(len(universe.requests)), k=random.choice((0, 10, 40)))
    # Of all requests few are about any topic.
    of_any = [at for at, each in enumerate(universe.requests) if each.name == ANY_RESOURCE]
    log += random.sample(of_any, min(2, len(of_any)))
    # Most of what is drawn from everything is denied.
    log += random.choices(allowed, k=random.choice((1, 4, 12))) if allowed else []
    return Case(rules, [universe.requests[at] for at in log])


def with_wider(random: Random, acls: Sequence[AclBinding]) -> tuple[AclBinding, ...]:
    """Some ACLs, and some that say the same and more, of which one has to stay."""
    wider = [
        acl._replace(**change)
        for acl in acls
        if acl.permission is AclPermission.ALLOW
        for change in ({"host": "*"}, {"operation": ALL}, {"principal": "User:*"})
    ]
    return ordered([*acls, *random.sample(wider, min(len(wider), len(acls) // 3))])


OPEN = pytest.param(True, id="open", marks=pytest.mark.thorough)
DEFAULT = pytest.mark.parametrize("default", [pytest.param(False, id="closed"), OPEN])
ADDRESSES = pytest.param(False, id="addresses", marks=pytest.mark.thorough)
CIDR = pytest.mark.parametrize("cidr", [ADDRESSES, pytest.param(True, id="subnets")])


@CIDR
@DEFAULT
def test_what_goes_opens_nothing_and_loses_nothing_that_was_used(default: bool, cidr: bool) -> None:
    random = Random(f"harmless {cidr} {default}")
    gone = denies = 0
    for _ in range(15):
        case = random_case(random, random.choice((5, 12, 25)), default=default, cidr=cidr)
        assert not case.opens(case.gone), case.rules
        assert not bares(case, case.gone), case.rules
        assert not case.loses(case.gone), case.rules
        # The general proof finds nothing to put back.
        assert removed(case.rules, case.gone).put_back == set()
        gone += len(case.gone)
        denies += sum(each.permission is AclPermission.DENY for each in case.gone)
    assert gone > 40
    assert denies > 20


@CIDR
@DEFAULT
def test_nothing_stays_that_could_go_as_well(default: bool, cidr: bool) -> None:
    random = Random(f"least {cidr} {default}")
    seen = set()
    for _ in range(15):
        case = random_case(random, random.choice((4, 8, 12)), default=default, cidr=cidr)
        for each in case.uses:
            if each.stays is None:
                continue
            seen.add(each.stays)
            gone = {*case.gone, each.acl}
            harms = bares(case, gone)
            if each.acl.permission is AclPermission.ALLOW:
                harms = harms or bool(case.loses(gone) or case.opens(gone))
            else:
                harms = harms or protects(case, each.acl)
            assert harms, (case.rules, case.log, each)
    assert {Stay.NEEDED, Stay.CHOSEN, Stay.PROTECTS} <= seen
    assert default == (Stay.CLOSES in seen)


def protects(case: Case, denial: AclBinding) -> bool:
    """Whether it takes back some of what the ALLOWs left allow, and no others deny all of it.

    So a DENY stays though others deny just that part of it which the ALLOWs have.
    """
    allows = [acl for acl in case.remaining.acls if acl.permission is AclPermission.ALLOW]
    others = [
        acl for acl in case.remaining.acls if acl.permission is AclPermission.DENY and acl != denial
    ]
    everything = [
        allow("User:*", ALL, "*", resource_type=kind)
        for kind in {acl.resource_type for acl in case.rules.acls}
    ]
    closed = replace(case.rules, allow_everyone_if_no_acl_found=False)
    return any(allowed_less(case, read, closed, allows, denial) for read in READ_AS) and any(
        allowed_less(case, read, closed, [*everything, *others], denial) for read in READ_AS
    )


def allowed_less(case: Case, read, rules: Ruleset, acls: list[AclBinding], denial: AclBinding):
    without_it, with_it = rules.with_acls(acls), rules.with_acls([*acls, denial])
    return case.universe.allowed(read(without_it)) - case.universe.allowed(read(with_it))


def bares(case: Case, gone: Iterable[AclBinding]) -> bool:
    """Whether a name that had ACLs has none without some, where that opens it to everybody.

    That is harm though all of them may have been allowed everything by these ACLs.
    """
    if not case.rules.allow_everyone_if_no_acl_found:
        return False
    after = without(case.rules, gone)
    return any(
        has_acl(case.rules, kind, name) and not has_acl(after, kind, name)
        for kind, names in case.universe.resources.items()
        for name in names
    )


def has_acl(rules: Ruleset, kind: ResourceType, name: str) -> bool:
    return any(model.pattern_matches(acl, kind, name) for acl in rules.acls)


@DEFAULT
def test_no_larger_set_of_a_few_acls_could_go_together(default: bool) -> None:
    random = Random(f"largest {default}")
    compared = 0
    for _ in range(20):
        case = random_case(random, 6, default=default, cidr=True)
        left = [
            each.acl
            for each in case.uses
            if each.stays is not None and each.acl.permission is AclPermission.ALLOW
        ]
        for size in range(1, len(left) + 1):
            for more in combinations(left, size):
                compared += 1
                gone = {*case.gone, *more}
                harms = case.loses(gone) or case.opens(gone) or bares(case, gone)
                assert harms, (case.rules, case.log, more)
    assert compared > 40


@CIDR
@DEFAULT
def test_an_acl_is_needed_if_its_removal_alone_changes_an_answer(default: bool, cidr: bool) -> None:
    random = Random(f"needed {cidr} {default}")
    needed = 0
    for _ in range(12):
        case = random_case(random, random.choice((5, 15)), default=default, cidr=cidr)
        before = [is_allowed(case.rules, each) for each in case.log]
        for each in case.uses:
            after = without(case.rules, [each.acl])
            changes = before != [is_allowed(after, asking) for asking in case.log]
            assert (each.use is UseKind.NEEDED) == changes
            needed += changes
    assert needed > 10


@pytest.mark.thorough
def test_young_acls_stay_and_nothing_is_opened_or_lost_beside_them() -> None:
    random = Random("young")
    for _ in range(12):
        drawn = random_case(random, 15, default=random.random() < 0.5, cidr=True)
        young = random.sample(range(len(drawn.rules.acls)), len(drawn.rules.acls) // 5)
        case = Case(drawn.rules, drawn.log, young)
        assert not case.gone & {drawn.rules.acls[position] for position in young}
        assert not case.opens(case.gone)
        assert not case.loses(case.gone)


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
Question = tuple[tuple[str, ...], str, AclOperation, ResourceType, str]
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
    assert {acl: each[1:6] for acl, each in found.items()} == {
        # Everything alice did with it, she may do by the prefix, of which she needs one part.
        ALICE_READS: (UseKind.NEVER_DECISIVE, None, 77, 0, date(2026, 1, 9)),
        ALICE_DOES_ALL: (UseKind.NEEDED, Stay.NEEDED, 82, 5, date(2026, 1, 9)),
        ALICE_WRITES_PAY: (UseKind.UNMATCHED, None, 0, 0, None),
        BOB_WRITES: (UseKind.UNMATCHED, None, 0, 0, None),
        ALL_READ_NEWS: (UseKind.NEEDED, Stay.NEEDED, 7, 4, date(2026, 1, 6)),
        NOT_BOB: (UseKind.NEEDED, Stay.NEEDED, 3, 3, date(2026, 1, 6)),
        NOT_DAVE: (UseKind.UNMATCHED, Stay.PROTECTS, 0, 0, None),
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


def test_several_that_say_less_stay_for_one_that_says_more() -> None:
    several = [allow("User:alice", READ, "orders"), allow("User:alice", WRITE, "orders.eu")]
    found = uses_of([*several, ALICE_DOES_ALL], STORY[:3])
    assert {acl for acl, each in found.items() if each.stays} == {*several}


def test_the_widest_goes_though_each_event_may_name_it() -> None:
    narrow = [allow("User:alice", READ, "t1"), allow("User:alice", READ, "t2")]
    wide = [allow("User:*", ALL, "*"), allow("User:alice", READ, "t", pattern_type=PREFIXED)]
    log = [asking("alice", READ, "t1"), asking("alice", READ, "t2")]
    assert planted(log, *wide, *narrow).gone == {*wide}
    assert planted(log, *wide).gone == {wide[0]}
    # Where the wide one has to stay, those that say less do nothing more.
    assert planted([*log, asking("bob", READ, "t3")], *wide, *narrow).gone == {wide[1], *narrow}


def test_of_those_that_say_equally_much_the_fewest_stay() -> None:
    both = allow("User:alice", READ, "orders")
    others = [allow("Group:a", READ, "orders"), allow("Group:b", READ, "orders")]
    log = [
        Asking(("User:alice", group), HOST, READ, TOPIC, "orders")
        for group in ("Group:a", "Group:b")
    ]
    case = planted(log, both, *others)
    assert case.gone == {*others}


class TestOfAnyTopic:
    ANY = Asking(("User:alice",), HOST, WRITE, TOPIC, ANY_RESOURCE)

    def test_the_wide_one_goes_if_one_that_says_less_suffices_for_an_idempotent_producer(
        self,
    ) -> None:
        wide, narrow = allow("User:*", ALL, "*"), allow("User:alice", WRITE, "app.x")
        case = planted([self.ANY, asking("alice", WRITE, "app.x")], wide, narrow)
        assert case.gone == {wide}
        assert {each.use for each in case.uses} == {UseKind.NEVER_DECISIVE}

    def test_the_only_one_that_suffices_is_needed_though_no_topic_of_it_was_written(self) -> None:
        writes = allow("User:alice", WRITE, "app.", pattern_type=PREFIXED)
        reads = allow("User:alice", READ, "app.", pattern_type=PREFIXED)
        case = planted([self.ANY], writes, reads)
        assert case.gone == {reads}
        assert {each.acl: each.use for each in case.uses} == {
            writes: UseKind.NEEDED,
            reads: UseKind.UNMATCHED,
        }

    def test_of_several_that_suffice_one_stays_and_no_other_is_said_to_be_met_by_nothing(
        self,
    ) -> None:
        several = [allow("User:alice", WRITE, "a"), allow("User:alice", WRITE, "b", host=HOST)]
        case = planted([self.ANY], *several)
        assert case.gone == {several[0]}
        assert [(each.use, each.events) for each in case.uses] == 2 * [(UseKind.NEVER_DECISIVE, 1)]
        assert case.uses[0].why == "Others that stay allow what was used of it."

    def test_what_denies_take_back_does_not_suffice(self) -> None:
        denied = allow("User:alice", WRITE, "ab")
        denial = deny("User:alice", WRITE, "a", pattern_type=PREFIXED)
        free = allow("User:alice", WRITE, "b", pattern_type=PREFIXED)
        case = planted([self.ANY], denied, denial, free)
        assert case.gone == {denied, denial}

    def test_each_deny_that_alone_stands_in_the_way_is_needed(self) -> None:
        allows = [allow("User:alice", WRITE, "a"), allow("User:alice", WRITE, "b")]
        denies = [deny("User:alice", WRITE, "a"), deny("User:alice", WRITE, "b")]
        case = planted([self.ANY], *allows, *denies)
        uses = {each.acl: each.use for each in case.uses}
        assert {uses[acl] for acl in denies} == {UseKind.NEEDED}
        assert case.gone == {*allows, *denies}


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
    assert [found[acl].stays for acl in denies] == [None, Stay.PROTECTS]
    assert {found[acl].use for acl in denies} == {UseKind.NEVER_DECISIVE}


class TestWhereEveryoneIsAllowedIfNoAclIsFound:
    def test_the_only_acl_of_a_resource_is_needed_for_those_it_does_not_name(self) -> None:
        found = uses_of([ALICE_READS], STORY[-1:], default=True)
        assert found[ALICE_READS][1:6] == (UseKind.NEEDED, Stay.NEEDED, 0, 1, None)

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
            two[1],
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


def planted(log: Sequence[Asking], *acls: AclBinding, cidr: bool = False) -> Case:
    """A case of few ACLs, held to every request near them: it does no harm, and is minimal."""
    case = Case(Ruleset(ordered(acls), cidr=cidr), log)
    assert not case.opens(case.gone)
    assert not case.loses(case.gone)
    left = [acl for acl in case.rules.acls if acl not in case.gone]
    for size in range(1, len(left) + 1):
        for more in combinations(left, size):
            gone = {*case.gone, *more}
            assert case.loses(gone) or case.opens(gone), more
    return case


def asking(
    user: str, operation: AclOperation, name: str, host: str = HOST, kind: ResourceType = TOPIC
) -> Asking:
    return Asking((f"User:{user}",), host, operation, kind, name)


def test_a_deny_for_everybody_that_was_met_and_not_decisive_protects_who_has_a_wide_allow() -> None:
    wide = allow("User:alice", ALL, "*")
    denied = deny("User:*", ALL, "hr.", pattern_type=PREFIXED)
    case = planted([asking("alice", READ, "sales"), asking("bob", READ, "hr.pay")], wide, denied)
    assert case.gone == set()
    assert {each.acl: each.stays for each in case.uses} == {
        wide: Stay.NEEDED,
        denied: Stay.PROTECTS,
    }
    assert case.uses[ordered([wide, denied]).index(denied)].use is UseKind.NEVER_DECISIVE


def test_a_wide_deny_does_not_go_for_a_narrow_one_that_was_met_as_well() -> None:
    wide, narrow = deny(operation=WRITE), deny(operation=ALL, host="10.0.0.9")
    case = planted(
        [asking("alice", READ, "orders"), asking("alice", WRITE, "orders", "10.0.0.9")],
        allow(operation=ALL),
        wide,
        narrow,
    )
    assert case.gone == set()


def test_a_deny_goes_for_a_wider_one_or_for_several_that_deny_all_of_it() -> None:
    used = [asking("alice", READ, "orders")]
    case = planted(used, allow(operation=ALL), deny(operation=WRITE), deny("User:*", WRITE, "*"))
    assert case.gone == {deny(operation=WRITE)}
    halves = [deny("User:*", WRITE, host="0.0.0.0/0"), deny("User:*", WRITE, host="::/0")]
    case = planted(used, allow(operation=ALL), deny(operation=WRITE), *halves, cidr=True)
    assert case.gone == {deny(operation=WRITE)}


def test_a_deny_that_was_decisive_goes_with_the_allow_that_it_took_back_from() -> None:
    both = {allow(operation=WRITE), deny(operation=WRITE)}
    case = planted([asking("alice", WRITE, "orders")], *both)
    assert case.gone == both
    why = {each.acl: each.why for each in case.uses}
    assert why[deny(operation=WRITE)] == "It takes back nothing: no ACL allows any of it."
    assert why[allow(operation=WRITE)] == (
        "It allowed no event: DENYs took back whatever was asked of it."
    )


def test_a_deny_of_a_group_stays_for_members_whom_something_else_allows() -> None:
    case = planted([asking("alice", READ, "orders")], allow(), deny("Group:guests", READ, "orders"))
    assert case.gone == set()
    other = deny("User:bob", READ, "orders")
    assert planted([asking("alice", READ, "orders")], allow(), other).gone == {other}


@pytest.mark.parametrize(
    ("wide", "used", "kind"),
    [
        (ALTER, DESCRIBE, CLUSTER),
        (ALL, DESCRIBE, CLUSTER),
        (ALTER_CONFIGS, DESCRIBE_CONFIGS, CLUSTER),
        (DELETE, DESCRIBE, TOPIC),
        (READ, DESCRIBE, TOPIC),
        (WRITE, DESCRIBE, TOPIC),
        (ALL, READ, TOPIC),
        (ALTER_CONFIGS, DESCRIBE_CONFIGS, TOPIC),
    ],
    ids=lambda each: each.name,
)
def test_of_an_operation_and_one_that_implies_it_only_the_used_one_stays(
    wide: AclOperation, used: AclOperation, kind: ResourceType
) -> None:
    name = "kafka-cluster" if kind is CLUSTER else "orders"
    broad = allow(operation=wide, name=name, resource_type=kind)
    narrow = allow(operation=used, name=name, resource_type=kind)
    case = planted([asking("alice", used, name, kind=kind)], broad, narrow)
    assert case.gone == {broad}


@pytest.mark.parametrize(
    ("narrow", "wide", "cidr"),
    [
        (HOST, "*", False),
        (HOST, "192.0.2.0/24", True),
        ("192.0.2.0/28", "192.0.2.0/24", True),
    ],
)
def test_of_hosts_the_narrowest_stays(narrow: str, wide: str, cidr: bool) -> None:
    case = planted(
        [asking("alice", READ, "orders")], allow(host=narrow), allow(host=wide), cidr=cidr
    )
    assert case.gone == {allow(host=wide)}


class TestOfWhatTheLogSaysOtherwise:
    def test_what_allowed_an_event_that_a_deny_now_takes_back_stays(self) -> None:
        rules = Ruleset(ordered([allow(), deny()]))
        question = asking("alice", READ, "orders")
        for was_allowed, stays in ((True, Stay.LOGGED), (False, None)):
            uses = acl_uses(rules, [asked(rules, question, was_allowed=was_allowed)])
            assert [each.stays for each in uses if each.acl == allow()] == [stays]
            (of_deny,) = (each for each in uses if each.acl == deny())
            assert of_deny.stays is (Stay.NEEDED if was_allowed else None)

    def test_an_acl_that_the_log_may_name_goes_only_for_others_that_allow_the_same(self) -> None:
        """Whichever of those that allowed an event it names, and however the ACLs changed since."""
        random = Random("named")
        gone_and_allowed = gone_and_denied = stays = 0
        for _ in range(30):
            drawn = with_wider(random, random_acls(random, 12, few_hosts(random)))
            then = Ruleset(drawn, cidr=random.random() < 0.3)
            denied = [each._replace(permission=AclPermission.DENY) for each in drawn[::4]]
            since = {*drawn, *denied} - set(random.sample(drawn, len(drawn) // 5))
            now = Ruleset(ordered(since), cidr=then.cidr)
            universe = Universe(drawn)
            allowed = sorted(universe.allowed(then))
            log = [universe.requests[at] for at in random.choices(allowed, k=12 * bool(allowed))]
            uses = acl_uses(now, [asked(now, each, was_allowed=True) for each in log])
            gone = {each.acl for each in uses if each.stays is None}
            left = without(now, gone)
            for each in log:
                may_be_named = since.intersection(allowing(then, each))
                if gone.isdisjoint(may_be_named):
                    stays += len(may_be_named)
                    continue
                assert allowing(left, each), (now, each)
                assert is_allowed(left, each) == is_allowed(now, each)
                gone_and_allowed += is_allowed(now, each)
                gone_and_denied += not is_allowed(now, each)
        assert min(stays, gone_and_allowed, gone_and_denied) > 5

    def test_each_acl_on_a_subnet_that_would_explain_an_allowed_event_stays(self) -> None:
        several = [allow(host="192.0.2.0/24"), allow(operation=ALL, host="192.0.2.0/28")]
        other = allow(host="10.0.0.0/8")
        rules = Ruleset(ordered([*several, other]))
        uses = acl_uses(rules, [asked(rules, asking("alice", READ, "orders"), was_allowed=True)])
        assert {each.acl: each.stays for each in uses} == {
            **dict.fromkeys(several, Stay.LOGGED),
            other: None,
        }
