"""Regions of hosts and names: what they hold, how they are written, and the examples of them."""

import pytest

from aclbroker.acl.bindings import PatternType, ResourceType
from aclbroker.acl.reasoning import hosts
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.names import (
    LITERAL,
    PREFIX,
    ROOT,
    NamePattern,
    NameRegion,
    is_topic_name,
    key_of,
)
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.regions import Principals, Region, Request
from aclbroker.acl.reasoning.rules import Rules
from tests.acl.examples import CLUSTER, GROUP, READ, TOPIC, allow, deny

ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."


EVERY = [chr(code) for code in range(1, 0x110000) if not 0xD800 <= code < 0xE000]


def areas(*hosts, of):
    cut = HostCut(hosts, cidr=True)
    mask = 0
    for each in of:
        mask ^= cut.mask(each, True)
    return [str(area) for area in cut.areas(mask)]


def test_hosts_are_written_with_what_is_taken_out():
    assert areas("10.0.0.0/8", "10.0.0.7", of=["*"]) == ["any host"]
    assert areas("10.0.0.0/8", "10.0.0.7", of=["10.1.2.3/8"]) == ["10.0.0.0/8"]
    assert areas("10.0.0.0/8", "10.0.0.7", of=["10.0.0.0/8", "10.0.0.7"]) == [
        "10.0.0.0/8 but 10.0.0.7"
    ]
    assert areas("10.0.0.0/8", "10.0.0.7", of=["*", "10.0.0.0/8", "10.0.0.7"]) == [
        "any host but 10.0.0.0/8",
        "10.0.0.7",
    ]
    assert areas("fe80::1", "fe80::1%eth0", of=["fe80::1", "fe80::1%eth0"]) == [
        "fe80::1 but fe80::1%eth0"
    ]


def test_a_subnet_that_is_cut_into_halves_is_written_as_one():
    halves = ["10.0.0.0/25", "10.0.0.128/25"]
    assert areas("10.0.0.0/24", *halves, of=halves) == ["10.0.0.0/24"]
    assert areas("10.0.0.0/24", *halves, of=halves[:1]) == ["10.0.0.0/25"]
    assert areas("10.0.0.0/24", *halves, of=["10.0.0.0/24"]) == ["10.0.0.0/24"]
    everything = ["0.0.0.0/0", "::/0"]
    assert areas(*everything, of=everything) == ["any host"]
    assert areas(*everything, of=["::/0"]) == ["::/0"]


@pytest.mark.parametrize(
    ("hosts", "example"),
    [
        ((), "192.0.2.1"),
        (("192.0.2.0/24",), "198.51.100.1"),
        (("192.0.0.0/8", "198.0.0.0/7", "203.0.0.0/8", "2001::/16"), "0.0.0.1"),
        (("0.0.0.0/0", "2001::/16"), "::1"),
        (("0.0.0.0/0",), "2001:db8::1"),
    ],
)
def test_any_other_host_has_an_example(hosts, example):
    cut = HostCut(hosts, cidr=True)
    rest = cut.everywhere
    for host in hosts:
        rest &= ~cut.mask(host, True)
    assert cut.example(rest) == example
    assert cut.at(example) == rest


def test_an_address_that_is_mapped_into_ipv6_is_no_example_of_ipv6():
    cut = HostCut(["::fffe:0:0/95", "::fffe:0:0/96"], cidr=True)
    assert [*cut.examples(cut.everywhere)] == ["192.0.2.1", "::fffe:0:1"]


def test_a_mapped_subnet_is_the_ipv4_one():
    cut = HostCut(["::ffff:10.0.0.0/104"], cidr=True)
    assert cut.at("10.1.2.3") == cut.mask("::ffff:10.0.0.0/104", True)
    assert cut.mask("::ffff:10.0.0.0/104", False) == 0


def test_a_text_that_is_no_address_is_of_no_region():
    assert HostCut(["laptop"], cidr=True).at("laptop") == 0


