"""Quotas, features, the metadata quorum, log directories and internal topics, on the wire.

A real Kafka 4.3.0 answered the same requests with the codes and messages that are asserted here.
"""

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from aclbroker import turns
from aclbroker.broker.backends.memory.quotas import alter_client_quotas
from aclbroker.broker.memory.quotas import Quotas
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import alter_client_quotas as aq
from aclbroker.protocol.messages import alter_replica_log_dirs as moved
from aclbroker.protocol.messages import api_versions as versions
from aclbroker.protocol.messages import describe_client_quotas as dq
from aclbroker.protocol.messages import describe_log_dirs as dirs
from aclbroker.protocol.messages import describe_quorum as quorum
from aclbroker.protocol.messages import find_coordinator as found
from aclbroker.protocol.messages import metadata as md
from aclbroker.protocol.messages import update_features as updated
from aclbroker.testing import AclBroker
from tests.support.client import Client

INVALID_REQUEST, INVALID_UPDATE_VERSION = 42, 95
EXACT, DEFAULT, SPECIFIED = 0, 1, 2
Names = dict[str, str | None]
Ops = dict[str, float | None]


@pytest.fixture(scope="module")
def broker() -> Iterator[AclBroker]:
    with AclBroker(topics={"t": 1}, nodes=3) as running:
        yield running


@pytest.fixture
def client(broker: AclBroker) -> Iterator[Client]:
    with Client(broker.bootstrap_servers.split(",")[0]) as client:
        client.login("admin", broker.password("admin"))
        yield client


def altered(client: Client, *entries: tuple[Names, Ops], tried: bool = False):
    """Alter quotas of entities, and return the code and the message of each entity."""
    request = aq.AlterClientQuotasRequest(
        [
            aq.RequestEntryData(
                [aq.EntityData(*part) for part in entity.items()],
                [aq.OpData(key, value or 0.0, value is None) for key, value in ops.items()],
            )
            for entity, ops in entries
        ],
        tried,
    )
    answer = client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, request)
    return [(each.error_code, each.error_message) for each in answer.entries]


def described(client: Client, *components: tuple[str, int, str | None], strict: bool = False):
    request = dq.DescribeClientQuotasRequest([dq.ComponentData(*c) for c in components], strict)
    return client.ask(ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, request)


def entities(answer: Any) -> list[Names]:
    return [{part.entity_type: part.entity_name for part in e.entity} for e in answer.entries]


def test_quotas_are_kept_and_found_by_their_entities(client: Client):
    pair: Names = {"user": "a", "client-id": "c"}
    quotas: tuple[tuple[Names, Ops], ...] = (
        ({"user": "a"}, {"producer_byte_rate": 1024.0}),
        (pair, {"consumer_byte_rate": 5.0, "request_percentage": 12.5}),
        ({"user": None}, {"controller_mutation_rate": 3.0}),
        ({"ip": "1.2.3.4"}, {"connection_creation_rate": 3.0}),
    )
    assert altered(client, *quotas) == [(0, None)] * 4
    [entry] = described(client, ("user", EXACT, "a"), strict=True).entries
    assert [(value.key, value.value) for value in entry.values] == [("producer_byte_rate", 1024.0)]
    assert entities(described(client, ("user", EXACT, "a"))) == [{"user": "a"}, pair]
    assert entities(described(client, ("user", DEFAULT, None))) == [{"user": None}]
    any_user = described(client, ("user", SPECIFIED, None), strict=True)
    assert entities(any_user) == [{"user": "a"}, {"user": None}]
    assert entities(described(client, ("ip", DEFAULT, None))) == []
    assert len(described(client).entries) == 4
    assert described(client, strict=True).entries == []
    removed: list[tuple[Names, Ops]] = [(entity, dict.fromkeys(ops)) for entity, ops in quotas]
    assert altered(client, *removed) == [(0, None)] * 4
    assert described(client).entries == []


