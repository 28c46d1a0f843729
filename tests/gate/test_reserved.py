"""Topics that keep the broker's own ACLs: nobody sees or reaches them, whatever the rights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from aclbroker.acl.authorizer import Authorizer, Decision, RequestContext, RuleKind
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.conditions import BROKER_CONFIG, TOPIC_CONFIG
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import show
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicResult,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from tests.gate.answers import id_of, message, named_in_answers, named_in_requests, tells_of
from tests.gate.requests import codes
from tests.gate.rights import ByRule, context, everything
from tests.gate.test_every_field import fields
from tests.gate.test_showing import nullable
from tests.support.messages import EXCHANGES, Exchange
from tests.support.tables import check_each

ACLS = "acls"
NAMES = [ACLS, "orders"]
DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED
PROFILES = [pytest.param(each, id=each.value) for each in Profile]

# Topics of a request that are authorized by a need of the whole request.
AS_A_WHOLE = {
    ApiKey.CONSUMER_GROUP_HEARTBEAT: {"subscribed_topic_names"},
    ApiKey.SHARE_GROUP_HEARTBEAT: {"subscribed_topic_names"},
    ApiKey.STREAMS_GROUP_HEARTBEAT: {
        f"topology.subtopologies.{field}"
        for field in (
            "source_topics",
            "repartition_sink_topics",
            "repartition_source_topics.name",
            "state_changelog_topics.name",
        )
    },
}
# Topics of a request by which nothing is reached, each with the reason.
HARMLESS = {
    "Fetch forgotten_topics_data.topic": "what a session is to forget",
    "Fetch forgotten_topics_data.topic_id": "what a session is to forget",
    "ShareFetch forgotten_topics_data.topic_id": "what a session is to forget",
    "ConsumerGroupHeartbeat topic_partitions.topic_id": "what a member says that it has",
    "ConsumerGroupHeartbeat subscribed_topic_regex": "what matches is what may be described",
    "StreamsGroupHeartbeat topology.subtopologies.source_topic_regex": "as of a consumer group",
    "DescribeTopicPartitions cursor.topic_name": "behind which name a list goes on",
}
OF_OLD_BROKERS = {ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA}
NO_TOPICS = ("_metadata", "directory_id", "configs.name", "configs.key", "configs.value")


class Denials:
    """Notes what was denied, and by which rule."""

    def __init__(self, *wanted: bool) -> None:
        self.of: list[tuple[AclOperation, str | None, int, RuleKind]] = []
        self._wanted = wanted

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        return self._wanted

    def position(self) -> None:
        return None

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        **_more: Any,
    ) -> None:
        self.of += [
            (operation, name, count, decision.rule.kind)
            for name, count, decision in decided
            if not decision.allowed
        ]


def rights_of(
    key: int,
    version: int,
    authorizer: Authorizer | None,
    denials: Denials | None = None,
    profile: Profile = Profile.KAFKA,
) -> RequestRights:
    """Return the rights of who may do everything, where a topic is reserved."""
    asked = context(key, version)
    noted = denials or Denials(False)
    return RequestRights(GATE[key], asked, authorizer, noted, profile, frozenset([ACLS]))


def topics() -> Catalog:
    """Return topics whose ids are those of the messages."""
    return Catalog(dict.fromkeys(NAMES, 1), topic_ids={name: id_of(name) for name in NAMES})


def named_topics(key: int) -> set[str]:
    """Return the fields of a key's requests that name topics."""
    of_entries = {
        path for path in named_in_requests(key) if "topic" in path or path.startswith("resources.")
    }
    return of_entries | AS_A_WHOLE.get(ApiKey(key), set())


def request_for(key: int, version: int, names: Sequence[str]) -> Any:
    request = message(APIS[key].request, version, named_topics(key), lambda: names)
    for resource in getattr(request, "resources", ()):
        resource.resource_type = TOPIC_CONFIG
    if hasattr(request, "member_id"):
        request.member_id = "member"
    return request


