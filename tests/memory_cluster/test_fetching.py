"""Fetch of a cluster in memory: waits, limits, sessions (KIP-227), and rights that are revoked."""

import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.raw import fetched, id_of, partition, request, told, write
from tests.support.broker import Broker

LONG_MS = 15_000
NO_SUCH_SESSION, WRONG_EPOCH, REFUSED, UNKNOWN, UNKNOWN_ID, NOT_LEADER = 70, 71, 29, 3, 100, 6


def batch_now(*values: Any) -> bytes:
    return batch(*values, time_ms=int(time.time() * 1000))


def new_topic(client: Any, partitions: int = 1) -> str:
    name = f"fetch-{uuid.uuid4().hex}"
    answer = client.ask(
        ApiKey.CREATE_TOPICS, 7, CreateTopicsRequest([CreatableTopic(name, partitions, 1)], 1000)
    )
    assert answer.topics[0].error_code == 0
    return name


def meanwhile(action: Callable[[], Any]) -> threading.Timer:
    """Do something while this thread waits for an answer."""
    timer = threading.Timer(0.3, action)
    timer.start()
    return timer


def test_a_fetch_waits_until_a_record_comes(node: Broker):
    reader, writer = raw.admin(node), raw.admin(node)
    topic = new_topic(writer)
    data = batch_now(b"late")
    timer = meanwhile(lambda: write(writer, topic, data))
    answer = fetched(reader, 12, request({topic: [partition(0)]}, max_wait_ms=LONG_MS))
    timer.join()
    assert told(answer) == [(topic, 0, 0, len(data))]


def test_a_fetch_waits_for_as_many_bytes_as_it_wants_or_for_its_time(node: Broker):
    reader, writer = raw.admin(node), raw.admin(node)
    topic = new_topic(writer)
    data = batch_now(b"x")
    write(writer, topic, data)
    timer = meanwhile(lambda: write(writer, topic, data))
    wanted = request({topic: [partition(0)]}, max_wait_ms=LONG_MS, min_bytes=len(data) + 1)
    assert told(fetched(reader, 12, wanted)) == [(topic, 0, 0, 2 * len(data))]
    timer.join()
    wanted = request({topic: [partition(0)]}, max_wait_ms=50, min_bytes=1 << 30)
    assert told(fetched(reader, 12, wanted)) == [(topic, 0, 0, 2 * len(data))]


def test_a_waiting_fetch_is_told_that_its_topic_is_deleted(node: Broker):
    reader, writer = raw.admin(node), raw.admin(node)
    topic = new_topic(writer)
    timer = meanwhile(
        lambda: writer.ask(
            ApiKey.DELETE_TOPICS, 3, DeleteTopicsRequest(topic_names=[topic], timeout_ms=1000)
        )
    )
    answer = fetched(reader, 12, request({topic: [partition(0)]}, max_wait_ms=LONG_MS))
    timer.join()
    assert told(answer) == [(topic, 0, UNKNOWN, 0)]


def test_limits_hold_over_all_partitions_but_the_first_batch_comes_whole(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client, 3)
    data = batch_now(b"x" * 1000)
    for index in (0, 1, 2):
        for _ in range(3):
            write(client, topic, data, index=index)
    asked = {topic: [partition(index) for index in (0, 1, 2)]}
    sizes = [size for _, _, _, size in told(fetched(client, 12, request(asked, max_bytes=1)))]
    assert sizes == [len(data), 0, 0]
    limit = 4 * len(data)
    sizes = [size for *_, size in told(fetched(client, 12, request(asked, max_bytes=limit)))]
    assert sizes == [3 * len(data), len(data), 0]
    asked = {topic: [partition(index, most=1) for index in (0, 1, 2)]}
    sizes = [size for *_, size in told(fetched(client, 12, request(asked)))]
    assert sizes == [len(data), 0, 0]


def test_offsets_topics_and_epochs_that_are_not_there_are_refused_at_once(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client)
    for asked, code in (
        ({topic: [partition(0, 1)]}, 1),
        ({topic: [partition(7)]}, UNKNOWN),
        ({"none": [partition(0)]}, UNKNOWN),
        ({topic: [partition(0, epoch=5)]}, 75),
    ):
        answer = fetched(client, 12, request(asked, max_wait_ms=LONG_MS))
        assert [each[2] for each in told(answer)] == [code]
    answer = fetched(client, 13, request({uuid.uuid4().bytes: [partition(0)]}))
    assert [each[2] for each in told(answer)] == [UNKNOWN_ID]


def test_what_is_not_there_lets_a_fetch_wait_for_what_is(node: Broker):
    reader, writer = raw.admin(node), raw.admin(node)
    topic = new_topic(writer)
    data = batch_now(b"late")
    asked = {"none": [partition(0)], topic: [partition(0), partition(7)]}
    timer = meanwhile(lambda: write(writer, topic, data))
    answer = fetched(reader, 12, request(asked, max_wait_ms=LONG_MS))
    timer.join()
    assert told(answer) == [
        ("none", 0, UNKNOWN, 0),
        (topic, 0, 0, len(data)),
        (topic, 7, UNKNOWN, 0),
    ]


