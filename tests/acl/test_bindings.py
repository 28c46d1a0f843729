import pytest

from aclbroker.acl.bindings import (
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from tests.acl.examples import (
    CLUSTER,
    GROUP,
    LITERAL,
    PREFIXED,
    READ,
    WRITE,
    allow,
    deny,
)

MATCH = PatternType.MATCH


@pytest.mark.parametrize(
    ("enum", "last"),
    [(ResourceType, 7), (PatternType, 4), (AclOperation, 15), (AclPermission, 3)],
)
def test_every_code_of_the_wire_has_a_member_and_any_other_is_unknown(enum, last):
    assert [enum.from_code(code) for code in range(last + 1)] == list(enum)
    for code in (last + 1, 127, -1, -128):
        assert enum.from_code(code) is enum.UNKNOWN


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"resource_type": ResourceType.UNKNOWN}, ["resource type", "TOPIC", "UNKNOWN"]),
        ({"resource_type": ResourceType.ANY}, ["resource type", "USER", "ANY"]),
        ({"pattern_type": PatternType.UNKNOWN}, ["pattern type", "LITERAL, PREFIXED"]),
        ({"pattern_type": PatternType.ANY}, ["pattern type", "ANY"]),
        ({"pattern_type": PatternType.MATCH}, ["pattern type", "MATCH"]),
        ({"operation": AclOperation.UNKNOWN}, ["operation", "READ"]),
        ({"operation": AclOperation.ANY}, ["operation", "TWO_PHASE_COMMIT"]),
        ({"permission": AclPermission.UNKNOWN}, ["permission", "DENY, ALLOW"]),
        ({"permission": AclPermission.ANY}, ["permission", "ANY"]),
        ({"resource_name": ""}, ["resource name", "empty"]),
        ({"resource_type": CLUSTER, "resource_name": "my"}, ["resource name", "kafka-cluster"]),
        ({"resource_type": CLUSTER, "resource_name": "*"}, ["resource name", "kafka-cluster"]),
        ({"principal": "alice"}, ["principal", "Type:name", "colon"]),
        ({"principal": ""}, ["principal", "Type:name"]),
        ({"resource_name": "a\ud800"}, ["resource name", "Unicode"]),
        ({"principal": "User:\udfff"}, ["principal", "Unicode"]),
        ({"host": "\ud800"}, ["host", "Unicode"]),
    ],
)
def test_a_creation_is_refused_with_the_field_and_what_is_allowed(change, told):
    reason = invalid_reason(allow()._replace(**change))
    assert reason is not None
    for words in told:
        assert words in reason


@pytest.mark.parametrize(
    "change",
    [
        {},
        {"principal": ":"},
        {"principal": "User:"},
        {"principal": "a:b:c"},
        {"host": ""},
        {"host": "not a host"},
        {"host": "10.0.0.0/8"},
        {"resource_name": "with space / and\0more é𝄞"},
        {"resource_name": "x" * 5000},
        {"resource_name": "*", "pattern_type": PREFIXED},
        {"resource_type": CLUSTER, "resource_name": "kafka-cluster"},
        {"resource_type": CLUSTER, "resource_name": "kafka-cluster", "pattern_type": PREFIXED},
        {"resource_type": GROUP, "operation": AclOperation.CREATE_TOKENS},
        {"operation": AclOperation.TWO_PHASE_COMMIT},
        {"operation": AclOperation.ALL},
        {"permission": AclPermission.DENY},
    ],
)
def test_what_kafka_accepts_is_accepted(change):
    assert invalid_reason(allow()._replace(**change)) is None


def test_the_empty_filter_matches_every_acl():
    for acl in (allow(), deny(), allow(name="a", pattern_type=PREFIXED, resource_type=GROUP)):
        assert AclFilter().matches(acl)


@pytest.mark.parametrize(
    "other",
    [
        allow(resource_type=GROUP),
        allow(name="Orders"),
        allow(pattern_type=PREFIXED),
        allow("User:bob"),
        allow(host="10.0.0.1"),
        allow(operation=WRITE),
        deny(),
    ],
)
def test_every_field_of_a_filter_must_match(other):
    full = AclFilter(*allow())
    assert full.matches(allow())
    assert not full.matches(other)


@pytest.mark.parametrize(
    ("pattern_type", "selected"),
    [
        (LITERAL, {("ab", LITERAL)}),
        (PREFIXED, {("ab", PREFIXED)}),
        (PatternType.ANY, {("ab", LITERAL), ("ab", PREFIXED)}),
        (MATCH, {("ab", LITERAL), ("*", LITERAL), ("a", PREFIXED), ("ab", PREFIXED)}),
        (PatternType.UNKNOWN, set()),
    ],
)
def test_a_pattern_type_tells_how_the_name_of_a_filter_selects(pattern_type, selected):
    patterns = {(n, p) for n in ("a", "ab", "abc", "*", "b") for p in (LITERAL, PREFIXED)}
    acl_filter = AclFilter(resource_name="ab", pattern_type=pattern_type)
    assert {p for p in patterns if acl_filter.matches(allow(name=p[0], pattern_type=p[1]))} == (
        selected
    )


def test_a_pattern_type_without_a_name_selects_that_type_and_match_selects_both():
    literal, prefixed = allow(), allow(pattern_type=PREFIXED)
    for pattern_type, expected in ((LITERAL, [True, False]), (MATCH, [True, True])):
        acl_filter = AclFilter(pattern_type=pattern_type)
        assert [acl_filter.matches(literal), acl_filter.matches(prefixed)] == expected


def test_a_filter_for_the_wildcard_principal_matches_only_its_own_acls():
    acl_filter = AclFilter(principal="User:*")
    assert acl_filter.matches(allow("User:*"))
    assert not acl_filter.matches(allow("User:alice"))
    assert not AclFilter(principal="User:alice").matches(allow("User:*"))


def test_a_filter_for_a_host_matches_it_only_as_it_is_written():
    assert AclFilter(host="::1").matches(allow(host="::1"))
    assert not AclFilter(host="::1").matches(allow(host="0:0:0:0:0:0:0:1"))
    assert not AclFilter(host="10.0.0.1").matches(allow(host="*"))


def test_a_filter_tells_that_it_has_an_unknown_field():
    assert not AclFilter().has_unknown
    assert AclFilter(resource_type=ResourceType.UNKNOWN).has_unknown
    assert AclFilter(pattern_type=PatternType.UNKNOWN).has_unknown
    assert AclFilter(operation=AclOperation.UNKNOWN).has_unknown
    assert AclFilter(permission=AclPermission.UNKNOWN).has_unknown
    assert not AclFilter(operation=READ).has_unknown
