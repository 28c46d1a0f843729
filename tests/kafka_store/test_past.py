"""`aclbroker history` and `acls --at` of a topic of a real Kafka, whole and compacted."""

import asyncio
import itertools
import json
import re

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import create_acls, delete_acls, exactly
from aclbroker.broker.client.session import open_session
from aclbroker.broker.client.settings import ClientSettings, read_addresses
from aclbroker.broker.stores import Origin, StoreError, open_store
from aclbroker.broker.stores.kafka.connection import place_of
from aclbroker.broker.stores.kafka.past import read_past
from aclbroker.cli.acls.command import AclsCommand
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.audit import _history
from aclbroker.cli.questions import QuestionCommand
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import WRITE, allow, deny
from tests.cli.test_history import LISTED_ORDERS, ORDERS
from tests.kafka_store.test_topic import Topic
from tests.support.accounts import PASSWORDS
from tests.support.client import Client
from tests.support.process import wait_for

_names = (f"past-{number}" for number in itertools.count())
WITHIN = 60.0
NOON = 4_102_488_000_000
"""2100-01-01."""


def origin(minutes, principal="User:alice"):
    return Origin(principal, "192.0.2.1", NOON + minutes * 60_000)


@pytest.fixture
def url(kafka):
    return f"kafka://{kafka.listeners['PLAINTEXT']}/{next(_names)}"


@pytest.fixture
def compacted(kafka):
    """The URL of a topic of which all but the last message is compacted soon."""
    name, address = next(_names), kafka.listeners["PLAINTEXT"]
    config = {
        "cleanup.policy": "compact",
        "segment.ms": "1",
        "min.cleanable.dirty.ratio": "0.001",
        "delete.retention.ms": "0",
    }
    admin = AdminClient({"bootstrap.servers": address})
    [made] = admin.create_topics([NewTopic(name, 1, 1, config=config)]).values()
    made.result(WITHIN)
    return f"kafka://{address}/{name}"


@pytest.fixture
def run(capsys):
    def run(*words):
        command = parse_arguments(list(words))
        assert isinstance(command, AclsCommand | QuestionCommand)
        capsys.readouterr()
        status = command.run()
        out, err = capsys.readouterr()
        return status, out, err

    return run


def changed(url, *changes):
    """Make changes; return the position and the ACLs after each."""

    async def change():
        store = open_store(url, {"node.id": "1"})
        await store.open()
        found: list[tuple[int, list[AclBinding]]] = []
        there: set[AclBinding] = set()
        for minutes, (added, removed) in enumerate(changes):
            await store.apply(added, removed, origin(minutes))
            there = (there | set(added)) - set(removed)
            found.append((await store.position(), sorted(there)))
        await store.close()
        return found

    return asyncio.run(change())


def past_of(url):
    return asyncio.run(read_past(place_of(url, None)))


CHANGES = [
    ([allow(), deny("User:eve")], []),
    ([], [allow()]),
    ([allow(name="other")], []),
    ([allow()], [deny("User:eve")]),
]


def test_the_history_of_a_topic_tells_who_changed_what_at_which_position(run, url):
    positions = changed(url, *CHANGES)
    first, second, third, last = (position for position, _ in positions)
    who = "2100-01-01T12:0{}:00.000Z User:alice from 192.0.2.1"
    eve = "DENY READ on TOPIC LITERAL orders to User:eve from *"
    other = "ALLOW READ on TOPIC LITERAL other to User:alice from *"
    assert run("history", "--store", url) == (
        0,
        f"{first} {who.format(0)} granted: {ORDERS}\n"
        f"{first} {who.format(0)} granted: {eve}\n"
        f"{second} {who.format(1)} revoked: {ORDERS}\n"
        f"{third} {who.format(2)} granted: {other}\n"
        f"{last} {who.format(3)} revoked: {eve}\n"
        f"{last} {who.format(3)} granted: {ORDERS}\n",
        "",
    )
    of_other = run("history", "--store", url, "--resource", "topic:other", "--output", "json")
    assert [row["position"] for row in json.loads(of_other[1])] == [third]
    assert eve in run("history", "--store", url, "--principal", "User:eve")[1]


def test_the_acls_of_each_position_and_time_are_those_that_there_were(run, url):
    positions = changed(url, *CHANGES)
    past = past_of(url)
    assert past.acls_at(0, None).acls == []
    for (position, acls), (following, _) in zip(
        positions, [*positions[1:], (past.end, [])], strict=True
    ):
        # Nothing of a transaction is there before all of it is.
        for asked in (position, max(position, following - 1)):
            found = past.acls_at(asked, None)
            assert (found.position, sorted(found.acls)) == (position, acls)
    for minutes, (position, acls) in enumerate(positions):
        found = past.acls_at(None, NOON + minutes * 60_000 + 59_999)
        assert (found.position, sorted(found.acls)) == (position, acls)
    assert past.acls_at(None, NOON - 1).acls == []
    first, last = positions[0][0], positions[-1][0]
    words = ("acls", "--list", "--store", url, "--topic", "orders", "--principal", "User:alice")
    listed = f"ACLs for principal `User:alice`\n{LISTED_ORDERS}"
    assert run(*words, "--at", str(first)) == (0, listed, f"aclbroker: position {first}\n")
    assert run(*words) == (0, listed, f"aclbroker: position {last}\n")
    status, out, _ = run(*words, "--at", "1000")
    assert status == 1
    assert f"it has come to position {past.end}, and not yet to 1000" in out


