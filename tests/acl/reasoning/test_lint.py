"""What lint finds, by an example of each code, and what it leaves alone."""

import sys

import pytest

from aclbroker.acl.bindings import AclBinding, AclOperation, PatternType, ResourceType
from aclbroker.acl.reasoning.lint.findings import CODES, Severity
from aclbroker.acl.reasoning.lint.linting import lint
from aclbroker.acl.reasoning.lint.orphans import Live
from aclbroker.acl.reasoning.rules import Rules
from tests.acl.examples import (
    ALL,
    ALTER,
    ALTER_CONFIGS,
    CLUSTER,
    CREATE,
    DESCRIBE,
    DESCRIBE_CONFIGS,
    GROUP,
    PREFIXED,
    READ,
    WRITE,
    allow,
    deny,
)

USER, TXN_ID = ResourceType.USER, ResourceType.TRANSACTIONAL_ID
TOKENS = AclOperation.CREATE_TOKENS
NOTE, WARNING, ERROR = Severity.NOTE, Severity.WARNING, Severity.ERROR


def cluster(operation, principal="User:alice", **options):
    return allow(principal, operation, "kafka-cluster", resource_type=CLUSTER, **options)


def found(*acls, live=Live(), **settings):  # noqa: B008
    """The code and severity of each finding, and the ACL it is about."""
    settings = {name: value for name, value in settings.items() if value is not None}
    return [(each.code, each.severity, each.acl) for each in lint(Rules(acls, **settings), live)]


ONE = [
    ("shadowed", WARNING, allow(host="10.0.0.1"),
     [deny("User:*", ALL, "o", pattern_type=PREFIXED)]),
    ("redundant", WARNING, allow(), [allow(operation=ALL, name="ord", pattern_type=PREFIXED)]),
    ("redundant", WARNING, deny(), [deny("User:*"), allow()]),
    ("redundant", WARNING, allow(operation=DESCRIBE), [allow(operation=WRITE)]),
    ("redundant", WARNING, allow(), [deny(), allow("User:*", DESCRIBE)]),
    ("idle-deny", NOTE, deny("User:bob"), [allow()]),
    ("super-user", NOTE, allow("User:root"), []),
    ("super-user", ERROR, deny("User:root"), []),
    ("host-matches-nobody", WARNING, allow(host="laptop.example"), []),
    ("host-matches-nobody", ERROR, deny(host="10.0.0.1 "), []),
    ("subnet-matches-nobody", ERROR, deny(host="10.0.0.0/8"), []),
    ("operation-never-asked", WARNING, allow(operation=CREATE, resource_type=GROUP), []),
    ("operation-never-asked", ERROR, deny(operation=WRITE, resource_type=GROUP), []),
    ("name-of-no-cluster", WARNING, allow(name="other", resource_type=CLUSTER), []),
    ("contradictory", WARNING, allow(), [deny("User:*", DESCRIBE)]),
    ("contradictory", NOTE, allow(operation=ALL), [deny(operation=WRITE)]),
    ("operation-not-of-type", WARNING, allow(operation=WRITE, resource_type=GROUP), []),
    ("host-form", WARNING, allow(host="::1"), []),
    ("host-form", WARNING, allow(host="::ffff:10.0.0.1"), []),
    ("host-form", WARNING, allow(host="fe80::1%eth0"), []),
    ("impossible-name", WARNING, allow(name="a b"), []),
    ("impossible-name", WARNING, allow(name="a b", pattern_type=PREFIXED), []),
    ("impossible-name", ERROR, deny(name=".."), [allow("User:*", name="..", host="10.0.0.1")]),
    ("blanks", WARNING, allow(name="orders "), []),
    ("blanks", WARNING, allow("User: alice"), []),
    ("literal-star", WARNING, allow(name="orders-*"), []),
    ("literal-star", WARNING, allow(name="orders-*", pattern_type=PREFIXED), []),
    ("literal-star", WARNING, allow("User:team-*"), []),
    ("literal-star", WARNING, allow("Group:*"), []),
    ("similar-principal", WARNING, allow("user:alice"), []),
    ("similar-principal", WARNING, allow("User:Alice", name="b"), [allow(), allow(name="a")]),
    ("over-broad", WARNING, allow(name="*", operation=ALL), []),
    ("over-broad", WARNING, allow("User:*", name="*"), []),
    ("over-broad", ERROR, allow("User:*", ALL, "*"), []),
    ("risky-cluster", WARNING, cluster(ALTER), []),
    ("risky-cluster", ERROR, cluster(AclOperation.CLUSTER_ACTION, "User:*"), []),
    ("risky-tokens", ERROR, allow(operation=TOKENS, name="*", resource_type=USER), []),
    ("risky-tokens", ERROR, allow(operation=TOKENS, name="User:root", resource_type=USER), []),
    ("risky-transactions", NOTE, allow(operation=WRITE, name="*", resource_type=TXN_ID), []),
    ("risky-internal-topic", WARNING, allow(operation=WRITE, name="__consumer_offsets"), []),
    ("orphaned", WARNING, allow(name="gone"), []),
    ("orphaned", WARNING, allow(name="gone-", pattern_type=PREFIXED), []),
    ("orphaned", NOTE, allow(name="gone", resource_type=GROUP), []),
]  # fmt: skip


