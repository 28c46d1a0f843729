"""Kafka 3.9.1 and this broker with the same ACLs in ZooKeeper: each sees what the other does."""

import concurrent.futures
import re
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from kazoo.client import KazooClient

from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.cli.acls.command import AclsCommand
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from tests.acl.examples import GROUP, PREFIXED, READ, WRITE, allow, deny
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.process import wait_for
from tests.support.zookeeper import (
    ACL_AUTHORIZER,
    Zookeeper,
    ZookeeperKafka,
    acl_command,
    running_zookeeper_kafka,
)

SEEN_WITHIN = 20.0
CONNECT = "/both-directions"
DENIED = 30  # GROUP_AUTHORIZATION_FAILED

OF_EVERY_KIND = [
    allow(name="*"),
    allow(name="ü %41+:#?"),
    deny(name="t", host="192.0.2.1", operation=AclOperation.ALTER_CONFIGS),
    allow('User:CN=x y,O="q",OU=Ünï', name="pre-", pattern_type=PREFIXED),
    allow(resource_type=GROUP, name="*", pattern_type=PREFIXED),
    *(
        allow(name=name, resource_type=resource_type, operation=operation)
        for resource_type, name, operation in (
            (ResourceType.CLUSTER, "kafka-cluster", AclOperation.IDEMPOTENT_WRITE),
            (ResourceType.TRANSACTIONAL_ID, "tx", WRITE),
            (ResourceType.DELEGATION_TOKEN, "tok", AclOperation.DESCRIBE),
            (ResourceType.USER, "User:owner", AclOperation.CREATE_TOKENS),
        )
    ),
]


@pytest.fixture(scope="module")
def place(shared_zookeeper: Zookeeper) -> str:
    return f"{shared_zookeeper.address}{CONNECT}"


@pytest.fixture(scope="module")
def kafka(place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZookeeperKafka]:
    with running_zookeeper_kafka(tmp_path_factory.mktemp("kafka-3.9.1"), place) as running:
        yield running


