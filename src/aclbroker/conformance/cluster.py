"""What the super user does: prepare topics, groups and ACLs for the requests, and clean up."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.blocking import BlockingClient
from aclbroker.conformance.resources import (
    ABSENT_GROUPS,
    DELETED_TOPIC,
    GROUPS,
    PREFIX,
    SHARE_GROUPS,
    TOPICS,
    TRANSACTIONS,
    TopicIds,
)
from aclbroker.protocol.messages import (
    APIS,
    ApiKey,
    alter_share_group_offsets,
    api_versions,
    create_acls,
    create_topics,
    delete_acls,
    delete_groups,
    delete_topics,
    describe_acls,
    find_coordinator,
    init_producer_id,
    list_groups,
    metadata,
    offset_commit,
    share_group_heartbeat,
)
from aclbroker.protocol.primitives import ZERO_UUID

READY_WITHIN: Final = 30.0
_IMPATIENCE: Final = 1.0
"""Seconds to wait for the coordinator if all groups exist already."""

_GROUP_KEY, _TRANSACTION_KEY = 0, 1
_TRY_AGAIN: Final = (14, 15, 16)
"""Error codes: the coordinator is loading, is not available, or is another broker."""
_JOINING, _LEAVING = 0, -1
"""The epochs with which a member joins and leaves a share group (KIP-932)."""
_MEMBER: Final = "AAAAAAAAAAAAAAAAAAAAAg"
_ANY, _LITERAL, _DELEGATION_TOKEN, _DESCRIBE, _ALLOW = 1, 3, 6, 8, 3


_WANTED_TOPICS: Final = (*TOPICS, DELETED_TOPIC)

_Found = TypeVar("_Found")


class SuiteError(Exception):
    """The suite cannot be run on this broker; the message says why."""


class Cluster:
    """A cluster, used with the rights of its super user."""

    def __init__(self, client: BlockingClient) -> None:
        self._client = client
        self._fences = 0
        answer = client.ask(ApiKey.API_VERSIONS, 0, api_versions.ApiVersionsRequest())
        self.offered = {
            ApiKey(offer.api_key): range(offer.min_version, offer.max_version + 1)
            for offer in answer.api_keys
            if offer.api_key in APIS
        }

    def ask(self, key: ApiKey, message: Any, version: int) -> Any:
        """Send a request and return its answer.

        The version is this one, or the highest below it that the broker offers.
        """
        offered = self.offered.get(key)
        if not offered:
            raise SuiteError(f"the broker does not offer {key.name}")
        return self._client.ask(key, min(version, offered[-1]), message)

    def prepare(self) -> TopicIds:
        """Create the suite's topics, groups and transactional ids; return the topics' ids.

        Raises `SuiteError` if the topics cannot be created. Groups and transactional ids that the
        broker cannot have are missing from its lists for every role.
        """
        # A run that was interrupted may have left some.
        self.delete_topics(set(self.topics()) - set(_WANTED_TOPICS))
        self._delete_groups(ABSENT_GROUPS)
        missing = sorted(set(_WANTED_TOPICS) - set(self.topics()))
        if missing:
            self._create_topics(missing)
        ids = _wait_for(self._exactly_the_topics)
        if ids is None:
            absent = ", ".join(sorted(set(_WANTED_TOPICS) ^ set(self.topics())))
            raise SuiteError(
                f"these topics are not there, or not gone, after {READY_WITHIN:g} s: {absent}"
            )
        self._prepare_groups()
        return TopicIds(ids)

    def _prepare_groups(self) -> None:
        """Create the groups and transactional ids, if the broker has a coordinator."""
        missing = set(GROUPS) - self._groups()
        patience = READY_WITHIN if missing else _IMPATIENCE
        families: list[tuple[Sequence[str], Callable[[str], bool | None]]] = [
            (GROUPS, self._commit)
        ]
        if ApiKey.ALTER_SHARE_GROUP_OFFSETS in self.offered:
            families.append((SHARE_GROUPS, self._prepare_share_group))
        families.append((TRANSACTIONS, self._init_transaction))
        for names, prepare in families:
            for name in names:
                if _wait_for(partial(prepare, name), patience) is None:
                    break

    def topics(self) -> dict[str, bytes]:
        """Return the topics of the suite that exist, with their ids."""
        request = metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False)
        answer = self.ask(ApiKey.METADATA, request, 12)
        return {
            topic.name: topic.topic_id for topic in answer.topics if topic.name.startswith(PREFIX)
        }

    def replace_acls(self, acls: Sequence[AclBinding]) -> None:
        """Replace all ACLs of the cluster by these, and wait until they are in force."""
        self._delete_acls()
        if acls:
            self._create_acls([create_acls.AclCreation(*acl) for acl in acls])
        self.settle()

    def clean_up(self) -> None:
        """Delete the suite's groups and topics and all ACLs."""
        # Groups go first, since Kafka takes half a minute to delete a share group whose topics are
        # gone. The absent groups are included, since AlterShareGroupOffsets creates one of them.
        self._delete_groups((*GROUPS, *SHARE_GROUPS, *ABSENT_GROUPS))
        self.delete_topics(self.topics())
        self._delete_acls()

    def delete_topics(self, names: Iterable[str]) -> None:
        """Delete topics of these names."""
        if ApiKey.DELETE_TOPICS in self.offered and (doomed := sorted(names)):
            states = [delete_topics.DeleteTopicState(name, ZERO_UUID) for name in doomed]
            request = delete_topics.DeleteTopicsRequest(states, doomed, timeout_ms=10_000)
            self.ask(ApiKey.DELETE_TOPICS, request, 6)

    def _delete_groups(self, names: Sequence[str]) -> None:
        if ApiKey.DELETE_GROUPS in self.offered:
            self.ask(ApiKey.DELETE_GROUPS, delete_groups.DeleteGroupsRequest(names), 2)

    def _delete_acls(self) -> None:
        everything = delete_acls.DeleteAclsFilter(_ANY, None, _ANY, None, None, _ANY, _ANY)
        request = delete_acls.DeleteAclsRequest([everything])
        for result in self.ask(ApiKey.DELETE_ACLS, request, 2).filter_results:
            if result.error_code:
                raise SuiteError(
                    "the ACLs of the cluster cannot be deleted: "
                    f"{result.error_code}: {result.error_message}"
                )

    def _create_topics(self, names: Iterable[str]) -> None:
        request = create_topics.CreateTopicsRequest(
            topics=[
                create_topics.CreatableTopic(name, num_partitions=1, replication_factor=1)
                for name in names
            ],
            timeout_ms=10_000,
        )
        for topic in self.ask(ApiKey.CREATE_TOPICS, request, 5).topics:
            if topic.error_code:
                raise SuiteError(
                    f"the topic {topic.name} is not there, and to create it is refused with "
                    f"{topic.error_code}: {topic.error_message} (For an aclbroker, the command "
                    "aclbroker conformance catalog prints the settings that it needs.)"
                )

    def _exactly_the_topics(self) -> dict[str, bytes] | None:
        ids = self.topics()
        return ids if ids.keys() == set(_WANTED_TOPICS) else None

    def _groups(self) -> set[str]:
        answer = self.ask(ApiKey.LIST_GROUPS, list_groups.ListGroupsRequest(), 4)
        return {group.group_id for group in answer.groups}

    def _commit(self, group: str) -> bool | None:
        """Create a group by committing offsets of all topics; None if it must be repeated."""
        self._find(group, _GROUP_KEY)
        partition = offset_commit.OffsetCommitRequestPartition(0, 0, committed_metadata="")
        request = offset_commit.OffsetCommitRequest(
            group_id=group,
            generation_id_or_member_epoch=-1,
            retention_time_ms=-1,
            topics=[
                offset_commit.OffsetCommitRequestTopic(name, partitions=[partition])
                for name in TOPICS
            ],
        )
        answer = self.ask(ApiKey.OFFSET_COMMIT, request, 7)
        return None if answer.topics[0].partitions[0].error_code in _TRY_AGAIN else True

    def _prepare_share_group(self, group: str) -> bool | None:
        """Create a share group with offsets of all topics; return None if it must be repeated."""
        beat, alter = share_group_heartbeat, alter_share_group_offsets
        for epoch in (_JOINING, _LEAVING):
            joining = beat.ShareGroupHeartbeatRequest(group, _MEMBER, epoch, None, TOPICS[:1])
            self.ask(ApiKey.SHARE_GROUP_HEARTBEAT, joining, 1)
        partition = alter.AlterShareGroupOffsetsRequestPartition(0, 0)
        request = alter.AlterShareGroupOffsetsRequest(
            group, [alter.AlterShareGroupOffsetsRequestTopic(name, [partition]) for name in TOPICS]
        )
        answer = self.ask(ApiKey.ALTER_SHARE_GROUP_OFFSETS, request, 0)
        codes = {each.error_code for topic in answer.responses for each in topic.partitions}
        # Kafka's coordinator learns of new topics later than the broker does.
        return True if codes == {0} else None

    def _init_transaction(self, name: str) -> bool | None:
        self._find(name, _TRANSACTION_KEY)
        request = init_producer_id.InitProducerIdRequest(name, 10_000)
        answer = self.ask(ApiKey.INIT_PRODUCER_ID, request, 2)
        return None if answer.error_code in _TRY_AGAIN else True

    def _find(self, name: str, key_type: int) -> None:
        # Kafka creates the coordinators' internal topic when a coordinator is first looked up.
        request = find_coordinator.FindCoordinatorRequest(name, key_type)
        self.ask(ApiKey.FIND_COORDINATOR, request, 3)

    def _create_acls(self, creations: Sequence[create_acls.AclCreation]) -> None:
        request = create_acls.CreateAclsRequest(creations)
        for result in self.ask(ApiKey.CREATE_ACLS, request, 2).results:
            if result.error_code:
                raise SuiteError(f"an ACL was not created: {result.error_message}")

    def settle(self) -> None:
        """Wait until the last changes of ACLs are in force.

        A Kafka broker learns of ACLs from the metadata log, in order, and only after their creation
        has been answered. So one more ACL is created and waited for. This is done twice, since the
        broker shows the first one before the controller, too, decides by it.
        """
        for _ in range(2):
            self._fences += 1
            name = f"{PREFIX}fence-{self._fences}"
            fence = create_acls.AclCreation(
                _DELEGATION_TOKEN, name, _LITERAL, "User:nobody", "*", _DESCRIBE, _ALLOW
            )
            self._create_acls([fence])
            if _wait_for(partial(self._acls_of, name)) is None:
                raise SuiteError("an ACL that was created is not described")

    def _acls_of(self, name: str) -> Sequence[Any] | None:
        request = describe_acls.DescribeAclsRequest(_ANY, name, _ANY, None, None, _ANY, _ANY)
        found: Sequence[Any] = self.ask(ApiKey.DESCRIBE_ACLS, request, 2).resources
        return found or None


def _wait_for(look: Callable[[], _Found | None], seconds: float = READY_WITHIN) -> _Found | None:
    """Call ``look`` until it finds something and return that, or None if the seconds are over."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None and time.monotonic() < deadline:
        time.sleep(0.02)
    return found