@pytest.mark.parametrize(
    ("code", "severity", "acl", "others"), ONE, ids=lambda each: str(each)[:40]
)
def test_an_acl_of_a_kind_is_found_as_that_alone(code, severity, acl, others):
    live = Live(["orders"], ["orders"]) if code == "orphaned" else Live()
    findings = found(acl, *others, live=live, super_users=frozenset({"User:root"}))
    assert [each for each in findings if each[2] == acl] == [(code, severity, acl)]


def test_there_is_an_example_of_each_code():
    assert {code for code, *_ in ONE} == CODES.keys()


@pytest.mark.parametrize(
    "acls",
    [
        [allow("User:*"), deny("User:bob"), allow(operation=WRITE)],
        [allow(pattern_type=PREFIXED), deny(name="orders-secret")],
        [allow(), deny(host="10.0.0.1")],
        [allow(operation=ALL, name="*"), deny(name="pii")],
        [allow("User:*", DESCRIBE), allow("Group:staff"), deny("Group:staff", WRITE),
         allow("User:zoe", WRITE)],
        [allow(host="0:0:0:0:0:0:0:1"), allow(host="10.0.0.1")],
        [cluster(DESCRIBE), cluster(AclOperation.IDEMPOTENT_WRITE)],
        [allow(operation=TOKENS, name="User:bob", resource_type=USER)],
        [allow(operation=WRITE, name="tx", resource_type=TXN_ID)],
        [allow(name="__consumer_offsets"),
         allow(operation=DESCRIBE, name="a b", resource_type=GROUP)],
        [allow(operation=CREATE, name="new"), allow(name="*", resource_type=GROUP)],
    ],
)  # fmt: skip
def test_what_is_in_order_is_not_found(acls):
    ignored = {"over-broad"} if acls[0].operation is ALL else set()
    live = Live(["orders", "orders-secret", "pii", "__consumer_offsets"], ["a b"])
    assert {code for code, *_ in found(*acls, live=live)} <= ignored


def test_of_two_acls_that_say_the_same_the_one_that_kafka_reads_stays():
    plain, mapped = allow(host="10.0.0.1"), allow(host="::ffff:10.0.0.1")
    assert found(plain, mapped) == [("redundant", WARNING, mapped)]
    long, short = allow(host="0:0:0:0:0:0:0:1"), allow(host="::1")
    assert found(long, short) == [("redundant", WARNING, short)]
    literal = cluster(DESCRIBE)
    prefixed = literal._replace(pattern_type=PREFIXED)
    assert found(prefixed, literal) == [("redundant", WARNING, prefixed)]


