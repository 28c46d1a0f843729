"""No handler works with an entry that its session may not see: d12 and d13 of docs/ARCHITECTURE.md.

The time that a handler takes must not depend on such entries. So the tests send every key with
requests for all entries. The cluster has topics, groups and transactional ids that are hidden from
the session.
"""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import AsyncIterator, Collection, Iterator
from typing import Any

import pytest

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.credentials import load_credentials
from aclbroker.broker.credentials.delegation_tokens import TokenInformation, TokenSettings
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.services import Answer, Services
from aclbroker.broker.memory.groups.classic_group import ClassicGroup
from aclbroker.broker.memory.groups.consumer import HeartbeatRequest
from aclbroker.broker.memory.groups.consumer_group import ConsumerGroup
from aclbroker.broker.memory.groups.offsets import NewOffset
from aclbroker.broker.memory.groups.share import ShareHeartbeatRequest
from aclbroker.broker.memory.groups.share_group import ShareGroup
from aclbroker.broker.memory.name_regex import NameRegex
from aclbroker.broker.memory.topics import Topic
from aclbroker.broker.memory.transaction import Transaction
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.protocol.compile import encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_delegation_token import DescribeDelegationTokenOwner
from tests.gate.requests import filled
from tests.gate.rights import ByRule, context, declared
from tests.handlers.memory_parts import ask, cluster_of, running

HIDDEN, SEEN = "hidden", "seen"
GROUPS = ("seen", "seen-consumer", "seen-share")
NAMED = {
    *(ApiKey.PRODUCE, ApiKey.FETCH, ApiKey.SHARE_FETCH, ApiKey.JOIN_GROUP, ApiKey.SYNC_GROUP),
    *(ApiKey.DELETE_TOPICS, ApiKey.END_TXN),
}
"""Keys without a test here: their answers are about the entries in the request alone.

They wait, or they change something. A deletion of a topic touches all groups, and the end of a
transaction touches all its partitions.
"""


def rights(_operation: AclOperation, kind: ResourceType, name: str | None) -> bool:
    """Allow every operation on names that begin with `SEEN`, and none on the cluster."""
    return kind is not ResourceType.CLUSTER and name is not None and name.startswith(SEEN)


@pytest.fixture
async def cluster() -> AsyncIterator[Services]:
    """A cluster in memory with entries of each kind, some visible and some hidden."""
    async for parts in running():
        topics, groups = cluster_of(parts).topics, cluster_of(parts).groups
        topics.groups = ("seen", "hidden-declared")
        for name in ("seen", "hidden-1", "hidden-2"):
            topics.create(name, 2)
        for name in ("seen", "hidden-group"):
            offsets = [NewOffset(topic, 0, 1) for topic in ("seen", "hidden-1")]
            groups.offsets.commit(name, offsets, member_id="", epoch=-1, version=8)
        for name in ("seen-consumer", "hidden-consumer"):
            groups.consumer_heartbeat(member_of(name), list)
        for name in ("seen-share", "hidden-share"):
            asked = ShareHeartbeatRequest(name, "m", 0, None, "c", "/h", ("seen", "hidden-1"))
            groups.share_heartbeat(asked)
        for name in ("seen", "hidden-id"):
            producer = cluster_of(parts).transactions.initialize(name, 60_000, None).producer
            cluster_of(parts).transactions.add(name, producer, [("seen", 0), ("hidden-1", 0)])
        yield dataclasses.replace(parts, authorizer=ByRule(rights))


def member_of(group_id: str) -> HeartbeatRequest:
    """Return the heartbeat of a member that subscribes to all topics by a regular expression."""
    more: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "regex": ".*", "owned": {}}
    return HeartbeatRequest(group_id, "m", 0, client_id="c", client_host="/h", **more)