def test_it_is_known_of_every_field_of_a_request_whether_it_names_a_topic() -> None:
    for key, api in APIS.items():
        unknown = {
            f"{api.name} {path}"
            for version in api.versions
            for path, kind in fields(api.request, version)
            if kind in ("string", "uuid") and "topic" in path and path not in named_topics(key)
            if not path.endswith(NO_TOPICS) and key not in OF_OLD_BROKERS
        }
        assert unknown == {each for each in HARMLESS if each.split()[0] == api.name}


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize("has_authorizer", [True, False])
def test_nothing_that_names_it_passes(has_authorizer: bool, profile: Profile) -> None:
    authorizer = ByRule(everything) if has_authorizer else None

    def check_exchange(exchange: Exchange) -> None:
        for names in (NAMES, [ACLS], [*NAMES, *NAMES]):
            request = request_for(*exchange, names)
            verdict = check(request, rights_of(*exchange, authorizer, None, profile), topics())
            if verdict.request is not None:
                assert ACLS not in tells_of(verdict.request, NAMES)

    check_each(EXCHANGES, check_exchange)


@pytest.mark.parametrize("version", APIS[ApiKey.FETCH].versions)
def test_a_follower_fetches_all_but_it(version: int) -> None:
    request = request_for(ApiKey.FETCH, version, NAMES)
    request.replica_id = request.replica_state.replica_id = 1
    rights = rights_of(ApiKey.FETCH, version, ByRule(everything))
    assert tells_of(check(request, rights, topics()).request, NAMES) == {"orders"}


# Requests that a right on the cluster lets pass: the other topics in them pass on.
BY_ENTRY = [
    (ApiKey.CREATE_TOPICS, AclOperation.CREATE),
    (ApiKey.DELETE_TOPICS, AclOperation.DELETE),
    (ApiKey.OFFSET_FOR_LEADER_EPOCH, AclOperation.DESCRIBE),
    (ApiKey.ELECT_LEADERS, AclOperation.ALTER),
    (ApiKey.ALTER_PARTITION_REASSIGNMENTS, AclOperation.ALTER),
    (ApiKey.READ_SHARE_GROUP_STATE, AclOperation.CLUSTER_ACTION),
]
# Those whose answers have no place for the refusal of one of several topics are refused.
AS_ONE = [
    (ApiKey.ADD_PARTITIONS_TO_TXN, AclOperation.CLUSTER_ACTION),
    (ApiKey.ALTER_REPLICA_LOG_DIRS, AclOperation.ALTER),
    (ApiKey.DESCRIBE_LOG_DIRS, AclOperation.DESCRIBE),
    (ApiKey.DESCRIBE_QUORUM, AclOperation.DESCRIBE),
    (ApiKey.LIST_PARTITION_REASSIGNMENTS, AclOperation.DESCRIBE),
    (ApiKey.WRITE_TXN_MARKERS, AclOperation.CLUSTER_ACTION),
]


def newest(key: int) -> int:
    # Topics to be deleted have a name and an id from version 6 on, and the messages here both.
    return 5 if key == ApiKey.DELETE_TOPICS else max(APIS[key].versions)


@pytest.mark.parametrize(("key", "operation"), BY_ENTRY)
def test_other_topics_of_the_same_request_pass(key: int, operation: AclOperation) -> None:
    denials = Denials(False)
    rights = rights_of(key, newest(key), ByRule(everything), denials)
    verdict = check(request_for(key, newest(key), NAMES), rights, topics())
    assert tells_of(verdict.request, NAMES) == {"orders"}
    answer = verdict.complete(APIS[key].response())
    assert ACLS in tells_of(answer, NAMES)
    assert codes(answer) - {0} <= {DENIED}
    assert (operation, ACLS, 1, RuleKind.RESERVED_TOPIC) in denials.of
    assert {kind for *_, kind in denials.of} == {RuleKind.RESERVED_TOPIC}


@pytest.mark.parametrize(("key", "operation"), AS_ONE)
def test_requests_are_refused_whose_answers_could_not_tell_of_it(
    key: int, operation: AclOperation
) -> None:
    denials = Denials(False)
    rights = rights_of(key, newest(key), ByRule(everything), denials)
    verdict = check(request_for(key, newest(key), NAMES), rights, topics())
    assert verdict.request is None
    assert operation in {each for each, name, _, _ in denials.of if name == ACLS}
    assert codes(verdict.response) - {0} <= {DENIED}
    passed = check(request_for(key, newest(key), ["orders"]), rights, topics())
    assert tells_of(passed.request, NAMES) == {"orders"}


def test_what_is_refused_stands_among_the_rest_in_the_order_of_the_request() -> None:
    names = ["orders", ACLS, "payments"]
    request = CreateTopicsRequest([CreatableTopic(name) for name in names])
    verdict = check(request, rights_of(ApiKey.CREATE_TOPICS, 7, ByRule(everything)), topics())
    answered = [CreatableTopicResult(topic.name) for topic in verdict.request.topics]
    answer = verdict.complete(CreateTopicsResponse(topics=answered))
    assert [(topic.name, topic.error_code) for topic in answer.topics] == [
        ("orders", 0),
        (ACLS, DENIED),
        ("payments", 0),
    ]