def test_a_session_with_a_deleted_topic_waits_for_the_others(node: Broker):
    reader, writer = raw.admin(node), raw.admin(node)
    topics = [new_topic(writer), new_topic(writer)]
    asked = {id_of(writer, topic): [partition(0)] for topic in topics}
    session = fetched(reader, 13, request(asked, (0, 0))).session_id
    gone = DeleteTopicsRequest(topic_names=topics[:1], timeout_ms=1000)
    writer.ask(ApiKey.DELETE_TOPICS, 3, gone)
    data = batch_now(b"late")
    timer = meanwhile(lambda: write(writer, topics[1], data))
    answer = fetched(reader, 13, request({}, (session, 1), max_wait_ms=LONG_MS))
    timer.join()
    assert [(code != 0, size) for *_, code, size in told(answer)] == [(True, 0), (False, len(data))]


def test_another_node_names_the_leader_and_where_it_is(nodes: Broker):
    client = raw.admin(nodes)
    topic = new_topic(client)
    codes = []
    for number in range(3):
        with raw.admin(nodes, number) as each:
            answer = fetched(each, 16, request({id_of(each, topic): [partition(0)]}))
            data = answer.responses[0].partitions[0]
            codes.append(data.error_code)
            if data.error_code:
                [endpoint] = answer.node_endpoints
                assert endpoint.node_id == data.current_leader.leader_id
                port = nodes.listeners["PLAINTEXT"].split(",")[endpoint.node_id - 1]
                assert port.endswith(f":{endpoint.port}")
    assert sorted(codes) == [0, NOT_LEADER, NOT_LEADER]


@pytest.mark.parametrize("version", [12, 17])
def test_a_session_is_told_only_what_is_new(node: Broker, version: int):
    client = raw.admin(node)
    topic = new_topic(client, 2)
    name: str | bytes = topic if version < 13 else id_of(client, topic)
    data = batch_now(b"x")
    write(client, topic, data)
    answer = fetched(client, version, request({name: [partition(0), partition(1)]}, (0, 0)))
    session = answer.session_id
    assert session > 0
    assert [each[1:] for each in told(answer)] == [(0, 0, len(data)), (1, 0, 0)]
    moved = {name: [partition(0, 1)]}
    assert told(fetched(client, version, request(moved, (session, 1)))) == []
    write(client, topic, data, index=1)
    answer = fetched(client, version, request(session=(session, 2)))
    assert [each[1:] for each in told(answer)] == [(1, 0, len(data))]
    assert answer.session_id == session
    forgotten = request({name: [partition(0, 1)]}, (session, 3))
    forgotten.forgotten_topics_data = [
        f.ForgottenTopic(name, partitions=[1])
        if isinstance(name, str)
        else f.ForgottenTopic(topic_id=name, partitions=[1])
    ]
    assert told(fetched(client, version, forgotten)) == []


def test_a_session_refuses_what_does_not_go_on_with_it(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client)
    asked = {topic: [partition(0)]}
    session = fetched(client, 12, request(asked, (0, 0))).session_id
    assert fetched(client, 12, request(session=(session, 2))).error_code == WRONG_EPOCH
    by_id = request({id_of(client, topic): [partition(0)]}, (session, 1))
    assert fetched(client, 13, by_id).error_code == 106
    with raw.logged_in(node, "admin") as other:
        assert fetched(other, 12, request(session=(session, 1))).error_code == NO_SUCH_SESSION
    assert fetched(client, 12, request(session=(session, 1))).error_code == 0
    assert fetched(client, 12, request(asked, (session, -1))).session_id == 0
    assert fetched(client, 12, request(session=(session, 2))).error_code == NO_SUCH_SESSION


def test_partitions_with_records_are_read_last_the_next_time(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client, 2)
    data = batch_now(b"x")
    for index in (0, 1):
        write(client, topic, data, index=index)
    asked = {topic: [partition(0), partition(1)]}
    answer = fetched(client, 12, request(asked, (0, 0), max_bytes=1))
    assert [each[1:] for each in told(answer)] == [(0, 0, len(data)), (1, 0, 0)]
    answer = fetched(client, 12, request(session=(answer.session_id, 1), max_bytes=1))
    assert [each[1:] for each in told(answer) if each[3]] == [(1, 0, len(data))]


def revoke(client: Any, topic: str) -> None:
    which = DeleteAclsFilter(2, topic, 3, None, None, 1, 1)
    assert client.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([which])).filter_results