def test_where_compaction_may_have_removed_a_change_it_says_so(run, compacted):
    acls = [allow(name=f"topic-{number}") for number in range(5)]
    changes: list[tuple[list[AclBinding], list[AclBinding]]] = [([acl], []) for acl in acls]
    changes += [([], [acl]) for acl in acls[:4]]
    changes += [([acls[0]], []), ([acls[1], allow("User:bob", WRITE)], []), ([], [acls[0]])]
    changes += [([deny(f"User:{number}")], []) for number in range(3)]
    positions = changed(compacted, *changes)
    wait_for("compaction", lambda: past_of(compacted).horizon or None, WITHIN)
    later = changed(compacted, ([acls[2]], []), ([], [acls[2]]), ([acls[3]], []))
    past = past_of(compacted)
    told = 0
    for position, there in positions:
        if position < past.horizon:
            with pytest.raises(StoreError, match=f"at position {position} cannot be known exactly"):
                past.acls_at(position, None)
        else:
            told += 1
            assert sorted(past.acls_at(position, None).acls) == there
    assert told < len(positions)
    assert sorted(past.acls_at(later[-1][0], None).acls) == sorted({*positions[-1][1], acls[3]})
    assert past.acls_at(None, NOON + 10**9).position == later[-1][0]
    status, out, _ = run("acls", "--store", compacted, "--at", str(positions[0][0]))
    assert status == 1
    assert "since compaction has removed earlier changes; it can from position" in out
    status, out, err = run("history", "--store", compacted)
    assert status == 0
    assert f"{later[-1][0]} " in out
    assert f"changes may be missing that were made before position {past.horizon} " in err
    assert run("acls", "--store", compacted)[0] == 0


def test_of_a_topic_whose_beginning_was_deleted_only_now_is_known(kafka, run):
    topic = Topic(kafka)
    topic.make()
    url = f"kafka://{topic.address}/{topic.name}"
    [*_, (position, _)] = changed(url, *CHANGES)
    topic.delete_records_before(3, {"cleanup.policy": "delete"})
    status, out, _ = run("acls", "--store", url, "--at", str(position - 1))
    assert status == 1
    assert "the messages before offset 3 were deleted from the topic" in out
    assert run("acls", "--store", url)[0] == 0
    assert "changes before offset 3 are missing" in run("history", "--store", url)[2]


def test_what_a_broker_names_in_its_audit_log_is_found_in_the_topic(
    start_broker, tmp_path, url, run
):
    audit = tmp_path / "audit.jsonl"
    settings = {"file": str(audit), "level": "all", "rollup.seconds": "0"}
    broker = start_broker(
        {"aclbroker.store": url}
        | {f"aclbroker.audit.{name}": value for name, value in settings.items()}
    )
    with open_session(read_addresses(broker.listeners["PLAINTEXT"]), ClientSettings()) as admin:
        create_acls(admin, [allow()])
        with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
            client.login("alice", PASSWORDS["alice"])
            request = MetadataRequest([MetadataRequestTopic(name="orders")])
            client.ask(ApiKey.METADATA, 9, request)
        delete_acls(admin, [exactly(allow())])
    broker.terminate()
    lines = [json.loads(line) for line in audit.read_text().splitlines()]
    of_alice = [line for line in lines if line.get("principal") == "User:alice"]
    [decided] = [line for line in of_alice if line["operation"] == "DESCRIBE" and line["allowed"]]
    listed = run("acls", "--store", url, "--at", str(decided["acls"]))
    assert listed[:2] == (0, LISTED_ORDERS)
    config = tmp_path / "server.properties"
    config.write_text(f"aclbroker.store={url}\n")
    granted, revoked = run("history", "--config", str(config))[1].splitlines()
    who = r"\d+ 20\S+Z User:ANONYMOUS from 127\.0\.0\.1"
    assert re.fullmatch(f"{who} granted: {re.escape(ORDERS)}", granted)
    assert re.fullmatch(f"{who} revoked: {re.escape(ORDERS)}", revoked)


def test_the_login_is_that_of_the_properties_of_a_client(kafka, run, tmp_path):
    name = next(_names)
    plain = f"kafka://{kafka.listeners['PLAINTEXT']}/{name}"
    changed(plain, CHANGES[0])
    url = f"kafka://{kafka.listeners['SASL_PLAINTEXT']}/{name}"
    login = tmp_path / "client.properties"
    login.write_text(
        "security.protocol=SASL_PLAINTEXT\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="admin" password="{PASSWORDS["admin"]}";\n'
    )
    status, out, _ = run("history", "--store", url, "--command-config", str(login))
    assert (status, len(out.splitlines())) == (0, 2)
    words = ("acls", "--store", url, "--command-config", str(login), "--topic", "orders")
    assert "User:eve" in run(*words)[1]


def test_the_pipeline_is_given_the_history_of_a_topic(url):
    positions = changed(url, *CHANGES)
    history = _history(url, None)
    assert (history.horizon, history.last) == (0, past_of(url).end)
    assert sorted(set(history.positions)) == [position for position, _ in positions]
    assert [history.acl(number) for number in range(2)] == [allow(), deny("User:eve")]


def test_a_topic_that_is_not_there_is_an_error_and_is_not_made(run, url):
    for words in (("history", "--store", url), ("acls", "--store", url)):
        status, out, err = run(*words)
        assert status
        assert f"{url}: there is no such topic" in out + err