def test_of_two_acls_that_come_to_the_same_the_one_that_says_what_it_means_stays():
    writing, describing = (allow(operation=each, resource_type=GROUP) for each in (WRITE, DESCRIBE))
    assert found(writing, describing) == [("redundant", WARNING, writing)]
    whole, *halves = (allow(host=each) for each in ("10.0.0.0/24", "10.0.0.0/25", "10.0.0.128/25"))
    assert found(whole, *halves, cidr=True) == [("redundant", WARNING, each) for each in halves]


def test_an_acl_that_works_on_this_broker_alone_makes_none_of_kafka_superfluous():
    of_kafka = allow(operation=DESCRIBE, host="0:0:0:0:0:0:0:1")
    assert [code for code, *_ in found(of_kafka, allow(host="::1"))] == ["host-form"]
    in_any_form = found(of_kafka, allow(host="::1"), cidr=True)
    assert in_any_form == [("redundant", WARNING, of_kafka)]


def test_an_address_on_one_interface_lies_in_the_address():
    zoned = allow(host="fe80::1%eth0")
    assert ("redundant", WARNING, zoned) in found(zoned, allow(host="fe80::1"))
    assert ("redundant", WARNING, zoned) in found(zoned, allow(host="fe80::/64"), cidr=True)


def test_subnets_that_are_all_of_another_make_it_superfluous():
    whole, halves = allow(host="10.0.0.0/24"), ["10.0.0.0/25", "10.0.0.128/25"]
    half = [allow(operation=ALL, host=each) for each in halves]
    assert [each for each in found(whole, *half, cidr=True) if each[0] == "redundant"] == [
        ("redundant", WARNING, whole)
    ]
    [finding] = lint(Rules([whole, *half], cidr=True))
    assert set(finding.because) == set(half)
    assert found(whole, half[0], cidr=True) == []
    everything = [deny(operation=ALL, host=each) for each in ("0.0.0.0/0", "::/0")]
    assert ("shadowed", WARNING, allow()) in found(allow(), *everything, cidr=True)


def test_all_is_superfluous_beside_every_operation_and_not_beside_all_but_one():
    every = [allow(operation=each) for each in (READ, WRITE, CREATE, AclOperation.DELETE, ALTER,
                                                ALTER_CONFIGS)]  # fmt: skip
    # ALL is kept, since it makes each of the others superfluous.
    assert {acl for code, _, acl in found(allow(operation=ALL), *every) if code == "redundant"} == {
        *every
    }
    wider = [each._replace(principal="User:*") for each in every]
    assert ("redundant", WARNING, allow(operation=ALL)) in found(allow(operation=ALL), *wider)
    assert found(allow(operation=ALL), *wider[1:]) == []


def test_a_group_of_the_file_makes_what_its_members_have_superfluous():
    groups = {"User:alice": ("Group:staff",)}
    assert found(allow(), allow("Group:staff"), groups=groups) == [("redundant", WARNING, allow())]
    assert found(allow("User:bob"), allow("Group:staff"), groups=groups) == []
    # Who is a group to others has not their groups wherever it counts.
    nested = {"User:alice": ("Group:staff",), "User:zoe": ("User:alice",)}
    assert found(allow(), allow("Group:staff"), groups=nested) == []


def test_the_acl_that_keeps_names_closed_is_not_to_be_removed():
    idle = [allow("User:a", host="laptop"), allow("User:b", host="laptop")]
    findings = lint(Rules(idle, allow_everyone_if_no_acl_found=True))
    assert [bool(each.fix) for each in findings] == [True, False]
    assert "keep names closed" in findings[1].no_fix
    denial = deny("User:bob")
    assert found(denial, allow_everyone_if_no_acl_found=True) == []
    wider = allow("User:a", name="ord", pattern_type=PREFIXED, host="laptop")
    closed = found(denial, wider, allow_everyone_if_no_acl_found=True)
    assert ("idle-deny", NOTE, denial) in closed
    other = allow(name="other", resource_type=CLUSTER)
    [finding] = lint(Rules([other], allow_everyone_if_no_acl_found=True))
    assert finding.is_safe


