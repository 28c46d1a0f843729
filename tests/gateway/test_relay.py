"""Produce and Fetch are forwarded without being decoded, and rights hold all the same."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.backends.upstream import relayed
from aclbroker.broker.backends.upstream.scans import PRODUCE_REQUEST, PRODUCE_RESPONSE
from aclbroker.broker.gate.whole import Right, WholeRights
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import produce as p
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.list_groups import ListGroupsRequest
from aclbroker.protocol.wire import decode_response, response_frame
from tests.gateway.meddling import World
from tests.memory.records import batch
from tests.memory_cluster import raw
from tests.memory_cluster.raw import fetched, partition, request, told, write
from tests.memory_cluster.test_fetching import REFUSED, batch_now, meanwhile, new_topic, revoke
from tests.server.test_status import figure
from tests.support.broker import Broker
from tests.support.client import Client, request_frame
from tests.support.gateway import gateway_before

RECORDS = batch(b"a record")
TRANSACTIONAL = batch(b"in a transaction", producer=(7, 0, 0), transactional=True)
TRANSACTIONAL_ID_REFUSED = 53
LONG_MS = 20_000


@dataclasses.dataclass
class Scene:
    """A world with topics that alice may read, write, both or neither."""

    world: World
    admin: Client
    alice: Client
    read: str
    written: str
    both: str
    hidden: str

    @property
    def relayed(self) -> float:
        """How many requests the gateway has relayed."""
        return figure(self.world.gateway, "aclbroker_forwarded_requests_total", way="relayed")


@pytest.fixture
def scene(world: World) -> Scene:
    admin, alice = raw.admin(world.gateway), raw.logged_in(world.gateway, "alice")
    read, written, both, hidden = (new_topic(admin) for _ in range(4))
    created = admin.create(
        raw.acl("alice", raw.READ, read),
        raw.acl("alice", raw.WRITE, written),
        raw.acl("alice", raw.READ, both),
        raw.acl("alice", raw.WRITE, both),
        # Not the right that a transaction needs.
        AclCreation(5, "tx", 3, "User:alice", "*", raw.DESCRIBE, 3),
    )
    assert created == [0] * 5
    for topic in (read, written, both, hidden):
        write(admin, topic, batch_now(b"secret"))
    # The first request of a connection is decoded, because the one upstream is not open yet.
    alice.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
    return Scene(world, admin, alice, read, written, both, hidden)


def produced(client: Client, topics: dict[str, bytes], transactional_id: str | None = None) -> Any:
    """Write batches to topics; return the code of each."""
    entries = [
        p.TopicProduceData(topic, partition_data=[p.PartitionProduceData(0, records)])
        for topic, records in topics.items()
    ]
    answer = client.ask(ApiKey.PRODUCE, 9, p.ProduceRequest(transactional_id, -1, 1000, entries))
    return [
        (topic.name, each.error_code)
        for topic in answer.responses
        for each in topic.partition_responses
    ]


@pytest.mark.parametrize("version", range(3, 14))
def test_an_allowed_produce_is_relayed(scene: Scene, version: int):
    before = scene.relayed
    answer = write(scene.alice, scene.both, RECORDS, version=version) if version < 13 else None
    if answer is None:
        topic_id = raw.id_of(scene.admin, scene.both)
        data = [p.PartitionProduceData(0, RECORDS)]
        entry = p.TopicProduceData(topic_id=topic_id, partition_data=data)
        message = p.ProduceRequest(None, -1, 1000, [entry])
        answer = scene.alice.ask(ApiKey.PRODUCE, 13, message).responses[0].partition_responses[0]
    assert (answer.error_code, answer.base_offset) == (0, 1)
    # Only the first request with an id has to ask for its name.
    assert scene.relayed - before == (version < 13)


@pytest.mark.parametrize("version", range(4, 19))
def test_an_allowed_fetch_is_relayed(scene: Scene, version: int):
    topic: Any = scene.read if version < 13 else raw.id_of(scene.admin, scene.read)
    asked = request({topic: [partition(0)]})
    first = fetched(scene.alice, version, asked)
    before = scene.relayed
    second = fetched(scene.alice, version, asked)
    assert second == first
    assert [each[2] for each in told(first)] == [0]
    assert told(first)[0][3] > 0
    assert scene.relayed - before == 1


def test_a_session_that_continues_is_relayed_until_rights_change(scene: Scene):
    asked = {scene.read: [partition(0, 1)], scene.both: [partition(0, 1)]}
    first = fetched(scene.alice, 12, request(asked, (0, 0)))
    session = first.session_id
    before = scene.relayed
    assert told(fetched(scene.alice, 12, request(session=(session, 1)))) == []
    write(scene.admin, scene.both, RECORDS)
    moved = {scene.both: [partition(0, 1)]}
    answer = fetched(scene.alice, 12, request(moved, (session, 2)))
    assert told(answer) == [(scene.both, 0, 0, len(RECORDS))]
    # With the Produce of the administrator.
    assert scene.relayed - before == 3
    revoke(scene.admin, scene.both)
    answer = fetched(scene.alice, 12, request(session=(session, 3)))
    assert told(answer) == [(scene.both, 0, REFUSED, 0)]
    scene.admin.create(raw.acl("alice", raw.READ, scene.both))
    answer = fetched(scene.alice, 12, request(session=(session, 4)))
    # The place in the topic is the one that the client asked for last.
    assert told(answer) == [(scene.both, 0, 0, len(RECORDS))]


def test_requests_of_all_ways_are_answered_in_their_order(scene: Scene):
    asked = request({scene.read: [partition(0)]})
    kinds: list[tuple[ApiKey, int, Any]] = [
        (ApiKey.FETCH, 12, asked),
        (ApiKey.API_VERSIONS, 2, ApiVersionsRequest()),
        (ApiKey.FETCH, 12, asked),
        (ApiKey.LIST_GROUPS, 4, ListGroupsRequest()),
        (ApiKey.FETCH, 12, request({scene.hidden: [partition(0)]})),
        (ApiKey.FETCH, 12, asked),
    ]
    frames = [
        request_frame(key, version, message, number)
        for number, (key, version, message) in enumerate(kinds * 20)
    ]
    scene.alice.socket.sendall(b"".join(frames))
    answers = scene.alice.socket.makefile("rb")
    for number, (key, version, message) in enumerate(kinds * 20):
        frame = answers.read(int.from_bytes(answers.read(4)))
        correlation_id, answer = decode_response(APIS[key], version, frame)
        assert correlation_id == number
        if key == ApiKey.FETCH:
            is_hidden = message.topics[0].topic == scene.hidden
            assert [each[2] for each in told(answer)] == [REFUSED if is_hidden else 0]


def test_an_answer_that_waits_for_a_relayed_one_leaves_behind_it(scene: Scene):
    asked = request({scene.read: [partition(0)]})
    scene.alice.send(
        request_frame(ApiKey.FETCH, 12, asked, 1)
        + request_frame(ApiKey.API_VERSIONS, 2, ApiVersionsRequest(), 2)
    )
    assert scene.alice.response(ApiKey.FETCH, 12)[0] == 1
    assert scene.alice.response(ApiKey.API_VERSIONS, 2)[0] == 2


def outcomes(scene: Scene) -> dict[str, Any]:
    """Return the answers to requests of alice that are allowed, and to others."""
    alice, admin = scene.alice, scene.admin
    found: dict[str, Any] = {}
    for name in ("read", "written", "both", "hidden"):
        topic = getattr(scene, name)
        found[f"write {name}"] = produced(alice, {topic: RECORDS})
        answer = fetched(alice, 12, request({topic: [partition(0, most=1)]}))
        found[f"read {name}"] = [each[2] for each in told(answer)]
    found["write several"] = produced(alice, {scene.hidden: RECORDS, scene.written: RECORDS})
    found["write in a transaction"] = produced(alice, {scene.both: TRANSACTIONAL}, "tx")
    found["write in a transaction later"] = produced(
        alice, {scene.both: RECORDS + TRANSACTIONAL}, "tx"
    )
    found["an answer about another topic"] = with_another_topic(scene)
    found["a right that is revoked meanwhile"] = revoked_meanwhile(scene, admin)
    return found


def with_another_topic(scene: Scene) -> tuple[Any, Any]:
    """Ask while the cluster upstream adds a hidden topic to each answer."""

    def add(answer: bytes) -> bytes:
        key = ApiKey.PRODUCE if kind == "produce" else ApiKey.FETCH
        version = 9 if kind == "produce" else 12
        number, message = decode_response(APIS[key], version, answer)
        if kind == "produce":
            data = [p.PartitionProduceResponse(0, 0, 55)]
            message.responses.append(p.TopicProduceResponse(scene.hidden, partition_responses=data))
        else:
            records = f.PartitionData(0, 0, 1, records=RECORDS)
            message.responses.append(f.FetchableTopicResponse(scene.hidden, partitions=[records]))
        return response_frame(APIS[key], version, number, message)

    kind = "produce"
    with scene.world.meddling(add):
        written = produced(scene.alice, {scene.both: RECORDS})
    kind = "fetch"
    with scene.world.meddling(add):
        answer = fetched(scene.alice, 12, request({scene.read: [partition(0, most=1)]}))
    return written, [each[:3] for each in told(answer)]


def revoked_meanwhile(scene: Scene, admin: Client) -> list[Any]:
    """Read from the end of a topic, and lose the right before there are records."""
    end = write(admin, scene.read, RECORDS).base_offset + 1

    def change() -> None:
        revoke(admin, scene.read)
        write(admin, scene.read, batch_now(b"secret"))

    timer = meanwhile(change)
    asked = request({scene.read: [partition(0, end)]}, max_wait_ms=LONG_MS)
    answer = fetched(scene.alice, 12, asked)
    timer.join()
    admin.create(raw.acl("alice", raw.READ, scene.read))
    return [each[2:] for each in told(answer)]


def _renamed(scene: Scene, found: dict[str, Any]) -> str:
    text = json.dumps(found)
    for name in ("read", "written", "both", "hidden"):
        text = text.replace(getattr(scene, name), f"<{name}>")
    return text


def test_alice_gets_what_she_may_and_nothing_else(scene: Scene):
    found = json.loads(_renamed(scene, outcomes(scene)))
    refused = [REFUSED]
    assert found["write both"] == [["<both>", 0]]
    assert found["write written"] == [["<written>", 0]]
    assert found["write read"] == [["<read>", REFUSED]]
    assert found["write hidden"] == [["<hidden>", REFUSED]]
    assert (found["read both"], found["read read"]) == ([0], [0])
    assert (found["read written"], found["read hidden"]) == (refused, refused)
    assert found["write several"] == [["<hidden>", REFUSED], ["<written>", 0]]
    assert found["write in a transaction"] == [["<both>", TRANSACTIONAL_ID_REFUSED]]
    assert found["write in a transaction later"] == [["<both>", TRANSACTIONAL_ID_REFUSED]]
    assert found["an answer about another topic"] == [[["<both>", 0]], [["<read>", 0, 0]]]
    assert found["a right that is revoked meanwhile"] == [[REFUSED, 0]]


def _never_changed(self: Any, session: Any, right: Any) -> Any:
    made = self._authorizer.decisions(session, *right)
    return CHANGED.setdefault((id(session), right), made)


CHANGED: dict[Any, Any] = {}

_names = relayed.Asked.names

MUTANTS: dict[str, tuple[Any, str, Any]] = {
    "another right to write": (relayed, "WRITE_TOPIC", relayed.READ_TOPIC),
    "another right to read": (relayed, "READ_TOPIC", relayed.WRITE_TOPIC),
    "another right for transactions": (
        relayed,
        "WRITE_TRANSACTIONAL_ID",
        Right(AclOperation.DESCRIBE, ResourceType.TRANSACTIONAL_ID),
    ),
    "the first topic alone": (
        relayed.Asked,
        "names",
        lambda self, topics: _names(self, topics[-1:]),
    ),
    "the first batch alone": (
        relayed,
        "PLANS",
        {
            **relayed.PLANS,
            ApiKey.PRODUCE: (
                PRODUCE_REQUEST._replace(one_batch=False),
                PRODUCE_RESPONSE,
            ),
        },
    ),
    "any answer to a Produce": (
        relayed.ForwardedProduce,
        "_is_expected",
        lambda self, *found: True,
    ),
    "any answer to a Fetch": (relayed.ForwardedFetch, "_is_expected", lambda self, *found: True),
    "rights of the request": (WholeRights, "decisions", _never_changed),
}
"""Changes of the relay, each of which must change what alice gets."""


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_change_of_the_relay_is_noticed(
    scene: Scene, mutant: str, monkeypatch: pytest.MonkeyPatch
):
    normal = _renamed(scene, outcomes(scene))
    owner, name, value = MUTANTS[mutant]
    CHANGED.clear()
    monkeypatch.setattr(owner, name, value)
    scene.alice = raw.logged_in(scene.world.gateway, "alice")
    scene.alice.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
    try:
        changed = _renamed(scene, outcomes(scene))
    except (AssertionError, ValueError) as error:
        changed = repr(error)
    assert changed != normal


def _recorded(broker: Broker) -> list[dict[str, Any]]:
    """The records of the audit log, without their times and numbers."""
    ignored = ("timestamp",)
    return [
        {key: value for key, value in event.items() if key not in ignored}
        for event in broker.events()
        if event.get("event") == "authorization" and event["principal"] == "User:alice"
    ]


def _with_undeclared_tag(frame: bytes) -> bytes:
    """The same request with an undeclared tagged field in its header, so that it is decoded."""
    at = 14 + int.from_bytes(frame[12:14])
    tagged = frame[4:at] + b"\x01\x28\x01x" + frame[at + 1 :]
    return len(tagged).to_bytes(4) + tagged


def test_decisions_on_relayed_requests_are_recorded_as_on_decoded_ones(
    memory: Broker, tmp_path: Path
):
    settings = {"aclbroker.audit.level": "all", "aclbroker.audit.rollup.seconds": "0"}
    gateway = gateway_before(memory.listeners["PLAINTEXT"], tmp_path, **settings)
    try:
        admin, alice = raw.admin(gateway), raw.logged_in(gateway, "alice")
        topics = [new_topic(admin) for _ in range(2)]
        for operation in (raw.READ, raw.WRITE):
            admin.create(*(raw.acl("alice", operation, topic) for topic in topics))
        alice.ask(ApiKey.LIST_GROUPS, 4, ListGroupsRequest())
        entries = [
            p.TopicProduceData(topic, partition_data=[p.PartitionProduceData(0, RECORDS)] * 2)
            for topic in topics
        ]
        asked = {topic: [partition(0), partition(0)] for topic in topics}
        for key, version, message in (
            (ApiKey.PRODUCE, 9, p.ProduceRequest(None, -1, 1000, entries)),
            (ApiKey.FETCH, 12, request(asked)),
        ):
            frame = request_frame(key, version, message, 5)
            before = len(_recorded(gateway))
            alice.send(frame)
            alice.response(key, version)
            relayed = _recorded(gateway)[before:]
            alice.send(_with_undeclared_tag(frame))
            alice.response(key, version)
            decoded = _recorded(gateway)[before + len(relayed) :]
            assert relayed == decoded
            assert [each["resource_ref_count"] for each in relayed] == [2, 2]
    finally:
        gateway.terminate()
