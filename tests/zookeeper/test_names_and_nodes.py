"""What ZooKeeper and Kafka say of names and of nodes: the oracle of the layout's rules."""

import json

import pytest
from kazoo.exceptions import BadArgumentsError

from aclbroker.acl.bindings import ResourcePattern
from aclbroker.broker.stores.zookeeper.decoding import decode_acls
from aclbroker.broker.stores.zookeeper.layout import encode_acls, invalid_name, node_path
from tests.acl.examples import LITERAL, TOPIC
from tests.stores.test_zookeeper_layout import entry, node
from tests.support.zookeeper import acl_command

EDGES = [0x1F, 0x20, 0x7E, 0x7F, 0x9F, 0xA0, 0xD7FF, 0xE000, 0xF8FF, 0xF900, 0xFFEF, 0xFFF0, 0xFFFF]


@pytest.mark.parametrize("code", [*EDGES, 0x10000, 0x10FFFF], ids="U+{:04X}".format)
def test_zookeeper_takes_exactly_the_characters_that_are_not_refused(zk, code):
    name = f"a{chr(code)}b"
    if invalid_name(name) is None:
        assert zk.create(f"/{name}") == f"/{name}"
        assert zk.get_children("/") == [name]
    else:
        with pytest.raises(BadArgumentsError):
            zk.create(f"/{name}")


def write(zk, name: str, data: bytes) -> None:
    zk.create(node_path(ResourcePattern(TOPIC, LITERAL, name)), data, makepath=True)


def test_kafka_lists_what_is_written_and_ignores_what_is_unknown(zk, connect, java_directory):
    spellings = [
        "DESCRIBECONFIGS",
        "DescribeConfigs",
        "describe_configs",
        "dEscribeconfigs",
        "Nope",
    ]
    for spelling in spellings:
        write(zk, spelling, node(entry(operation=spelling, principal=f"User:{spelling}")))
    write(zk, "loud", node(entry(permissionType="DENY", operation="READ", extra="x"), extra=1))
    write(zk, "ours", encode_acls(decode_acls(node(entry(principal='User:"ü\\')))))
    write(zk, "empty", b"")
    write(zk, "garbage", b"garbage")
    listed = acl_command(java_directory, connect, "--list")
    for spelling in spellings:
        known = bool(decode_acls(node(entry(operation=spelling))).entries)
        operation = "DESCRIBE_CONFIGS" if known else "UNKNOWN"
        line = f"principal=User:{spelling}, host=*, operation={operation}, permissionType=ALLOW"
        assert line in listed
    assert "operation=READ, permissionType=DENY" in listed
    assert 'principal=User:"ü\\, host=*, operation=READ' in listed
    assert "name=empty" not in listed
    assert "name=garbage" not in listed


@pytest.mark.parametrize(
    "data",
    [
        node(entry(host=None)),
        node(entry(principal="alice")),
        node(entry(operation="Any")),
        node(entry(), version=2),
        b"[]",
    ],
    ids=["no host", "no colon", "any operation", "version 2", "no object"],
)
def test_kafka_fails_on_one_node_where_only_that_is_unreadable_here(
    zk, connect, java_directory, data
):
    write(zk, "fine", node(entry()))
    write(zk, "bad", data)
    assert json.loads(zk.get("/kafka-acl/Topic/fine")[0])["version"] == 1
    listed = acl_command(java_directory, connect, "--list")
    assert "Error" in listed
    assert "name=fine" not in listed