@pytest.fixture(scope="module")
def ours(place: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """Our broker with the settings of a Kafka that has its ACLs in ZooKeeper."""
    broker = Broker(tmp_path_factory.mktemp("ours"))
    del broker.properties["aclbroker.store"]
    broker.properties |= {"authorizer.class.name": ACL_AUTHORIZER, "zookeeper.connect": place}
    broker.start()
    yield broker
    broker.terminate()


def session(server: Broker | ZookeeperKafka) -> Session:
    return open_session(read_addresses(server.listeners["PLAINTEXT"]), ClientSettings())


def acls(server: Broker | ZookeeperKafka) -> set[AclBinding]:
    with session(server) as opened:
        return set(describe_acls(opened))


def is_empty(server: Broker | ZookeeperKafka) -> bool | None:
    """True if a server has no ACLs, as `wait_for` looks for it."""
    return not acls(server) or None


@pytest.fixture(autouse=True)
def nothing_before(ours: Broker, kafka: ZookeeperKafka) -> None:
    with session(ours) as opened:
        delete_acls(opened, [AclFilter()])
    wait_for("Kafka without ACLs", partial(is_empty, kafka), SEEN_WITHIN)


def listed(output: str) -> set[AclBinding]:
    """The ACLs in the output of AclCommand --list."""
    found = set()
    pattern = None
    for line in output.splitlines():
        if match := re.search(r"resourceType=(\w+), name=(.*), patternType=(\w+)\)", line):
            pattern = ResourceType[match[1]], match[2], PatternType[match[3]]
        elif pattern is not None and (
            match := re.search(
                r"\(principal=(.*), host=(.*), operation=(\w+), permissionType=(\w+)\)", line
            )
        ):
            who = match[1], match[2]
            what = AclOperation[match[3]], AclPermission[match[4]]
            resource_type, name, pattern_type = pattern
            found.add(AclBinding(resource_type, name, pattern_type, *who, *what))
    return found


def test_kafkas_broker_and_command_have_what_our_apis_wrote(ours, kafka, place, java_directory):
    with session(ours) as opened:
        create_acls(opened, OF_EVERY_KIND)
        began = time.monotonic()
        assert set(describe_acls(opened)) == set(OF_EVERY_KIND)
        wait_for(
            "Kafka to have them", lambda: acls(kafka) == set(OF_EVERY_KIND) or None, SEEN_WITHIN
        )
        print(f"a Kafka 3.9.1 had them after {time.monotonic() - began:.3f} s")
        assert listed(acl_command(java_directory, place, "--list")) == set(OF_EVERY_KIND)
        delete_acls(opened, [exactly(OF_EVERY_KIND[0]), AclFilter(resource_type=GROUP)])
        rest = {each for each in OF_EVERY_KIND[1:] if each.resource_type is not ResourceType.GROUP}
        wait_for("Kafka to have less", lambda: acls(kafka) == rest or None, SEEN_WITHIN)


def test_our_broker_has_what_kafkas_broker_and_command_wrote(ours, kafka, place, java_directory):
    with session(kafka) as opened:
        create_acls(opened, OF_EVERY_KIND)
        began = time.monotonic()
    wait_for("ours to have them", lambda: acls(ours) == set(OF_EVERY_KIND) or None, SEEN_WITHIN)
    print(f"this broker had them after {time.monotonic() - began:.3f} s")
    add = ("--add", "--deny-principal", "User:bob", "--operation", "Write", "--topic", "t2")
    acl_command(java_directory, place, *add)
    added = deny("User:bob", WRITE, "t2")
    wait_for("ours to have one more", lambda: added in acls(ours) or None, SEEN_WITHIN)
    acl_command(java_directory, place, "--remove", "--force", "--topic", "t2")
    wait_for("ours to have one less", lambda: added not in acls(ours) or None, SEEN_WITHIN)
    assert acls(ours) == set(OF_EVERY_KIND)
    with session(kafka) as opened:
        delete_acls(opened, [AclFilter()])
    wait_for("ours to have none", lambda: not acls(ours) or None, SEEN_WITHIN)


def test_both_brokers_have_what_our_command_wrote_into_zookeeper(ours, kafka, place, capsys):
    words = ["--authorizer-properties", f"zookeeper.connect={place}"]
    read, write = allow("User:a", READ, "x"), deny("User:b", WRITE, "x")

    def wait_for_both(*expected: AclBinding) -> None:
        def is_seen() -> bool | None:
            return acls(ours) == acls(kafka) == {*expected} or None

        wait_for("the ACLs", is_seen, SEEN_WITHIN)

    def run(*more: str) -> str:
        assert AclsCommand([*words, *more]).run() == 0
        return str(capsys.readouterr().out)

    run("--add", "--allow-principal", "User:a", "--operation", "Read", "--topic", "x")
    wait_for_both(read)
    run("--add", "--deny-principal", "User:b", "--operation", "Write", "--topic", "x")
    wait_for_both(read, write)
    assert listed(run("--list")) == {read, write}
    run("--remove", "--force", "--allow-principal", "User:a", "--operation=Read", "--topic", "x")
    wait_for_both(write)
    run("--remove", "--force", "--topic", "x")
    wait_for_both()


def test_both_decide_alike_by_what_either_wrote(ours, kafka):
    group = allow("User:alice", AclOperation.DESCRIBE, "g", resource_type=GROUP)
    for writer in (ours, kafka):
        for server in (ours, kafka):
            with Client(server.listeners["SASL_PLAINTEXT"]) as client, session(writer) as opened:
                client.login("alice", PASSWORDS["alice"])

                def code(client: Client = client) -> int:
                    request = DescribeGroupsRequest(["g"], include_authorized_operations=False)
                    [found] = client.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups
                    return int(found.error_code)

                assert code() == DENIED
                create_acls(opened, [group])
                wait_for("allowed", lambda: code() != DENIED or None, SEEN_WITHIN)
                create_acls(opened, [group._replace(permission=AclPermission.DENY)])
                wait_for("denied", lambda: code() == DENIED or None, SEEN_WITHIN)
                delete_acls(opened, [AclFilter()])
            # The other server may have seen none of these changes yet.
            for each in (ours, kafka):
                wait_for("no ACLs", partial(is_empty, each), SEEN_WITHIN)


def test_what_zookeeper_cannot_have_is_refused_alone_as_by_kafka(ours, kafka):
    for server in (ours, kafka):
        with session(server) as opened:
            for name in ("a/b", ".."):
                with pytest.raises(RequestRefused):
                    create_acls(opened, [allow(name=name)])
    with session(ours) as opened, pytest.raises(RequestRefused, match="slash"):
        create_acls(opened, [allow(name="fine"), allow(name="a/b")])
    assert acls(ours) == {allow(name="fine")}


def test_a_node_that_cannot_be_read_is_refused_to_all_but_super_users(ours, place):
    group = allow("User:*", AclOperation.DESCRIBE, "*", resource_type=GROUP)
    server, slash, chroot = place.partition("/")
    zk = KazooClient(server)
    zk.start()
    bad, told = f"{slash}{chroot}/kafka-acl/Group/bad", f"{slash}{chroot}/kafka-acl-changes"
    with session(ours) as opened, Client(ours.listeners["SASL_PLAINTEXT"]) as client:
        client.login("alice", PASSWORDS["alice"])
        create_acls(opened, [group])

        def codes() -> list[int]:
            request = DescribeGroupsRequest(["bad", "good"], include_authorized_operations=False)
            found = client.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups
            return [int(each.error_code) for each in found]

        good = codes()
        assert DENIED not in good
        zk.create(bad, b'{"version":7}')
        zk.create(f"{told}/acl_changes_", b"GROUP:bad", sequence=True)
        wait_for("denied", lambda: codes()[0] == DENIED or None, SEEN_WITHIN)
        assert codes()[1] == good[1]
        assert set(describe_acls(opened)) == {group}
        with pytest.raises(RequestRefused, match="cannot be read"):
            create_acls(opened, [allow(name="bad", resource_type=GROUP)])
        assert zk.get(bad)[0] == b'{"version":7}'
        zk.delete(bad)
        zk.create(f"{told}/acl_changes_", b"GROUP:bad", sequence=True)
        wait_for("allowed", lambda: codes() == good or None, SEEN_WITHIN)
    zk.stop()
    zk.close()
    assert "cannot be read" in ours.log_text()


def hammered(server: Broker | ZookeeperKafka, who: str, times: int) -> set[AclBinding]:
    """Add and remove ACLs of the same few topics so many times; return those that must stay.

    A refusal may be due to contention, and then it is tried again.
    """
    stay = set()
    with session(server) as opened:
        for number in range(times):
            acl = allow(f"User:{who}-{number}", name=f"hot-{number % 4}")
            for attempt in range(20):
                try:
                    create_acls(opened, [acl, deny("User:all", name=f"hot-{number % 4}")])
                    if number % 3 == 0:
                        delete_acls(opened, [exactly(acl)])
                    break
                except RequestRefused:
                    assert attempt < 19
            if number % 3:
                stay.add(acl)
    return stay


def commanded(directory: Path, place: str) -> set[AclBinding]:
    """The same by AclCommand, a few times."""
    directory.mkdir()
    stay = set()
    for number in range(4):
        user, topic = f"User:command-{number}", f"hot-{number}"
        add = ("--add", "--allow-principal", user, "--operation", "Read", "--topic", topic)
        for attempt in range(10):
            output = acl_command(directory, place, *add)
            if "Error" not in output and "Exception" not in output:
                break
            assert attempt < 9, output
        stay.add(allow(user, READ, topic))
    return stay


@pytest.mark.thorough
def test_nothing_is_lost_when_kafka_its_command_and_ours_change_the_same_acls(
    ours, kafka, place, java_directory, every_case
):
    times = 40 if every_case else 12
    with concurrent.futures.ThreadPoolExecutor() as pool:
        running = [
            *(pool.submit(hammered, ours, f"ours-{number}", times) for number in range(2)),
            *(pool.submit(hammered, kafka, f"kafka-{number}", times) for number in range(2)),
            pool.submit(commanded, java_directory / "command", place),
        ]
        stay = set().union(*(each.result() for each in running))
    expected = stay | {deny("User:all", name=f"hot-{number}") for number in range(4)}
    wait_for("all at ours", lambda: acls(ours) == expected or None, SEEN_WITHIN)
    wait_for("all at Kafka", lambda: acls(kafka) == expected or None, SEEN_WITHIN)
    assert listed(acl_command(java_directory, place, "--list")) == expected
