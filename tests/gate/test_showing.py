"""What a session is shown of answers that know more than it may."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Decision, Position, RequestContext
from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.acl.operations import bit_field, supported_operations
from aclbroker.broker.gate.disclosure import AllOrRefused, Along, Echoed, Nodes, Operations
from aclbroker.broker.gate.fetching import check_fetch
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.places import fields_of
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.showing import show, unnamed
from aclbroker.broker.gate.shown import SHOWN, describe
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.compile import encode
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.create_topics import CreatableTopicConfigs
from aclbroker.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsSynonym,
)
from aclbroker.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenOwner,
)
from aclbroker.protocol.messages.fetch import FetchResponse
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.answers import id_of, message, named_in_answers, named_in_requests, tells_of
from tests.gate.rights import ByRule, Rights, context
from tests.support.messages import EXCHANGES, Exchange
from tests.support.tables import check_each, examples

NAMES = ["asked", "allowed", "denied"]
UNKNOWN_OPERATIONS = -(1 << 31)
DESCRIBES = 1 << AclOperation.DESCRIBE


class Asked:
    """Notes what was asked for, and of what denials are to be logged."""

    def __init__(self) -> None:
        self.rights: set[tuple[AclOperation, ResourceType]] = set()
        self.logged: list[tuple[AclOperation, str | None]] = []

    def wanted(self, *, log_if_denied: bool) -> Sequence[bool]:
        return (False, True)

    def position(self) -> None:
        return None

    def record(
        self,
        context: RequestContext,
        operation: AclOperation,
        resource_type: ResourceType,
        decided: Sequence[tuple[str | None, int, Decision]],
        *,
        log_if_denied: bool = True,
        acls: Position | None = None,
    ) -> None:
        self.rights.add((operation, resource_type))
        if log_if_denied:
            self.logged += [(operation, name) for name, _, each in decided if not each.allowed]


def rights_of(key: int, version: int, allows: Rights, asked: Asked | None = None) -> RequestRights:
    """Return alice's rights, by a function."""
    return RequestRights(
        GATE[key], context(key, version), ByRule(allows), asked or Asked(), Profile.KAFKA
    )


class Topics:
    """All topics whose names are known, by their ids."""

    def __init__(self, names: Collection[str]) -> None:
        self.names = {id_of(name): name for name in names}

    def name_of(self, topic_id: bytes) -> str | None:
        return self.names.get(topic_id)


def to(*names: str) -> Rights:
    """Allow everything on resources of these names."""
    return lambda _operation, _type, name: name in names


def may(allowed: AclOperation, *names: str) -> Rights:
    """Allow one operation on resources of these names."""
    return lambda operation, _type, name: operation is allowed and name in names


def describe_only(*names: str) -> Rights:
    return may(AclOperation.DESCRIBE, *names)


def read_only(*names: str) -> Rights:
    return may(AclOperation.READ, *names)


def shown(
    key: int,
    version: int,
    request: Any,
    response: Any,
    allows: Rights,
    topics: Collection[str] = NAMES,
) -> Any:
    """Return what a session sees; it must be possible to send it."""
    rights = rights_of(key, version, allows)
    seen = show(request, response, rights, Topics(topics))
    encode(seen, version)
    return seen


def request_for(key: int, version: int, names: Sequence[str]) -> Any:
    return message(APIS[key].request, version, named_in_requests(key), lambda: names)


def response_of(key: int, version: int, names: Sequence[str]) -> Any:
    return message(APIS[key].response, version, named_in_answers(key), lambda: names)


def test_neither_what_is_denied_nor_what_was_not_asked_for_passes() -> None:
    check_each(EXCHANGES, check_denied)


def check_denied(exchange: Exchange) -> None:
    key, version = exchange
    request, response = request_for(key, version, ["asked"]), response_of(key, version, NAMES)
    seen = tells_of(shown(key, version, request, response, to("asked", "allowed")), NAMES)
    assert "denied" not in seen
    if all(isinstance(line, Echoed | Nodes | Along | Operations) for line in SHOWN[key]):
        assert "allowed" not in seen


def test_all_that_was_asked_for_and_is_allowed_passes_unchanged() -> None:
    check_each(EXCHANGES, check_allowed)