def requests_of(key: int, version: int) -> Iterator[Any]:
    """Yield requests for all entries that a key can list, and requests for visible entries."""
    arrays = [field.name for field in dataclasses.fields(APIS[key].request)]
    named = filled(key, GROUPS)
    yield named
    for empty in (None, ()):
        request = dataclasses.replace(named)
        for name in arrays:
            if isinstance(getattr(request, name), list | tuple):
                setattr(request, name, empty)
            elif name == "cursor":
                request.cursor = None
        yield from _filtered(key, request)
    groups = getattr(named, "groups", None) or ()
    if any(hasattr(group, "topics") for group in groups):
        everything = [dataclasses.replace(group, topics=None) for group in groups]
        yield dataclasses.replace(named, groups=everything)


def _filtered(key: int, request: Any) -> Iterator[Any]:
    yield request
    if key == ApiKey.LIST_TRANSACTIONS:
        for pattern in (".*", "hidden-.*"):
            yield dataclasses.replace(request, transactional_id_pattern=pattern)
        yield dataclasses.replace(request, state_filters=["Ongoing"], duration_filter=1)
    if key == ApiKey.LIST_GROUPS:
        yield dataclasses.replace(request, states_filter=["Stable"], types_filter=["consumer"])
    if key == ApiKey.CONSUMER_GROUP_HEARTBEAT:
        for pattern in (".*", "hidden-.*"):
            more: dict[str, Any] = {"rebalance_timeout_ms": 60_000, "topic_partitions": []}
            more |= {"subscribed_topic_names": None, "subscribed_topic_regex": pattern}
            yield dataclasses.replace(
                request, group_id="seen-new", member_id="n", member_epoch=0, **more
            )
        yield dataclasses.replace(
            request, group_id="seen-consumer", member_id="m", member_epoch=2, **more
        )
    if key == ApiKey.SHARE_GROUP_HEARTBEAT:
        more = {"member_epoch": 2, "subscribed_topic_names": ["seen"], "rack_id": None}
        yield dataclasses.replace(request, group_id="seen-share", member_id="m", **more)


