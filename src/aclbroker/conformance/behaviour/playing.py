"""Tells every story in every role to a broker, and records what it answers."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Collection, Iterator
from typing import Final

from aclbroker.broker.client.blocking import BlockingClient
from aclbroker.conformance.behaviour.roles import ROLES, Role
from aclbroker.conformance.behaviour.stories import STORIES
from aclbroker.conformance.behaviour.story import Scene, Story, Teller, told
from aclbroker.conformance.cluster import READY_WITHIN, Cluster, SuiteError
from aclbroker.conformance.outline import Outline
from aclbroker.conformance.recording import BEHAVIOUR, Recording, Step
from aclbroker.conformance.resources import PREFIX
from aclbroker.conformance.session import (
    ANSWERED_WITHIN,
    PREPARED_WITHIN,
    Target,
    logged_in,
)
from aclbroker.protocol.messages import (
    ApiKey,
    create_topics,
    describe_groups,
    describe_transactions,
    find_coordinator,
    init_producer_id,
    list_offsets,
)

_NEXT_TRY_SECONDS: Final = 0.05
_OF_SHARES: Final = 2
_WITH_SHARES: Final = 6
"""The version of FindCoordinator that finds share coordinators."""

_A_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAg"
_NOT_YET: Final = (14, 15, 16)
"""Error codes: a coordinator is loading, is not available, or is another broker."""


def record(
    target: Target,
    broker: str,
    progress: Callable[[str], None],
    keys: Collection[ApiKey],
    stories: Collection[Story] = STORIES,
) -> Recording:
    """Tell the stories and return what the broker answered to requests of some keys.

    ``broker`` names it in the recording. Deletes all ACLs of the cluster. ``progress`` is called
    with the name of each role as it begins. Raises `SuiteError`, `ClientError`, and `OSError`.
    """
    logged_in(target.user, ANSWERED_WITHIN).close()
    with logged_in(target.super_user, PREPARED_WITHIN) as session:
        stage = _Stage(target, session.client)
        answers: dict[Step, Outline] = {}
        try:
            stage.wait_for_coordinators()
            for role in ROLES:
                progress(role.name)
                answers.update(stage.played(role, stories))
        finally:
            stage.cluster.clean_up()
    kept = {step: answer for step, answer in answers.items() if step.key in keys}
    return Recording(broker, stage.cluster.offered, kept, BEHAVIOUR)


class _Stage:
    """A broker to which stories are told, one role after the other."""

    def __init__(self, target: Target, client: BlockingClient) -> None:
        self.cluster = Cluster(client)
        self._target = target
        self._client = client
        self._run = secrets.token_hex(3)
        self._count = 0

    def played(self, role: Role, stories: Collection[Story]) -> Iterator[tuple[Step, Outline]]:
        """Tell stories in a role; yield what was answered."""
        wanted = [story for story in stories if role.tells(story)]
        told_as = [(story, self._next_prefix()) for story in wanted]
        self._make_topics(told_as)
        ids = self.cluster.topics()
        # This also waits until the coordinators know the topics.
        self.cluster.replace_acls(role.acls(self._target.principal))
        scene = Scene(
            self.cluster.offered,
            role.oldest,
            role.name,
            lambda: logged_in(self._target.user, ANSWERED_WITHIN).client,
            self._client,
            self.cluster.settle,
        )
        for story, prefix in told_as:
            own = {name: ids[prefix + name] for name in story.topics}
            yield from told(Teller(scene, story, prefix, own), story).items()
        self.cluster.delete_topics(self.cluster.topics())

    def _next_prefix(self) -> str:
        self._count += 1
        # All have one length, since some answers tell how long names are.
        return f"{PREFIX}{self._run}-{self._count:04}-"

    def _make_topics(self, told_as: list[tuple[Story, str]]) -> None:
        wanted = {
            prefix + name: topic
            for story, prefix in told_as
            for name, topic in story.topics.items()
        }
        request = create_topics.CreateTopicsRequest(
            [
                create_topics.CreatableTopic(
                    name,
                    topic.partitions,
                    1,
                    configs=[
                        create_topics.CreatableTopicConfig(*each) for each in topic.settings.items()
                    ],
                )
                for name, topic in wanted.items()
            ],
            30_000,
        )
        for created in self.cluster.ask(ApiKey.CREATE_TOPICS, request, 7).topics:
            if created.error_code:
                raise SuiteError(
                    f"a topic cannot be created: {created.error_code}: {created.error_message}"
                )
        lasts = {name: topic.partitions - 1 for name, topic in wanted.items()}
        self._wait("topics", lambda: self._are_led(lasts))

    def _are_led(self, last_partitions: dict[str, int]) -> bool:
        request = list_offsets.ListOffsetsRequest(
            -1,
            topics=[
                list_offsets.ListOffsetsTopic(
                    name, [list_offsets.ListOffsetsPartition(index, timestamp=-1)]
                )
                for name, index in last_partitions.items()
            ],
        )
        answer = self.cluster.ask(ApiKey.LIST_OFFSETS, request, 7)
        return not any(each.partitions[0].error_code for each in answer.topics)

    def wait_for_coordinators(self) -> None:
        """Wait until groups and transactions can be used, which a Kafka has to prepare."""
        self._wait("coordinators", self._are_there)

    def _are_there(self) -> bool:
        name = f"{PREFIX}{self._run}"
        for kind in (0, 1):
            request = find_coordinator.FindCoordinatorRequest("", kind, [name])
            [found] = self.cluster.ask(ApiKey.FIND_COORDINATOR, request, 4).coordinators
            if found.error_code in _NOT_YET:
                return False
        if not self._shares():
            return False
        groups = describe_groups.DescribeGroupsRequest([name])
        [group] = self.cluster.ask(ApiKey.DESCRIBE_GROUPS, groups, 5).groups
        transactions = describe_transactions.DescribeTransactionsRequest([name])
        answer = self.cluster.ask(ApiKey.DESCRIBE_TRANSACTIONS, transactions, 0)
        producer = init_producer_id.InitProducerIdRequest(None, 60_000)
        codes = {
            group.error_code,
            *(each.error_code for each in answer.transaction_states),
            self.cluster.ask(ApiKey.INIT_PRODUCER_ID, producer, 4).error_code,
        }
        return not codes.intersection(_NOT_YET)

    def _shares(self) -> bool:
        """Tell whether share groups can be used, if the broker has any."""
        if _WITH_SHARES not in self.cluster.offered.get(ApiKey.FIND_COORDINATOR, ()):
            return True
        # A share coordinator is one of a partition of a topic, for a group.
        key = f"{PREFIX}{self._run}:{_A_TOPIC_ID}:0"
        request = find_coordinator.FindCoordinatorRequest("", _OF_SHARES, [key])
        found = self.cluster.ask(ApiKey.FIND_COORDINATOR, request, _WITH_SHARES).coordinators
        return not any(each.error_code in _NOT_YET for each in found)

    def _wait(self, what: str, is_so: Callable[[], bool]) -> None:
        until = time.monotonic() + READY_WITHIN
        while not is_so():
            if time.monotonic() > until:
                raise SuiteError(f"the suite's {what} are not there after {READY_WITHIN:g} s")
            time.sleep(_NEXT_TRY_SECONDS)
