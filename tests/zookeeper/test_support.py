"""The real programs behind the tests of this folder: that they are what the tests take them for."""

import pytest

from tests.support.zookeeper import acl_command, running_zookeeper_kafka


@pytest.mark.thorough
def test_kafkas_command_and_broker_keep_acls_in_zookeeper(zk, connect, java_directory, tmp_path):
    add = ("--add", "--allow-principal", "User:alice", "--operation", "Read", "--topic", "orders")
    assert "Adding ACLs" in acl_command(java_directory, connect, *add)
    data, _ = zk.get("/kafka-acl/Topic/orders")
    assert b'"User:alice"' in data
    with running_zookeeper_kafka(tmp_path, connect) as kafka:
        assert zk.exists("/brokers/ids/1") is not None
        assert kafka.listeners
