"""The paths and the data of Kafka's nodes in ZooKeeper, as a real Kafka 3.9.1 wrote them."""

import json

import pytest

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourcePattern,
    ResourceType,
)
from aclbroker.broker.stores.zookeeper.decoding import decode_acls, decode_change
from aclbroker.broker.stores.zookeeper.layout import (
    EXTENDED_CHANGES,
    LITERAL_CHANGES,
    NodeAcls,
    UnreadableNode,
    directories,
    encode_acls,
    encode_change,
    node_path,
    refusal,
)
from tests.acl.examples import GROUP, LITERAL, PREFIXED, READ, TOPIC, allow

ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY
USER = ResourceType.USER

PATHS = {
    ResourcePattern(TOPIC, LITERAL, "*"): "/kafka-acl/Topic/*",
    ResourcePattern(GROUP, LITERAL, "ü%41+:#?"): "/kafka-acl/Group/ü%41+:#?",
    ResourcePattern(GROUP, LITERAL, "grp one"): "/kafka-acl/Group/grp one",
    ResourcePattern(USER, LITERAL, "User:owner"): "/kafka-acl/User/User:owner",
    ResourcePattern(ResourceType.CLUSTER, LITERAL, "kafka-cluster"): (
        "/kafka-acl/Cluster/kafka-cluster"
    ),
    ResourcePattern(ResourceType.DELEGATION_TOKEN, LITERAL, "tok1"): (
        "/kafka-acl/DelegationToken/tok1"
    ),
    ResourcePattern(GROUP, PREFIXED, "*"): "/kafka-acl-extended/prefixed/Group/*",
    ResourcePattern(ResourceType.TRANSACTIONAL_ID, PREFIXED, "tx-"): (
        "/kafka-acl-extended/prefixed/TransactionalId/tx-"
    ),
}

CHANGES = {
    (LITERAL_CHANGES, b"TOPIC:t1"): ResourcePattern(TOPIC, LITERAL, "t1"),
    (LITERAL_CHANGES, b"USER:User:owner"): ResourcePattern(USER, LITERAL, "User:owner"),
    (LITERAL_CHANGES, "GROUP:ü%41+:#?".encode()): ResourcePattern(GROUP, LITERAL, "ü%41+:#?"),
    (
        EXTENDED_CHANGES,
        '{"version":1,"resourceType":"GROUP","name":"g ü","patternType":"PREFIXED"}'.encode(),
    ): ResourcePattern(GROUP, PREFIXED, "g ü"),
}

ONE = (
    b'{"version":1,"acls":[{"principal":"User:multi","permissionType":"Allow",'
    b'"operation":"Read","host":"*"}]}'
)
CERTIFICATE = (
    b'{"acls":[{"principal":"User:CN=x y,O=\\"q\\",OU=\xc3\x9cn\xc3\xaf","permissionType":"Allow",'
    b'"host":"*","operation":"Read"}],"version":1}'
)


def entry(**changes: object) -> dict[str, object]:
    whole = {"principal": "User:a", "permissionType": "Allow", "host": "*", "operation": "Read"}
    return {name: value for name, value in {**whole, **changes}.items() if value is not None}


def node(*acls: object, **changes: object) -> bytes:
    return json.dumps({"version": 1, "acls": list(acls), **changes}).encode()


@pytest.mark.parametrize(("pattern", "path"), PATHS.items(), ids=PATHS.values())
def test_the_node_of_a_pattern_is_where_kafka_has_it(pattern, path):
    assert node_path(pattern) == path


def test_the_directories_are_those_that_kafka_makes_and_each_after_its_parent():
    made = directories()
    assert len(made) == len(set(made)) == 17
    for path in made:
        parent = path.rpartition("/")[0]
        assert not parent or made.index(parent) < made.index(path)


def test_what_kafka_wrote_is_read():
    alice = ("User:multi", "*", READ, ALLOW)
    assert decode_acls(ONE) == NodeAcls(frozenset({alice}))
    [found] = decode_acls(CERTIFICATE).entries
    assert found[0] == 'User:CN=x y,O="q",OU=Ünï'


def test_a_node_is_written_as_kafka_writes_it():
    assert encode_acls(decode_acls(ONE)) == ONE


@pytest.mark.parametrize("permission", [ALLOW, DENY])
def test_all_operations_are_written_and_read(permission):
    operations = [each for each in AclOperation if 1 < each < AclOperation.TWO_PHASE_COMMIT]
    written = NodeAcls(frozenset(("User:ü\0", "h", each, permission) for each in operations))
    assert decode_acls(encode_acls(written)) == written
    assert b'"DescribeConfigs"' in encode_acls(written)


@pytest.mark.parametrize(("told", "pattern"), CHANGES.items())
def test_a_change_is_told_as_kafka_tells_it(told, pattern):
    assert encode_change(pattern) == told
    assert decode_change(*told) == pattern