def check_allowed(exchange: Exchange) -> None:
    key, version = exchange
    request, response = request_for(key, version, NAMES), response_of(key, version, NAMES)
    seen = shown(key, version, request, response_of(key, version, NAMES), to(*NAMES))
    if key == ApiKey.DESCRIBE_TOPIC_PARTITIONS:
        for topic in response.topics:
            topic.topic_authorized_operations = bit_field(supported_operations(ResourceType.TOPIC))
    assert seen == response


# What each answer asks of rights where its request asks for all, or goes on with a session.
# T topic, G group, C cluster, X transactional id, D delegation token, U user.
ASKED = """
1 READ T, 3 DESCRIBE T, 3 DESCRIBE C, 9 DESCRIBE T, 16 DESCRIBE C, 16 DESCRIBE G,
19 DESCRIBE_CONFIGS T, 20 DESCRIBE T, 20 DELETE C, 41 DESCRIBE D, 41 DESCRIBE_TOKENS U,
60 DESCRIBE C, 65 DESCRIBE T, 66 DESCRIBE X, 68 DESCRIBE T, 69 DESCRIBE T, 75 DESCRIBE T,
76 DESCRIBE T, 77 DESCRIBE T, 78 READ T, 88 DESCRIBE T, 89 DESCRIBE T, 90 DESCRIBE T
"""
TYPES = {
    "T": ResourceType.TOPIC,
    "G": ResourceType.GROUP,
    "C": ResourceType.CLUSTER,
    "X": ResourceType.TRANSACTIONAL_ID,
    "D": ResourceType.DELEGATION_TOKEN,
    "U": ResourceType.USER,
}


def asked_for_all(key: int, version: int) -> Any:
    """Return a request for all that there is, by a session that goes on."""
    request = request_for(key, version, ["asked"])
    if key == ApiKey.DESCRIBE_TOPIC_PARTITIONS:
        request.topics = []
    for owner, array in list(asking_for_all(key, request, version)):
        setattr(owner, array, None)
    if key == ApiKey.DELETE_TOPICS:
        for topic in request.topics:
            topic.name = None  # given by its id
    for field in dataclasses.fields(request):
        if field.name.startswith("include_"):
            setattr(request, field.name, True)
        if field.name.endswith("session_epoch"):
            setattr(request, field.name, 1)
    return request


def test_these_rights_are_asked_for_and_no_others() -> None:
    check_each(APIS, check_rights)


def check_rights(key: int) -> None:
    asked = set()
    for version in APIS[key].versions:
        noted = Asked()
        rights = rights_of(key, version, to(), noted)
        response = response_of(key, version, ["asked"])
        show(asked_for_all(key, version), response, rights, Topics(NAMES))
        asked |= noted.rights
    lines = [line.split() for line in ASKED.replace("\n", " ").split(",")]
    assert asked == {(AclOperation[name], TYPES[kind]) for k, name, kind in lines if int(k) == key}


EVERY = ["n-one", "n-two", "n-three", "n-four"]


@settings(max_examples=examples(300), deadline=None)
@given(case=st.sampled_from(EXCHANGES), data=st.data())
def test_nothing_hidden_passes_whatever_the_rights_and_the_answer(
    case: Exchange, data: st.DataObject
) -> None:
    key, version = case
    some = st.lists(st.sampled_from(EVERY), max_size=3)
    allowed, known = data.draw(some, "allowed"), data.draw(some, "known by their ids")
    request = message(
        APIS[key].request, version, named_in_requests(key), lambda: data.draw(some, "asked")
    )
    for owner, array in asking_for_all(key, request, version):
        if data.draw(st.booleans(), f"all {array}"):
            setattr(owner, array, None)
    response = message(
        APIS[key].response, version, named_in_answers(key), lambda: data.draw(some, "answered")
    )
    # What is asked for is allowed, or it would not go on; owners of tokens are no tokens.
    asked = tells_of(request, EVERY) if key != ApiKey.DESCRIBE_DELEGATION_TOKEN else set()
    if key == ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS and not asked:
        asked = set(EVERY)  # none stands for all, which whoever may ask may see
    seen = shown(key, version, request, response, to(*allowed), known)
    assert not tells_of(seen, set(EVERY) - asked - set(allowed))