def test_what_is_left_of_an_allow_is_what_the_fix_adds():
    acl = allow(operation=ALL)
    [finding] = lint(Rules([acl, deny(operation=WRITE), deny(operation=ALTER_CONFIGS)]))
    assert finding.fix is not None
    assert {each.operation for each in finding.fix.add} == {
        READ, CREATE, AclOperation.DELETE, ALTER, DESCRIBE_CONFIGS
    }  # fmt: skip
    assert finding.fix.remove == (acl,)
    assert finding.is_safe


def test_no_fix_adds_what_another_removes():
    every, one = allow(operation=ALL), allow()
    [note, redundant] = sorted(lint(Rules([every, one, deny(operation=WRITE)])))
    assert (note.code, note.fix) == ("contradictory", None)
    assert "first remove what is redundant" in note.no_fix
    assert (redundant.code, redundant.acl) == ("redundant", one)
    [note] = lint(Rules([every, deny(operation=WRITE)]))
    assert note.fix is not None
    assert one in note.fix.add


def test_findings_name_the_acls_that_they_follow_from():
    cover, denial = allow("User:*"), deny(operation=ALL)
    [finding] = [each for each in lint(Rules([allow(operation=DESCRIBE), cover])) if each.because]
    assert finding.because == (cover,)
    [shadowed] = lint(Rules([allow(), denial]))
    assert (shadowed.code, shadowed.because) == ("shadowed", (denial,))
    [partly] = lint(Rules([allow(operation=DESCRIBE), deny(operation=DESCRIBE, name="o",
                                                           pattern_type=PREFIXED)]))  # fmt: skip
    assert partly.because[0].operation is DESCRIBE


def test_who_may_make_tokens_for_anybody_is_found_without_super_users_too():
    acl = allow(operation=TOKENS, name="*", resource_type=USER)
    assert found(acl) == [("risky-tokens", WARNING, acl)]
    describing = acl._replace(operation=AclOperation.DESCRIBE_TOKENS)
    assert found(describing) == []


def test_the_worst_is_told_first():
    severities = [severity for _, severity, _ in found(*(acl for _, _, acl, _ in ONE))]
    assert severities == sorted(severities, reverse=True)
    assert set(severities) == {NOTE, WARNING, ERROR}


def test_an_acl_that_is_given_twice_is_found_once():
    assert found(allow(host="laptop"), allow(host="laptop")) == [
        ("host-matches-nobody", WARNING, allow(host="laptop"))
    ]


def many(count: int) -> list[AclBinding]:
    """ACLs of all kinds, on names with common prefixes."""
    acls = []
    for number in range(count // 5):
        user, name = f"User:u{number % (count // 50)}", f"team-{number % 37}-{number}"
        acls += [
            allow(user, READ, name),
            allow(user, DESCRIBE, name, host=f"10.0.{number // 250}.{number % 250}"),
            allow(user, WRITE, name[: 6 + number % 4], pattern_type=PatternType.PREFIXED),
            deny("User:*" if number % 20 == 0 else user, READ, name, host="10.9.9.9"),
            allow(user, READ, name, resource_type=GROUP),
        ]
    return acls


def test_the_work_grows_with_the_number_of_acls():
    def calls(count: int) -> int:
        seen = 0

        def count_one(*_: object) -> None:
            nonlocal seen
            seen += 1

        rules = Rules(many(count))
        sys.setprofile(count_one)
        try:
            lint(rules)
        finally:
            sys.setprofile(None)
        return seen

    assert calls(8000) < 5 * calls(2000)