def traps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list that records each use of a hidden entry: of its fields, or of its name."""
    touched: list[str] = []

    def guard(cls: type, name_field: str) -> None:
        known: Any = cls.__getattribute__

        def trapped(self: Any, name: str) -> Any:
            if name != name_field and str(known(self, name_field)).startswith(HIDDEN):
                touched.append(f"{cls.__name__}.{name} of {known(self, name_field)}")
            return known(self, name)

        monkeypatch.setattr(cls, "__getattribute__", trapped)

    guard(Transaction, "transactional_id")
    guard(Topic, "name")
    for cls in (ClassicGroup, ConsumerGroup, ShareGroup):
        guard(cls, "group_id")
    matches = NameRegex.matches

    def matched(self: NameRegex, name: str) -> bool:
        if name.startswith(HIDDEN):
            touched.append(f"matches {name}")
        return matches(self, name)

    monkeypatch.setattr(NameRegex, "matches", matched)
    return touched


def watched(handler: Answer, answers: list[Any]) -> Answer:
    """Return a handler that appends its answers to ``answers`` before the gate completes them."""

    def answer(asked: Any, request: Any) -> Any:
        answers.append(handler(asked, request))
        return answers[-1]

    return answer


@pytest.mark.parametrize(
    "key", [pytest.param(key, id=APIS[key].name) for key in GATE if key not in NAMED]
)
async def test_a_handler_gets_no_entry_that_its_session_may_not_see(
    cluster: Services, key: int, monkeypatch: pytest.MonkeyPatch
):
    hidden_ids = [cluster_of(cluster).topics.id_of(name) for name in ("hidden-1", "hidden-2")]
    for backend in (declared(cluster_of(cluster).topics), cluster.backend):
        answers: list[Any] = []
        parts = dataclasses.replace(cluster, backend=backend)
        answer = parts.answer_to(key)
        assert answer is not None
        parts.answers[key] = watched(answer, answers)
        session = context(ApiKey(key), 0).session
        for version in {APIS[key].versions[0], APIS[key].versions[-1]}:
            for request in requests_of(key, version):
                try:
                    encode(request, version)
                except (TypeError, ValueError, AttributeError):
                    continue  # This version lacks a field of the request.
                with monkeypatch.context() as patched:
                    touched = traps(patched)
                    await ask(parts, session, ApiKey(key), version, request)
                assert touched == [], (version, request)
                for answer in answers:
                    if asyncio.iscoroutine(answer):
                        continue  # Only answers about ACLs wait for the store.
                    told = answer if isinstance(answer, bytes) else bytes(encode(answer, version))
                    for trace in (HIDDEN.encode(), *hidden_ids):
                        assert trace not in told, (version, answer)
                answers.clear()


async def test_a_heartbeat_for_anothers_member_tells_of_no_hidden_topic_in_any_version(
    cluster: Services,
):
    session = Session(("User:bob",), "127.0.0.1", "SASL_PLAINTEXT")
    seen = {cluster_of(cluster).topics.id_of("seen")}
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    told: set[bytes] = set()
    member = cluster_of(cluster).groups.consumer_group("seen-consumer").members["m"]
    for version in APIS[key].versions:
        assert len(member.assigned) > 2, "of hidden topics, too"
        fields = "seen-consumer", "m", member.epoch
        request = APIS[key].request(*fields, rebalance_timeout_ms=60_000)
        request.topic_partitions, request.subscribed_topic_names = [], ["seen"]
        answer = await ask(cluster, session, key, version, request)
        assert answer.error_code == 0, answer
        told |= {each.topic_id for each in answer.assignment.topic_partitions}
        cluster_of(cluster).groups.consumer_heartbeat(
            member_of("seen-consumer")._replace(member_id="m", epoch=0), list
        )
    assert told == seen


async def test_the_broker_shares_no_resolution_of_an_expression_beyond_the_rights_that_made_it(
    cluster: Services,
):
    session = Session(("User:bob",), "127.0.0.1", "SASL_PLAINTEXT")
    key = ApiKey.CONSUMER_GROUP_HEARTBEAT
    request = APIS[key].request("seen-consumer", "b", 0, rebalance_timeout_ms=60_000)
    request.topic_partitions, request.subscribed_topic_regex = [], ".*"
    request.subscribed_topic_names = None
    answer = await ask(cluster, session, key, 1, request)
    assert answer.error_code == 0, answer
    group = cluster_of(cluster).groups.consumer_group("seen-consumer")
    assert group.matched(group.members["b"]) == {"seen"}
    assert {"seen", "hidden-1", "hidden-2"} <= group.matched(group.members["m"])
    assert set(group.target["b"]) <= {cluster_of(cluster).topics.id_of("seen")}


async def test_tokens_are_compared_with_the_owners_of_a_request_only_if_they_may_be_seen(
    cluster: Services, monkeypatch: pytest.MonkeyPatch
):
    store = MemoryStore()
    await store.open()
    kept = await load_credentials(store, TokenSettings("secret", 10**9, 10**9), 10**9)
    assert kept.tokens is not None
    for user in ("User:bob", "User:carol"):
        await kept.tokens.create(user, user, [], -1)
    compared: list[tuple[str, set[str]]] = []
    concerns = TokenInformation.concerns

    def noted(self: TokenInformation, principals: Collection[str]) -> bool:
        compared.append((self.owner, set(principals)))
        return concerns(self, principals)

    monkeypatch.setattr(TokenInformation, "concerns", noted)
    key = ApiKey.DESCRIBE_DELEGATION_TOKEN
    request = APIS[key].request([DescribeDelegationTokenOwner("User", "carol")])
    session = Session(("User:bob",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    parts = dataclasses.replace(cluster, credentials=kept)
    answer = await ask(parts, session, key, 3, request)
    assert (answer.error_code, answer.tokens) == (0, [])
    asked = {owner for owner, principals in compared if principals == {"User:carol"}}
    assert asked == {"User:bob"}, "of carol's token nothing depends on whom the request names"
    await kept.close()