def asking_for_all(key: int, request: Any, version: int) -> Iterator[tuple[Any, str]]:
    """Yield the arrays of a request that may be null, whereupon rights decide what is shown."""
    for line in SHOWN[key]:
        if isinstance(line, Echoed) and isinstance(line.all_to, AclOperation):
            yield from nullable(request, line.asked_places[0].array, version)
        elif isinstance(line, Echoed) and line.inside is not None and line.inside.all_to:
            for owner in getattr(request, line.asked_places[0].array):
                yield from nullable(owner, line.inside.asked_places[0].array, version)


def nullable(owner: Any, array: str, version: int) -> Iterator[tuple[Any, str]]:
    [spec] = [f.metadata["spec"] for f in dataclasses.fields(owner) if f.name == array]
    if version in spec.nullable:
        yield owner, array


@pytest.mark.parametrize("version", range(2, 8))
def test_of_offsets_of_all_topics_those_are_shown_that_may_be_described(version: int) -> None:
    key = ApiKey.OFFSET_FETCH
    request, response = request_for(key, version, []), response_of(key, version, NAMES)
    request.topics = None
    seen = shown(key, version, request, response, describe_only("allowed"))
    assert [topic.name for topic in seen.topics] == ["allowed"]


@pytest.mark.parametrize("version", APIS[ApiKey.METADATA].versions)
def test_of_all_topics_those_are_shown_that_may_be_described(version: int) -> None:
    request = request_for(ApiKey.METADATA, version, [])
    request.topics = None if version else ()
    seen = shown(
        ApiKey.METADATA, version, request, response_of(3, version, NAMES), describe_only("allowed")
    )
    assert [topic.name for topic in seen.topics] == ["allowed"]


def test_of_the_partitions_of_all_topics_those_are_shown_that_may_be_described() -> None:
    key = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    response = response_of(key, 0, NAMES)
    seen = shown(key, 0, request_for(key, 0, []), response, describe_only("allowed"))
    assert [topic.name for topic in seen.topics] == ["allowed"]


def test_a_request_for_no_topics_is_not_one_for_all() -> None:
    request = request_for(ApiKey.METADATA, 1, [])
    assert not shown(ApiKey.METADATA, 1, request, response_of(3, 1, NAMES), to(*NAMES)).topics


def test_where_nothing_is_said_of_a_request_for_all_nothing_is_shown() -> None:
    key = ApiKey.ALTER_PARTITION_REASSIGNMENTS
    request = APIS[key].request(topics=None)
    assert not shown(key, 0, request, response_of(key, 0, NAMES), to(*NAMES)).responses


def test_a_key_of_which_nothing_is_declared_is_not_shown() -> None:
    unknown: Any = 999
    row = dataclasses.replace(GATE[ApiKey.LIST_GROUPS], key=unknown)
    rights = RequestRights(row, context(999, 0), ByRule(to(*NAMES)), Asked(), Profile.KAFKA)
    with pytest.raises(KeyError):
        show(None, response_of(ApiKey.LIST_GROUPS, 0, []), rights, Topics(()))


def test_what_the_table_of_needs_does_not_have_cannot_be_asked_for() -> None:
    row = dataclasses.replace(GATE[ApiKey.LIST_GROUPS], needs=())
    rights = RequestRights(row, context(16, 0), ByRule(to(*NAMES)), Asked(), Profile.KAFKA)
    with pytest.raises(KeyError, match="LIST_GROUPS needs no DESCRIBE on GROUP"):
        show(None, response_of(ApiKey.LIST_GROUPS, 0, ["asked"]), rights, Topics(()))


@pytest.mark.parametrize(
    ("key", "version"),
    [
        (ApiKey.ELECT_LEADERS, 2),
        (ApiKey.DESCRIBE_LOG_DIRS, 4),
        (ApiKey.LIST_PARTITION_REASSIGNMENTS, 0),
        (ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0),
    ],
)
def test_a_right_on_the_cluster_shows_all_if_all_are_asked_for(key: int, version: int) -> None:
    response = response_of(key, version, NAMES)
    seen = shown(key, version, request_for(key, version, ["asked"]), response, to())
    assert tells_of(seen, NAMES) == {"asked"}
    request, response = request_for(key, version, []), response_of(key, version, NAMES)
    array = {43: "topic_partitions", 50: "users"}.get(key, "topics")
    setattr(request, array, None)
    seen = shown(key, version, request, response, to())
    assert tells_of(seen, NAMES) == set(NAMES)