@pytest.mark.parametrize(
    ("entity", "ops", "words"),
    [
        ({"ip": "not an ip"}, {"connection_creation_rate": 3.0}, "not an ip is not a valid IP"),
        ({"ip": None}, {"connection_creation_rate": 3.5}, "cannot be a fractional value"),
        ({"ip": "1.2.3.4"}, {"producer_byte_rate": 3.0}, "Invalid configuration key producer"),
        ({"user": "a"}, {"connection_creation_rate": 3.0}, "Invalid configuration key connection"),
        ({"user": "a"}, {"producer_byte_rate": -1.0}, "must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": float("nan")}, "must be greater than 0"),
        ({"user": "a"}, {"producer_byte_rate": float("inf")}, "cannot be a fractional value"),
        ({"host": "a"}, {"producer_byte_rate": 1.0}, "Unhandled client quota entity type: host"),
        ({"user": "a", "ip": "::1"}, {"producer_byte_rate": 1.0}, "Invalid quota entity comb"),
        ({"user": ""}, {"producer_byte_rate": 1.0}, "Empty user not supported"),
        ({"user": "a" * 2000}, {"producer_byte_rate": 1.0}, "more than 1000 characters"),
        ({}, {"producer_byte_rate": 1.0}, "Invalid empty client quota entity"),
    ],
)
def test_a_quota_that_cannot_be_is_refused_and_the_others_are_kept(
    client: Client, entity: Names, ops: Ops, words: str
):
    good: Names = {"client-id": "good"}
    [(code, message), kept] = altered(client, (entity, ops), (good, {"request_percentage": 1.5}))
    assert code == INVALID_REQUEST
    assert words in message
    assert kept == (0, None)
    assert entities(described(client)) == [good]
    altered(client, (good, {"request_percentage": None}))


def test_a_trial_keeps_no_quota_and_an_entity_twice_is_an_error(client: Client):
    ops: Ops = {"producer_byte_rate": 1.0}
    assert altered(client, ({"user": "tried"}, ops), tried=True) == [(0, None)]
    assert described(client).entries == []
    [(code, message)] = altered(client, ({"user": "d"}, ops), ({"user": "d"}, ops))
    assert (code, message) == (
        INVALID_REQUEST, "Ignoring duplicate entity ClientQuotaEntity(entries={user=d})",
    )  # fmt: skip
    altered(client, ({"user": "d"}, {"producer_byte_rate": None}))


def test_a_long_request_for_quotas_pauses_for_other_clients(monkeypatch: pytest.MonkeyPatch):
    pauses: list[None] = []
    monkeypatch.setattr(turns, "_pause", lambda: pauses.append(None))
    part = aq.EntityData("user", "a")
    many = [aq.EntityData(f"type-{number}", "a") for number in range(5_000)]
    ops = [aq.OpData("producer_byte_rate", 1.0, False)]
    entries = [aq.RequestEntryData([part], ops)] * 5_000 + [aq.RequestEntryData(many, ops)]
    backend: Any = SimpleNamespace(cluster=SimpleNamespace(quotas=Quotas()))
    rights: Any = None
    answer = alter_client_quotas(backend, rights, aq.AlterClientQuotasRequest(entries))
    assert [each.error_code for each in answer.entries] == [INVALID_REQUEST, INVALID_REQUEST]
    # Both loops over the entries, and those over the many types of the last one.
    entries_once, types_once = 5_000 // 16, 5_000 // 16
    assert len(pauses) >= 5_000 + 2 * entries_once + 2 * types_once


@pytest.mark.parametrize(
    ("components", "code", "words"),
    [
        ([("host", SPECIFIED, None)], 35, "Unsupported entity type host"),
        ([("user", SPECIFIED, None)] * 2, 42, "cannot appear more than once"),
        ([("user", 3, None)], 42, "Unknown match type 3"),
        ([("user", SPECIFIED, "a")], 42, "MATCH_TYPE_SPECIFIED, but also specified"),
        ([("user", DEFAULT, "a")], 42, "MATCH_TYPE_DEFAULT, but also specified"),
        ([("user", EXACT, None)], 42, "but set match string to null"),
        ([("ip", SPECIFIED, None), ("user", SPECIFIED, None)], 42, "Invalid entity filter comp"),
        ([("", SPECIFIED, None)], 42, "Invalid empty entity type."),
    ],
)
def test_a_filter_of_quotas_that_cannot_be_is_refused(
    client: Client, components: list[tuple[str, int, str | None]], code: int, words: str
):
    answer = described(client, *components)
    assert (answer.error_code, answer.entries) == (code, None)
    assert words in answer.error_message