def test_ever_other_addresses_are_placed_right_and_take_no_more_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(hosts, "_MOST_KNOWN", 8)
    cut = HostCut(["10.0.0.0/24"], cidr=True)
    inside, outside = cut.at("10.0.0.1"), cut.at("192.0.2.1")
    assert inside != outside
    for number in range(256):
        assert cut.at(f"10.0.0.{number}") == inside
        assert cut.at(f"10.0.1.{number}") == outside
    assert len(cut._known) <= 8


def region(name, kind, *excepted, resource_type=TOPIC):
    return NameRegion(resource_type, (name, kind), tuple(sorted(excepted)))


@pytest.mark.parametrize(
    ("region", "example"),
    [
        (region("orders", LITERAL), "orders"),
        (region("pii-", PREFIX), "pii-example"),
        (region("pii-", PREFIX, ("pii-e", PREFIX)), "pii-x"),
        (region("pii-", PREFIX, ("pii-e", PREFIX), ("pii-x", LITERAL)), "pii-"),
        (
            region("a", PREFIX, ("ae", PREFIX), ("ax", LITERAL), ("a", LITERAL)),
            "aa",
        ),
        (NameRegion(TOPIC, ROOT), "example"),
        (NameRegion(CLUSTER, ROOT), "kafka-cluster"),
        (region("p" * 249, PREFIX), "p" * 249),
        (region("", PREFIX, *((each, PREFIX) for each in ALPHABET)), "\x01"),
    ],
)
def test_a_region_of_names_has_an_example(region, example):
    assert region.example() == example
    assert example in region


@pytest.mark.thorough
def test_an_example_is_found_below_a_name_that_is_taken():
    taken = [*((each, LITERAL) for each in EVERY), ("ex", PREFIX), ("x", PREFIX)]
    assert NameRegion(GROUP, ROOT, tuple(taken)).example() == "\x01x"
    longer = [("x", LITERAL), *((each + "x", PREFIX) for each in EVERY)]
    assert NameRegion(GROUP, ROOT, tuple(longer)).example() == "\x01"
    all_but_one = [(each, PREFIX) for each in EVERY if each != "q"]
    assert NameRegion(GROUP, ROOT, (*all_but_one, ("q", LITERAL))).example() == "qx"
    assert NameRegion(GROUP, ROOT, tuple((each, PREFIX) for each in EVERY)).example() is None


def test_a_region_is_written_as_a_pattern_without_others():
    assert str(region("pii-", PREFIX, ("pii-a", LITERAL))) == "TOPIC pii-* but pii-a"
    assert str(NameRegion(GROUP, ROOT)) == "GROUP *"
    assert NameRegion(TOPIC, ROOT).pattern == NamePattern(PatternType.LITERAL, "*")
    assert key_of(PatternType.LITERAL, "*") == ROOT
    assert 7 not in NameRegion(TOPIC, ROOT)


@pytest.mark.parametrize(
    ("names", "example"),
    [
        (
            region(
                "", PREFIX, *((each, LITERAL) for each in ALPHABET), ("e", PREFIX), ("xx", LITERAL)
            ),
            "xa",
        ),
        (region("", PREFIX, *((each, PREFIX) for each in ALPHABET if each != ".")), ".x"),
        (region(".", PREFIX, *((f".{each}", PREFIX) for each in ALPHABET if each != ".")), "..x"),
        (region("a b", PREFIX), "a bexample"),
        (region("p" * 249, PREFIX, ("p" * 249, LITERAL)), "p" * 249 + "x"),
        (
            region("p" * 248, PREFIX, ("p" * 248, LITERAL), ("p" * 248 + "x", LITERAL)),
            "p" * 248 + "a",
        ),
    ],
)
def test_an_example_is_a_name_that_a_topic_can_have_where_there_is_one(names, example):
    assert names.example() == example
    assert example in names
    assert names.is_possible is is_topic_name(example)
    free = NameRegion(GROUP, names.key, names.excepted)
    assert free.is_possible
    assert free.example() in names