def test_no_users_stand_for_all_users() -> None:
    key = ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS
    seen = shown(key, 0, request_for(key, 0, []), response_of(key, 0, NAMES), to())
    assert [result.user for result in seen.results] == NAMES


@pytest.mark.parametrize(("key", "version"), [(1, 7), (1, 12), (1, 13), (1, 18), (78, 1), (78, 2)])
def test_what_a_session_goes_on_with_needs_the_right_anew(key: int, version: int) -> None:
    request, response = request_for(key, version, []), response_of(key, version, NAMES)
    if key == ApiKey.FETCH:
        request.session_epoch, request.replica_id = 1, -1
    else:
        request.share_session_epoch = 1
    for topic in response.responses:
        for partition in topic.partitions:
            partition.records = b"records"
    noted = Asked()
    rights = rights_of(key, version, read_only("allowed"), noted)
    seen = show(request, response, rights, Topics(["allowed", "denied"]))
    encode(seen, version)
    by_id = version >= 13 or key == ApiKey.SHARE_FETCH
    unknown = ErrorCode.UNKNOWN_TOPIC_ID if by_id else ErrorCode.TOPIC_AUTHORIZATION_FAILED
    codes = [{partition.error_code for partition in topic.partitions} for topic in seen.responses]
    assert codes == [{unknown}, {0}, {ErrorCode.TOPIC_AUTHORIZATION_FAILED}]
    records = [{partition.records for partition in topic.partitions} for topic in seen.responses]
    assert records[1] == {b"records"}
    assert not any(records[0] | records[2])
    assert (AclOperation.READ, "denied") in noted.logged


@pytest.mark.parametrize(
    ("version", "code"),
    [(12, ErrorCode.TOPIC_AUTHORIZATION_FAILED), (13, ErrorCode.UNKNOWN_TOPIC_ID)],
)
def test_an_entry_without_a_name_is_unknown_only_where_topics_have_ids(
    version: int, code: ErrorCode
) -> None:
    request, response = request_for(1, version, []), response_of(1, version, [""])
    request.session_epoch, request.replica_id = 1, -1
    [topic] = response.responses
    topic.topic, topic.topic_id = "", bytes(16)
    seen = show(request, response, rights_of(1, version, read_only("allowed")), Topics([]))
    assert [entry.error_code for entry in seen.responses[0].partitions] == [code]


@pytest.mark.parametrize("version", range(8, 11))
def test_offsets_of_all_topics_are_those_of_topics_that_may_be_described(version: int) -> None:
    key = ApiKey.OFFSET_FETCH
    request = request_for(key, version, ["asked", "allowed"])
    request.groups[0].topics = None
    response = response_of(key, version, NAMES)
    seen = shown(key, version, request, response, describe_only("denied", "allowed"))
    assert [group.group_id for group in seen.groups] == ["asked", "allowed"]
    by_id = {id_of(name): name for name in NAMES}
    topics = [
        [topic.name or by_id[topic.topic_id] for topic in group.topics] for group in seen.groups
    ]
    # Of the first group all were asked for, of the second what its request names.
    assert topics == [["allowed", "denied"], ["asked", "allowed"]]


def test_offsets_of_a_topic_id_without_a_known_name_are_left_out() -> None:
    key = ApiKey.OFFSET_FETCH
    request = request_for(key, 10, ["asked"])
    request.groups[0].topics = None
    response = response_of(key, 10, NAMES)
    assert unnamed(key, response) == {id_of(name) for name in NAMES}
    seen = shown(key, 10, request, response, to(*NAMES), topics=["allowed"])
    assert [topic.topic_id for topic in seen.groups[0].topics] == [id_of("allowed")]


@pytest.mark.parametrize(
    ("asked", "cursor", "expected"),
    [
        ([], "denied", None),
        ([], "allowed", "allowed"),
        (["asked"], "allowed", None),
        (["asked"], "asked", "asked"),
    ],
)
def test_a_cursor_at_a_hidden_topic_is_dropped(
    asked: list[str], cursor: str, expected: str | None
) -> None:
    key = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    response = response_of(key, 0, NAMES)
    response.next_cursor.topic_name = cursor
    seen = shown(key, 0, request_for(key, 0, asked), response, describe_only("allowed"))
    assert (seen.next_cursor and seen.next_cursor.topic_name) == expected