def test_the_type_in_a_change_may_be_in_any_case():
    found = decode_change(LITERAL_CHANGES, b"Topic:t1")
    assert found == ResourcePattern(TOPIC, LITERAL, "t1")


@pytest.mark.parametrize(
    "told",
    [
        (LITERAL_CHANGES, b"garbage"),
        (LITERAL_CHANGES, b"TOPIC:"),
        (LITERAL_CHANGES, b"Foo:x"),
        (LITERAL_CHANGES, b"TOPIC:\xff"),
        (LITERAL_CHANGES, None),
        (EXTENDED_CHANGES, b"TOPIC:t1"),
        (EXTENDED_CHANGES, b"[]"),
        (EXTENDED_CHANGES, b'{"version":2,"resourceType":"TOPIC","name":"t"}'),
        (EXTENDED_CHANGES, b'{"version":1,"resourceType":"TOPIC","name":"t"}'),
        (EXTENDED_CHANGES, b'{"version":1,"name":"t","patternType":"PREFIXED"}'),
        (EXTENDED_CHANGES, b'{"version":1,"resourceType":"TOPIC","patternType":"PREFIXED"}'),
    ],
)
def test_a_change_that_names_nothing_is_told(told):
    with pytest.raises(UnreadableNode):
        decode_change(*told)


@pytest.mark.parametrize("data", [None, b"", node(), b'{"version":1,"acls":[],"x":1}'])
def test_a_node_without_acls_has_none(data):
    assert decode_acls(data).is_empty


def test_names_may_be_in_any_case_and_other_keys_beside_those_that_are_known():
    loud = entry(permissionType="DENY", operation="describeCONFIGS", comment="x")
    [found] = decode_acls(node(loud, extra=1)).entries
    assert found == ("User:a", "*", AclOperation.DESCRIBE_CONFIGS, DENY)


@pytest.mark.parametrize("name", ["describe_configs", "Nope", "", "TwoPhaseCommit"])
def test_an_unknown_operation_that_is_allowed_has_no_effect_and_stays(name):
    found = decode_acls(node(entry(operation=name), entry()))
    assert found.entries == {("User:a", "*", READ, ALLOW)}
    less = encode_acls(found._replace(entries=frozenset()))
    assert json.loads(less)["acls"] == [entry(operation=name)]


UNREADABLE = {
    "not JSON": b"no",
    "not UTF-8": b"\xff",
    "deep": b"[" * 100_000,
    "a list": b"[]",
    "another version": node(entry(), version=2),
    "no version": b'{"acls":[]}',
    "a version that is a text": node(version="1"),
    "a version that is true": node(version=True),
    "no ACLs": b'{"version":1}',
    "ACLs that are no list": node(acls={}),
    "an ACL that is a text": node("x"),
    "no host": node(entry(host=None)),
    "a host that is a number": node(entry(host=1)),
    "a principal without a colon": node(entry(principal="alice")),
    "a lone surrogate": node(entry(principal="User:\ud800")),
    "any operation": node(entry(operation="Any")),
    "an unknown permission": node(entry(permissionType="Maybe")),
    "an unknown operation that is denied": node(entry(permissionType="Deny", operation="Nope")),
}


@pytest.mark.parametrize("data", UNREADABLE.values(), ids=UNREADABLE)
def test_a_node_that_may_deny_something_unknown_is_unreadable(data):
    with pytest.raises(UnreadableNode):
        decode_acls(data)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("a/b", "slash"),
        (".", "the name ."),
        ("..", "the name .."),
        ("a\0", "U+0000"),
        ("a\x7f", "U+007F"),
        ("\uf8ff", "U+F8FF"),
        ("𝄞", "U+1D11E"),
        ("\uffff", "U+FFFF"),
    ],
)
def test_a_name_that_no_node_can_have_is_refused_with_the_reason(name, said):
    assert said in (refusal(allow(name=name)) or "")


@pytest.mark.parametrize("name", ["...", "a..b", ".a", "*", "ü", " ", "\uffef", "kafka-cluster"])
def test_other_names_are_not_refused(name):
    assert refusal(allow(name=name)) is None


def test_an_operation_that_brokers_with_zookeeper_do_not_know_is_refused():
    two_phase = allow(operation=AclOperation.TWO_PHASE_COMMIT)
    assert "TWO_PHASE_COMMIT" in (refusal(two_phase) or "")


def test_entries_become_bindings_of_their_pattern():
    pattern = ResourcePattern(GROUP, PatternType.PREFIXED, "g")
    [binding] = decode_acls(ONE).bindings(pattern)
    assert binding == AclBinding(GROUP, "g", PREFIXED, "User:multi", "*", READ, ALLOW)
    assert binding.pattern == pattern