@pytest.mark.parametrize(
    ("names", "is_possible"),
    [
        (region("a", LITERAL), True),
        (region("a b", LITERAL), False),
        (region("..", LITERAL), False),
        (region("..", PREFIX), True),
        (region("", PREFIX, *((each, PREFIX) for each in ALPHABET)), False),
        (region("a", PREFIX, *((f"a{each}", PREFIX) for each in ALPHABET)), True),
        (region("a", PREFIX, ("a", LITERAL), *((f"a{each}", PREFIX) for each in ALPHABET)), False),
        (region("a", PREFIX, ("a", LITERAL), *((f"a{each}", LITERAL) for each in ALPHABET)), True),
        (NameRegion(CLUSTER, ROOT), True),
    ],
)
def test_it_is_known_whether_a_region_has_a_name_of_a_topic(names, is_possible):
    assert names.is_possible is is_possible


def test_names_that_no_topic_can_have_are_known():
    assert is_topic_name("a.b_c-1")
    assert not any(map(is_topic_name, ("", ".", "..", "a b", "é", "x" * 250)))


def test_a_whole_region_reads_as_a_sentence():
    rules = Rules([allow("User:*"), deny("User:bob", host="10.0.0.1")])
    found = list(Reasoner(rules).what_can("User:bob"))
    assert [str(each) for each in found] == [
        "User:bob: READ, DESCRIBE on TOPIC orders from any host but 10.0.0.1",
        "User:bob: DESCRIBE on TOPIC orders from 10.0.0.1",
    ]
    assert found[0].example() in found[0]
    assert "nothing" not in found[0]


def test_principals_read_as_a_list():
    assert str(Principals(("User:a", "User:b"))) == "User:a, User:b"
    assert str(Principals((), is_everyone=True)) == "everyone"
    assert str(Principals(("User:a",), is_everyone=True)) == "everyone but User:a"


def test_the_example_of_anybody_is_nobody_who_is_named():
    cut = HostCut((), cidr=False)
    anybody = Region(
        Principals((), is_everyone=True), cut, cut.everywhere, 8, NameRegion(TOPIC, ROOT)
    )
    assert anybody.is_at_any_host
    example = anybody.example({"User:anybody"})
    assert example == Request("User:anybody-else", "192.0.2.1", READ, TOPIC, "example")


@pytest.mark.thorough
def test_a_region_without_a_name_has_no_example():
    cut = HostCut((), cidr=False)
    taken = (("a", LITERAL), *(("a" + each, PREFIX) for each in EVERY))
    nameless = NameRegion(TOPIC, ("a", PREFIX), taken)
    assert Region(Principals(("User:a",)), cut, cut.everywhere, 8, nameless).example() is None


def test_an_acl_of_the_cluster_with_another_name_is_of_no_resource():
    other = allow(name="other", resource_type=CLUSTER)
    for acl in (other, other._replace(pattern_type=PatternType.PREFIXED)):
        assert list(Reasoner(Rules([acl])).what_can("User:alice")) == []


def test_a_question_may_be_asked_again_among_very_many():
    reasoner = Reasoner(Rules([allow(pattern_type=PatternType.PREFIXED)]))
    asked = [(f"orders-{number}", LITERAL) for number in range(100)]
    for key in (*asked, *asked[::-1]):
        [holder] = reasoner.who_can(READ, TOPIC, key)
        assert holder.example == Request("User:alice", "192.0.2.1", READ, TOPIC, key[0])


def test_who_is_denied_is_not_of_everyone_who_may():
    [everyone] = Reasoner(Rules([allow("User:*"), deny("User:bob")])).who_can(
        READ, TOPIC, ("orders", LITERAL)
    )
    assert everyone.principals == Principals(("User:bob",), is_everyone=True)


def test_a_type_that_no_resource_has_is_refused():
    with pytest.raises(ValueError, match="ANY is not the type of a resource"):
        Reasoner(Rules()).of_type(ResourceType.ANY)