def test_the_features_are_those_of_kafka_and_can_be_confirmed_but_not_changed(client: Client):
    answer = client.ask(ApiKey.API_VERSIONS, 4, versions.ApiVersionsRequest("x", "1"))
    levels = {each.name: each.max_version_level for each in answer.finalized_features}
    assert levels["metadata.version"] == 30

    def update(name: str, level: int, kind: int = 1) -> tuple[int, str]:
        feature = updated.FeatureUpdateKey(name, level, False, kind)
        request = updated.UpdateFeaturesRequest(1000, [feature])
        answer = client.ask(ApiKey.UPDATE_FEATURES, 1, request)
        return answer.error_code, answer.error_message or ""

    assert update("metadata.version", 30) == (0, "")
    for name, level, kind, words in (
        ("metadata.version", 31, 1, "Local controller 1 only supports versions 7-30"),
        ("metadata.version", 29, 1, "without setting the upgrade type"),
        ("metadata.version", 29, 2, "keeps its features"),
        ("nothing", 1, 1, "Local controller 1 does not support this feature."),
        ("group.version", 1, 9, "does not support the given upgrade type"),
    ):
        code, message = update(name, level, kind)
        assert code == INVALID_UPDATE_VERSION
        assert words in message


def test_the_first_node_is_the_only_voter_of_the_metadata_quorum(client: Client):
    def ask(topic: str, *partitions: int) -> Any:
        parts = [quorum.RequestPartitionData(index) for index in partitions]
        request = quorum.DescribeQuorumRequest([quorum.RequestTopicData(topic, parts)])
        [answer] = client.ask(ApiKey.DESCRIBE_QUORUM, 2, request).topics
        return answer.partitions

    [partition] = ask("__cluster_metadata", 0)
    assert (partition.error_code, partition.leader_id) == (0, 1)
    assert [each.replica_id for each in partition.current_voters] == [1]
    assert [each.replica_id for each in partition.observers] == [2, 3]
    for topic, partitions in (
        ("__cluster_metadata", [1]),
        ("t", [0]),
        ("__cluster_metadata", [0, 1]),
    ):
        assert {each.error_code for each in ask(topic, *partitions)} == {3}


def test_a_replica_may_be_moved_to_the_directory_where_it_is(client: Client):
    request = dirs.DescribeLogDirsRequest(None)
    [directory] = client.ask(ApiKey.DESCRIBE_LOG_DIRS, 4, request).results
    for path, codes in ((directory.log_dir, [0, 3]), ("/elsewhere", [57, 57])):
        topic = moved.AlterReplicaLogDirTopic("t", [0, 7])
        asked = moved.AlterReplicaLogDirsRequest([moved.AlterReplicaLogDir(path, [topic])])
        [result] = client.ask(ApiKey.ALTER_REPLICA_LOG_DIRS, 2, asked).results
        assert [each.error_code for each in result.partitions] == codes


def test_a_coordinators_topic_exists_once_the_coordinator_was_asked_for(client: Client):
    def topics() -> dict[str, tuple[bool, int]]:
        answer = client.ask(ApiKey.METADATA, 13, md.MetadataRequest(None))
        return {each.name: (each.is_internal, len(each.partitions)) for each in answer.topics}

    before = topics()
    for key_type, key, name in (
        (0, "g", "__consumer_offsets"),
        (1, "x", "__transaction_state"),
        (2, "g:AAAAAAAAAAAAAAAAAAAAAQ:0", "__share_group_state"),
    ):
        assert name not in topics()
        request = found.FindCoordinatorRequest("", key_type, [key])
        assert not client.ask(ApiKey.FIND_COORDINATOR, 6, request).coordinators[0].error_code
        assert topics()[name] == (True, 50)
    # An invalid key creates no topic, and a second request creates no second one.
    assert len(topics()) == len(before) + 3