@pytest.mark.parametrize("version", [12, 17])
def test_a_right_that_is_revoked_holds_at_once_and_one_that_is_given_too(
    node: Broker, version: int
):
    admin, alice = raw.admin(node), raw.logged_in(node, "alice")
    kept, lost = new_topic(admin), new_topic(admin)
    names: list[Any] = [each if version < 13 else id_of(admin, each) for each in (kept, lost)]
    admin.create(raw.acl("alice", raw.READ, kept), raw.acl("alice", raw.READ, lost))
    data = batch_now(b"x")
    both = {name: [partition(0)] for name in names}
    answer = fetched(alice, version, request(both, (0, 0)))
    session = answer.session_id
    assert [each[2:] for each in told(answer)] == [(0, 0), (0, 0)]
    revoke(admin, lost)
    write(admin, lost, data)
    answer = fetched(alice, version, request(session=(session, 1)))
    assert [each[2:] for each in told(answer)] == [(REFUSED, 0)]
    answer = fetched(alice, version, request({names[1]: [partition(0)]}, (session, 2)))
    assert [each[2:] for each in told(answer)] == [(REFUSED, 0)]
    admin.create(raw.acl("alice", raw.READ, lost))
    answer = fetched(alice, version, request(session=(session, 3)))
    assert [each[2:] for each in told(answer)] == [(0, len(data))]
    admin.create(raw.acl("alice", raw.READ, kept))
    revoke(admin, lost)
    answer = fetched(alice, version, request(both, (session, 0)))
    assert [each[2:] for each in told(answer)] == [(0, 0), (REFUSED, 0)]
    admin.create(raw.acl("alice", raw.READ, lost))
    answer = fetched(alice, version, request(session=(answer.session_id, 1)))
    assert [each[2:] for each in told(answer)] == [(0, len(data))]


@pytest.mark.parametrize("version", [12, 17])
def test_what_a_session_is_refused_has_an_empty_list_of_transactions_as_in_kafka(
    node: Broker, version: int
):
    admin, alice = raw.admin(node), raw.logged_in(node, "alice")
    topic = new_topic(admin)
    admin.create(raw.acl("alice", raw.READ, topic))
    asked = {topic if version < 13 else id_of(admin, topic): [partition(0)]}
    session = fetched(alice, version, request(asked, (0, 0))).session_id
    revoke(admin, topic)
    answer = fetched(alice, version, request(session=(session, 1)))
    [refused] = answer.responses[0].partitions
    assert (refused.error_code, refused.aborted_transactions) == (REFUSED, [])


def test_a_topic_id_of_zero_stays_unknown_in_a_session(node: Broker):
    client = raw.admin(node)
    begun = request({id_of(client, new_topic(client)): [partition(0)]}, (0, 0))
    begun.topics = [*begun.topics, f.FetchTopic(topic_id=bytes(16), partitions=[partition(0)])]
    answer = fetched(client, 17, begun)
    assert [each[2] for each in told(answer)] == [0, UNKNOWN_ID]
    answer = fetched(client, 17, request(session=(answer.session_id, 1)))
    assert [each[2] for each in told(answer)] == [UNKNOWN_ID]


def test_a_request_that_begins_a_session_forgets_nothing(node: Broker):
    admin, alice = raw.admin(node), raw.logged_in(node, "alice")
    shown, hidden = new_topic(admin), new_topic(admin)
    admin.create(raw.acl("alice", raw.READ, shown))
    begun = request({shown: [partition(0)], hidden: [partition(0)]}, (0, 0))
    begun.forgotten_topics_data = [f.ForgottenTopic(hidden, partitions=[0])]
    answer = fetched(alice, 12, begun)
    assert told(answer) == [(shown, 0, 0, 0), (hidden, 0, REFUSED, 0)]
    answer = fetched(alice, 12, request(session=(answer.session_id, 1)))
    assert told(answer) == [(hidden, 0, REFUSED, 0)]


def test_a_right_that_is_revoked_while_a_fetch_waits_holds(node: Broker):
    admin, writer, alice = raw.admin(node), raw.admin(node), raw.logged_in(node, "alice")
    topic = new_topic(admin)
    admin.create(raw.acl("alice", raw.READ, topic))

    def change() -> None:
        revoke(admin, topic)
        write(writer, topic, batch_now(b"secret"))

    timer = meanwhile(change)
    answer = fetched(alice, 12, request({topic: [partition(0)]}, max_wait_ms=LONG_MS))
    timer.join()
    assert told(answer) == [(topic, 0, REFUSED, 0)]


def test_records_of_many_megabytes_come_in_one_answer(node: Broker):
    client = raw.admin(node)
    topic = new_topic(client)
    data = batch_now(*[b"x" * 100_000] * 10)
    for _ in range(30):
        assert write(client, topic, data).error_code == 0
    asked = {topic: [partition(0, most=1 << 30)]}
    answer = fetched(client, 12, request(asked, max_bytes=1 << 30))
    assert told(answer) == [(topic, 0, 0, 30 * len(data))]