def created(version: int) -> Any:
    response = response_of(ApiKey.CREATE_TOPICS, version, ["open", "closed", "failed"])
    for topic in response.topics:
        topic.num_partitions, topic.replication_factor = 3, 2
        topic.configs = [
            CreatableTopicConfigs("plain", "1"),
            CreatableTopicConfigs("secret", "2", is_sensitive=True),
        ]
    response.topics[2].error_code = ErrorCode.TOPIC_ALREADY_EXISTS
    return response


def test_configurations_of_created_topics_need_describe_configs() -> None:
    key = ApiKey.CREATE_TOPICS
    request = request_for(key, 7, ["open", "closed", "failed"])
    seen = shown(key, 7, request, created(7), may(AclOperation.DESCRIBE_CONFIGS, "open"))
    opened, closed, failed = seen.topics
    assert (opened.num_partitions, opened.replication_factor) == (3, 2)
    assert [(each.name, each.value) for each in opened.configs] == [
        ("plain", "1"),
        ("secret", None),
    ]
    assert not opened.topic_config_error_code
    assert (closed.num_partitions, closed.replication_factor, closed.configs) == (-1, -1, None)
    assert closed.topic_config_error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not failed.topic_config_error_code


def test_a_deleted_topic_given_by_its_id_is_named_to_who_may_describe_it() -> None:
    key = ApiKey.DELETE_TOPICS
    names = ["described", "hidden", "named"]
    request, response = request_for(key, 6, names), response_of(key, 6, names)
    for topic in request.topics[:2]:
        topic.name = None
    request.topics[2].topic_id = ZERO_UUID
    seen = shown(key, 6, request, response, describe_only("described"), topics=names)
    assert [topic.name for topic in seen.responses] == ["described", None, "named"]


def described(key: int, version: int) -> Any:
    """Return descriptions of the groups open, closed and empty; closed has a denied topic."""
    response = message(APIS[key].response, version, named_in_answers(key), iter_names(["allowed"]))
    groups = [copy.deepcopy(response.groups[0]) for _ in range(3)]
    for group, name in zip(groups, ["open", "closed", "empty"], strict=True):
        group.group_id = name
    groups[1] = message(
        APIS[key].response, version, named_in_answers(key), iter_names(["denied"])
    ).groups[0]
    groups[1].group_id = "closed"
    groups[2] = type(groups[2])(group_id="empty", error_code=ErrorCode.GROUP_ID_NOT_FOUND)
    response.groups = groups
    return response


def iter_names(names: Sequence[str]) -> Callable[[], Sequence[str]]:
    return lambda: names


DESCRIBED = [
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 0),
    (ApiKey.CONSUMER_GROUP_DESCRIBE, 1),
    (ApiKey.SHARE_GROUP_DESCRIBE, 1),
    (ApiKey.STREAMS_GROUP_DESCRIBE, 0),
]