@pytest.mark.parametrize("has_authorizer", [True, False])
def test_each_denial_is_recorded_with_its_rule_if_denials_are(has_authorizer: bool) -> None:
    authorizer = ByRule(everything) if has_authorizer else None
    for wanted in (Denials(), Denials(False)):
        rights = rights_of(ApiKey.LIST_OFFSETS, 1, authorizer, wanted)
        assert rights.ask(rights.applying()[0], ResourceType.TOPIC, {ACLS: 3, "orders": 1}) == {
            "orders"
        }
        recorded = [(AclOperation.DESCRIBE, ACLS, 3, RuleKind.RESERVED_TOPIC)]
        assert wanted.of == (recorded if wanted.wanted(log_if_denied=True) else [])


def test_a_group_or_a_broker_may_have_its_name() -> None:
    rights = rights_of(ApiKey.JOIN_GROUP, 5, ByRule(everything))
    assert rights.ask(rights.applying()[0], ResourceType.GROUP, {ACLS: 1}) == {ACLS}
    rights = rights_of(ApiKey.DESCRIBE_CONFIGS, 4, ByRule(everything))
    request = request_for(ApiKey.DESCRIBE_CONFIGS, 4, NAMES)
    for resource in request.resources:
        resource.resource_type = BROKER_CONFIG
    assert check(request, rights, topics()).request == request


def test_a_topic_of_its_id_is_not_named() -> None:
    request = DeleteTopicsRequest(topics=[DeleteTopicState(None, id_of(ACLS))])
    verdict = check(request, rights_of(ApiKey.DELETE_TOPICS, 6, ByRule(everything)), topics())
    [refused] = verdict.response.responses
    assert (refused.name, refused.error_code) == (None, DENIED)


def test_nobody_has_operations_on_it() -> None:
    rights = rights_of(ApiKey.METADATA, 9, ByRule(everything))
    assert rights.operations(ResourceType.TOPIC, ACLS) == 0
    assert rights.operations(ResourceType.TOPIC, "orders") > 0
    assert rights_of(ApiKey.METADATA, 9, None).operations(ResourceType.TOPIC, ACLS) == 0


def test_no_list_of_all_shows_it() -> None:
    check_each(EXCHANGES, check_list_of_all)


def check_list_of_all(exchange: Exchange) -> None:
    key, version = exchange
    request = message(APIS[key].request, version, (), lambda: [])
    for array in ("topics", "topic_partitions"):
        if array in type(request).__dataclass_fields__:
            for owner, each in nullable(request, array, version):
                setattr(owner, each, None)
    if key == ApiKey.DESCRIBE_TOPIC_PARTITIONS:
        request.topics = []
    named = {path for path in named_in_answers(key) if "topic" in path}
    response = message(APIS[key].response, version, named, lambda: NAMES)
    shown = show(request, response, rights_of(key, version, ByRule(everything)), topics())
    assert ACLS not in tells_of(shown, NAMES)


def test_a_list_of_all_shows_the_other_topics() -> None:
    for key, array in ((ApiKey.ELECT_LEADERS, "topic_partitions"), (ApiKey.METADATA, "topics")):
        request = APIS[key].request(**{array: None})
        response = message(APIS[key].response, 1, named_in_answers(key), lambda: NAMES)
        shown = show(request, response, rights_of(key, 1, ByRule(everything)), topics())
        assert tells_of(shown, NAMES) == {"orders"}


def test_a_list_of_configurations_does_not_show_its_own() -> None:
    key = ApiKey.LIST_CONFIG_RESOURCES
    named = {"config_resources.resource_name"}
    response = message(APIS[key].response, 1, named, lambda: [*NAMES, *NAMES])
    for position, resource in enumerate(response.config_resources):
        resource.resource_type = TOPIC_CONFIG if position < 2 else BROKER_CONFIG
    shown = show(APIS[key].request(), response, rights_of(key, 1, ByRule(everything)), topics())
    names = [(each.resource_name, each.resource_type) for each in shown.config_resources]
    assert names == [("orders", TOPIC_CONFIG), (ACLS, BROKER_CONFIG), ("orders", BROKER_CONFIG)]