@pytest.mark.parametrize(("key", "version"), DESCRIBED)
@pytest.mark.parametrize("wanted", [True, False])
def test_a_group_with_a_topic_that_may_not_be_described_is_refused(
    key: int, version: int, wanted: bool
) -> None:
    request = request_for(key, version, ["open", "closed", "empty"])
    request.include_authorized_operations = wanted
    noted = Asked()
    rights = rights_of(key, version, describe_only("allowed", "open"), noted)
    seen = show(request, described(key, version), rights, Topics(NAMES))
    assert [(group.group_id, group.error_code) for group in seen.groups] == [
        ("open", 0),
        ("closed", ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ("empty", ErrorCode.GROUP_ID_NOT_FOUND),
    ]
    assert tells_of(seen, NAMES) == {"allowed"}
    assert seen.groups[1].error_message
    assert not seen.groups[1].members
    operations = [group.authorized_operations for group in seen.groups]
    first = DESCRIBES if wanted else UNKNOWN_OPERATIONS
    assert operations == [first, UNKNOWN_OPERATIONS, UNKNOWN_OPERATIONS]
    assert (AclOperation.DESCRIBE, "denied") in noted.logged


PLACES = [
    (key, version, path)
    for key, version in DESCRIBED
    for line in SHOWN[key]
    if isinstance(line, AllOrRefused)
    for path in line.paths
]


@pytest.mark.parametrize(("key", "version", "path"), PLACES)
def test_a_group_is_refused_for_a_topic_wherever_it_stands(
    key: int, version: int, path: str
) -> None:
    named = [f"groups.{field}" for field in fields_of(path)]
    response = message(APIS[key].response, version, named, lambda: ["denied"])
    response.groups[0].group_id = "open"
    seen = shown(key, version, request_for(key, version, ["open"]), response, to("open"))
    assert [group.error_code for group in seen.groups] == [ErrorCode.TOPIC_AUTHORIZATION_FAILED]
    assert not tells_of(seen, NAMES)


@pytest.mark.parametrize(("key", "version"), DESCRIBED[:3])
def test_a_topic_that_a_member_only_subscribes_to_is_left_out(key: int, version: int) -> None:
    request, response = request_for(key, version, ["open"]), described(key, version)
    response.groups[0].members[0].subscribed_topic_names = ["allowed", "denied"]
    seen = shown(key, version, request, response, describe_only("allowed"))
    [group] = seen.groups
    assert group.members[0].subscribed_topic_names == ["allowed"]


def test_what_members_of_a_classic_group_say_is_shown_with_the_group() -> None:
    key = ApiKey.DESCRIBE_GROUPS
    response = response_of(key, 5, ["asked"])
    response.groups[0].members[0].member_metadata = b"denied"
    response.groups[0].members[0].member_assignment = b"denied"
    seen = shown(key, 5, request_for(key, 5, ["asked"]), response, to("asked"))
    assert tells_of(seen, NAMES) == {"asked", "denied"}


def test_authorized_operations_on_a_classic_group_are_those_of_the_session() -> None:
    key = ApiKey.DESCRIBE_GROUPS
    request, response = request_for(key, 5, NAMES), response_of(key, 5, NAMES)
    request.include_authorized_operations = True
    response.groups[1].error_code = ErrorCode.GROUP_ID_NOT_FOUND
    for group in response.groups:
        group.authorized_operations = 0xFFFF
    seen = shown(key, 5, request, response, describe_only("asked"))
    operations = [group.authorized_operations for group in seen.groups]
    assert operations == [DESCRIBES, UNKNOWN_OPERATIONS, 0]


def test_topics_of_a_transaction_need_describe_and_denials_are_logged() -> None:
    key = ApiKey.DESCRIBE_TRANSACTIONS
    noted = Asked()
    rights = rights_of(key, 0, describe_only("allowed"), noted)
    request, response = request_for(key, 0, ["asked"]), response_of(key, 0, NAMES)
    [state] = show(request, response, rights, Topics(())).transaction_states
    assert [topic.topic for topic in state.topics] == ["allowed"]
    assert noted.logged == [(AclOperation.DESCRIBE, "asked"), (AclOperation.DESCRIBE, "denied")]


@pytest.mark.parametrize(("key", "logs"), [(ApiKey.LIST_GROUPS, 0), (ApiKey.LIST_TRANSACTIONS, 2)])
def test_a_list_leaves_out_what_may_not_be_described_and_logs_as_kafka(key: int, logs: int) -> None:
    noted = Asked()
    rights = rights_of(key, 1, describe_only("allowed"), noted)
    response = response_of(key, 1, NAMES)
    seen = show(request_for(key, 1, []), response, rights, Topics(()))
    assert tells_of(seen, NAMES) == {"allowed"}
    assert len(noted.logged) == logs


def test_who_may_delete_all_topics_is_told_the_name_of_a_deleted_one() -> None:
    key = ApiKey.DELETE_TOPICS
    request, response = request_for(key, 6, ["asked"]), response_of(key, 6, ["asked"])
    request.topics[0].name = None
    seen = shown(key, 6, request, response, may(AclOperation.DELETE, CLUSTER_NAME))
    assert [topic.name for topic in seen.responses] == ["asked"]


def test_a_follower_goes_on_with_a_session_without_the_right_to_read() -> None:
    request, response = request_for(ApiKey.FETCH, 13, []), response_of(ApiKey.FETCH, 13, NAMES)
    request.session_epoch, request.replica_id = 1, 1
    seen = shown(ApiKey.FETCH, 13, request, response, to())
    assert not any(part.error_code for topic in seen.responses for part in topic.partitions)


@pytest.mark.parametrize("allowed", [NAMES, NAMES[:1], []])
def test_what_a_session_is_refused_is_told_beside_what_it_goes_on_with(allowed: list[str]) -> None:
    key, version = ApiKey.FETCH, 12
    request = request_for(key, version, NAMES)
    request.session_epoch, request.replica_id = 1, -1
    asked = [topic.topic for topic in request.topics]
    topics: Any = Topics(NAMES)
    rights = rights_of(key, version, read_only(*allowed))
    verdict = check_fetch(request, rights, topics)
    assert [topic.topic for topic in verdict.request.topics] == [
        name for name in asked if name in allowed
    ]
    told = verdict.complete(FetchResponse())
    assert {
        topic.topic: [part.error_code for part in topic.partitions] for topic in told.responses
    } == {
        topic.topic: [ErrorCode.TOPIC_AUTHORIZATION_FAILED] * len(topic.partitions)
        for topic in request.topics
        if topic.topic not in allowed
    }
    # A session that is over has nothing else to tell.
    ended = FetchResponse(error_code=ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
    assert verdict.complete(ended).responses == ended.responses


def test_who_may_describe_the_cluster_sees_all_groups() -> None:
    key = ApiKey.LIST_GROUPS
    response = response_of(key, 5, NAMES)
    seen = shown(key, 5, request_for(key, 5, []), response, describe_only(CLUSTER_NAME))
    assert [group.group_id for group in seen.groups] == NAMES


@pytest.mark.parametrize(
    ("key", "version"), [(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1), (ApiKey.SHARE_GROUP_HEARTBEAT, 1)]
)
def test_a_member_is_not_assigned_what_it_may_not_describe(key: int, version: int) -> None:
    response = response_of(key, version, NAMES)
    assert unnamed(key, response) == {id_of(name) for name in NAMES}
    seen = shown(key, version, request_for(key, version, []), response, describe_only("allowed"))
    [topic] = seen.assignment.topic_partitions
    assert topic.topic_id == id_of("allowed")
    response.assignment = None
    assert not unnamed(key, response)
    assert shown(key, version, None, response, to()).assignment is None


def test_a_configuration_that_was_asked_for_does_not_show_another_of_its_name() -> None:
    key = ApiKey.DESCRIBE_CONFIGS
    request, response = request_for(key, 4, ["asked"]), response_of(key, 4, ["asked", "asked"])
    request.resources[0].resource_type, response.results[0].resource_type = 2, 2
    response.results[1].resource_type = 32
    seen = shown(key, 4, request, response, to("asked"))
    assert [result.resource_type for result in seen.results] == [2]


def test_values_of_sensitive_configurations_are_null() -> None:
    key = ApiKey.DESCRIBE_CONFIGS
    request, response = request_for(key, 4, ["asked"]), response_of(key, 4, ["asked"])
    [result] = response.results
    result.configs = [
        DescribeConfigsResourceResult(
            name, "value", is_sensitive=hidden, synonyms=[DescribeConfigsSynonym(name, "older")]
        )
        for name, hidden in (("plain", False), ("secret", True))
    ]
    plain, secret = shown(key, 4, request, response, to("asked")).results[0].configs
    assert (plain.value, plain.synonyms[0].value) == ("value", "older")
    assert (secret.value, secret.synonyms[0].value) == (None, None)


@pytest.mark.parametrize("may_describe", [True, False])
@pytest.mark.parametrize(("key", "version"), [(ApiKey.METADATA, 8), (ApiKey.DESCRIBE_CLUSTER, 1)])
def test_authorized_operations_on_the_cluster_are_those_of_the_session(
    key: int, version: int, may_describe: bool
) -> None:
    request = request_for(key, version, [])
    rights = describe_only(CLUSTER_NAME) if may_describe else to()
    response = APIS[key].response(cluster_authorized_operations=0xFFFF)
    seen = shown(key, version, request, response, rights)
    assert seen.cluster_authorized_operations == UNKNOWN_OPERATIONS
    request.include_cluster_authorized_operations = True
    seen = shown(key, version, request, response, rights)
    assert seen.cluster_authorized_operations == (DESCRIBES if may_describe else 0)
    response.error_code = ErrorCode.INVALID_REQUEST
    seen = shown(key, version, request, response, rights)
    assert seen.cluster_authorized_operations == UNKNOWN_OPERATIONS


def test_authorized_operations_on_topics_are_those_of_the_session() -> None:
    request, response = request_for(3, 12, ["asked", "denied"]), response_of(3, 12, NAMES)
    request.include_topic_authorized_operations = True
    # An id that no topic has.
    response.topics[2].name = None
    seen = shown(ApiKey.METADATA, 12, request, response, describe_only("asked"))
    operations = [topic.topic_authorized_operations for topic in seen.topics]
    assert operations == [DESCRIBES, UNKNOWN_OPERATIONS]


OWN = ("User", "alice")
OTHER = ("User", "bob")
TOKENS = [
    DescribedDelegationToken(*OWN, *OTHER, token_id="owned"),
    DescribedDelegationToken(*OTHER, *OWN, token_id="requested"),
    DescribedDelegationToken(
        *OTHER, *OTHER, token_id="renewed", renewers=[DescribedDelegationTokenRenewer(*OWN)]
    ),
    DescribedDelegationToken(*OTHER, *OTHER, token_id="bobs", hmac=b"secret"),
    DescribedDelegationToken("User", "carol", *OTHER, token_id="carols", hmac=b"secret"),
]


@pytest.mark.parametrize(
    ("allows", "expected"),
    [
        (to(), []),
        (to("bobs"), ["bobs"]),
        (to("User:carol"), ["carols"]),
        (to("User:bob"), ["bobs"]),
    ],
)
def test_tokens_of_others_need_a_right(allows: Rights, expected: list[str]) -> None:
    key = ApiKey.DESCRIBE_DELEGATION_TOKEN
    response = APIS[key].response(tokens=TOKENS)
    seen = shown(key, 3, APIS[key].request(owners=None), response, allows)
    assert [token.token_id for token in seen.tokens] == ["owned", "requested", "renewed", *expected]


def test_tokens_are_those_of_the_owners_that_were_asked_for() -> None:
    key = ApiKey.DESCRIBE_DELEGATION_TOKEN
    for owners, expected in (
        ([], []),
        ([("User", "carol")], ["carols"]),
        ([OWN], ["owned", "requested", "renewed"]),
    ):
        request = APIS[key].request([DescribeDelegationTokenOwner(*owner) for owner in owners])
        response = APIS[key].response(tokens=TOKENS)
        seen = shown(key, 3, request, response, to("User:bob", "User:carol"))
        assert [token.token_id for token in seen.tokens] == expected


def test_tagged_fields_that_nobody_declared_are_dropped() -> None:
    response = response_of(ApiKey.METADATA, 12, ["asked"])
    response.unknown_tags = response.topics[0].unknown_tags = ((99, b"denied"),)
    seen = shown(ApiKey.METADATA, 12, request_for(3, 12, ["asked"]), response, to("asked"))
    assert tells_of(seen, NAMES) == {"asked"}


def test_only_ids_without_a_name_that_need_a_right_must_be_resolved() -> None:
    assert unnamed(ApiKey.FETCH, response_of(ApiKey.FETCH, 13, NAMES)) == set(map(id_of, NAMES))
    assert not unnamed(ApiKey.FETCH, response_of(ApiKey.FETCH, 12, NAMES))
    assert not unnamed(ApiKey.METADATA, response_of(ApiKey.METADATA, 12, NAMES))
    assert not unnamed(ApiKey.PRODUCE, response_of(ApiKey.PRODUCE, 13, NAMES))
    group = response_of(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, ["asked"])
    for topic in group.groups[0].members[0].assignment.topic_partitions:
        topic.topic_name = ""
    assert unnamed(ApiKey.CONSUMER_GROUP_DESCRIBE, group) == {id_of("asked")}


def test_what_answers_show_is_told_in_plain_words() -> None:
    assert describe(ApiKey.METADATA) == [
        "Topics that were not asked for are left out.",
        "Where all are asked for, topics without DESCRIBE are left out.",
        "Authorized operations on the TOPIC are the session's own.",
        "Authorized operations on the CLUSTER are the session's own; none without DESCRIBE.",
        "Tells addresses of nodes.",
    ]
    for key in SHOWN:
        words = describe(key)
        assert all(sentence[0].isupper() and sentence.endswith(".") for sentence in words)
        assert bool(words) == bool(SHOWN[key])
