"""Every need of the table is asked for: a change of any one changes an answer or a question.

For each need of each row, in each version and profile, its operation or its resource type is
changed, it is dropped, or what makes it moot or not apply is: then some request must be answered
otherwise, or the authorizer asked otherwise, than with the table as it is.
"""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from aclbroker.acl.authorizer import Decision, RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.credentials import Credentials, TokenSettings, load_credentials
from aclbroker.broker.gate.engine import check, require_enforceable
from aclbroker.broker.gate.need import Each, Keep, Need, Profile, Row, Whole
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.requests import filled, filled_answer
from tests.gate.rights import (
    ByRule,
    Rights,
    everything,
    handled,
    names_that_begin_with,
    nothing,
    services,
)

NAMES = ["may-1", "not-1"]
CATALOG = Catalog(dict.fromkeys(NAMES, 1), NAMES)
AUDIT = Audit(load(), "cluster", configure(stream=io.StringIO()))
RIGHTS: list[Rights] = [everything, nothing, names_that_begin_with("may")]

# Whoever coordinates groups asks for these: a standalone broker does not, nor does it make topics.
ASKED_BY_A_COORDINATOR = {
    (ApiKey.STREAMS_GROUP_HEARTBEAT, "create internal topics"),
}

# A record batch that is transactional, and one that is idempotent alone: what the gate looks at.
TRANSACTIONAL = bytes(16) + b"\2" + bytes(4) + b"\0\x10" + bytes(20) + bytes(8) + bytes(10)
IDEMPOTENT = bytes(16) + b"\2" + bytes(4) + b"\0\0" + bytes(20) + bytes(8) + bytes(10)


class Asking(ByRule):
    """Takes note of what it is asked."""

    def __init__(self, rights: Rights) -> None:
        super().__init__(rights)
        self.questions: list[Any] = []

    def authorize(
        self, context: Any, operation: AclOperation, resource_type: ResourceType, names: Any
    ) -> list[Decision]:
        self.questions.append((operation, resource_type, tuple(names)))
        return super().authorize(context, operation, resource_type, names)

    def authorize_by_resource_type(
        self, context: Any, operation: AclOperation, resource_type: ResourceType
    ) -> Decision:
        self.questions.append((operation, resource_type))
        return super().authorize_by_resource_type(context, operation, resource_type)


@pytest.fixture
async def credentials() -> Any:
    store = MemoryStore()
    await store.open()
    kept = await load_credentials(store, TokenSettings("secret", 10**9, 10**9), 10**9)
    assert kept.tokens is not None
    await kept.tokens.create("User:bob", "User:bob", [], -1)
    yield kept
    await kept.close()


def requests(key: int, version: int) -> Iterator[Any]:
    """Yield requests that between them meet every condition of the key's row."""
    for change in (lambda request: None, *VARIANTS.get(key, ())):
        request = filled(key, NAMES)
        for resource in getattr(request, "resources", ()):
            resource.resource_type = 2
        for renewer in getattr(request, "renewers", ()):
            renewer.principal_type = "User"
        change(request)
        try:
            sent = encode(request, version)
        except ValueError:
            continue  # the version has no null there
        arrived = decode(APIS[key].request, version, sent)
        _name_by_id(arrived, by_id=key != ApiKey.METADATA)
        yield arrived


def _name_by_id(item: Any, *, by_id: bool) -> None:
    for array in (getattr(item, field.name) for field in dataclasses.fields(item)):
        for position, entry in enumerate(array if isinstance(array, list | tuple) else ()):
            is_entry = dataclasses.is_dataclass(entry)
            if is_entry:
                name = getattr(entry, "name", getattr(entry, "topic", ""))
                if by_id and not name and getattr(entry, "topic_id", None) == ZERO_UUID:
                    entry.topic_id = CATALOG.id_of(NAMES[position])
                _name_by_id(entry, by_id=by_id)


def _of_type(resource_type: int, request: Any) -> None:
    for resource in request.resources:
        resource.resource_type = resource_type
        if resource_type == 4:
            resource.resource_name = ""


def _records(batch: bytes, request: Any) -> None:
    for topic in request.topic_data:
        for partition in topic.partition_data:
            partition.records = batch


def _set(request: Any, **values: Any) -> None:
    for name, value in values.items():
        setattr(request, name, value)


def _fetcher(replica_id: int, request: Any) -> None:
    request.replica_id = request.replica_state.replica_id = replica_id


def _without_names(request: Any) -> None:
    for topic in request.topics:
        topic.name = None


def _of_all(request: Any) -> None:
    for group in getattr(request, "groups", ()):
        group.topics = None
    if not hasattr(request, "groups") or hasattr(request, "group_id"):
        request.topics = None


def _missing(create: bool, request: Any) -> None:
    request.topics = [
        dataclasses.replace(topic, name=f"{topic.name}-x") for topic in request.topics
    ]
    request.allow_auto_topic_creation = create


CONFIG_TYPES: list[Callable[[Any], None]] = [partial(_of_type, kind) for kind in (2, 4, 32)]
COORDINATORS: list[Callable[[Any], None]] = [
    partial(_set, key_type=0),
    partial(_set, key_type=1),
    partial(_set, key_type=2),
]
VARIANTS: dict[int, list[Callable[[Any], None]]] = {
    ApiKey.PRODUCE: [partial(_records, TRANSACTIONAL), partial(_records, IDEMPOTENT)],
    ApiKey.FETCH: [partial(_fetcher, -1), partial(_fetcher, 1)],
    ApiKey.METADATA: [
        partial(_missing, True),
        partial(_missing, False),
        partial(_set, topics=None),
        partial(_set, topics=[]),
        partial(_set, include_cluster_authorized_operations=True),
    ],
    ApiKey.OFFSET_FETCH: [_of_all],
    ApiKey.FIND_COORDINATOR: COORDINATORS,
    ApiKey.DELETE_TOPICS: [_without_names],
    ApiKey.CREATE_TOPICS: [partial(_set, validate_only=True)],
    ApiKey.INIT_PRODUCER_ID: [partial(_set, transactional_id=None)],
    ApiKey.DESCRIBE_CONFIGS: CONFIG_TYPES,
    ApiKey.ALTER_CONFIGS: CONFIG_TYPES,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: CONFIG_TYPES,
    ApiKey.DESCRIBE_CLUSTER: [
        partial(_set, include_cluster_authorized_operations=True, endpoint_type=1)
    ],
    ApiKey.DESCRIBE_DELEGATION_TOKEN: [partial(_set, owners=None)],
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: [
        partial(_set, topics=[], cursor=None),
        partial(_set, topics=[]),
        partial(_set, cursor=None),
    ],
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: [_of_all],
}


def mutants(row: Row, version: int) -> Iterator[tuple[str, Row]]:
    """Yield the row with one thing changed, and what that is, for its needs in a version."""
    for position, need in enumerate(row.needs):
        if version not in need.versions or (row.key, need.name) in ASKED_BY_A_COORDINATOR:
            continue
        what = f"{type(need).__name__} {need.operation.name} {need.name}".strip()
        for how, changed in _changes(need):
            needs = (*row.needs[:position], *changed, *row.needs[position + 1 :])
            yield f"{what}: {how}", dataclasses.replace(row, needs=needs)


def _changes(need: Need) -> Iterator[tuple[str, tuple[Need, ...]]]:
    others = [AclOperation.CLUSTER_ACTION, AclOperation.CREATE_TOKENS]
    operation = next(each for each in others if each is not need.operation)
    yield "another operation", (dataclasses.replace(need, operation=operation),)
    yield "another type", (_of_another_type(need),)
    yield "dropped", ()
    if need.unless is not None:
        yield "never moot", (dataclasses.replace(need, unless=None),)
    if need.when is not None:
        yield "always", (dataclasses.replace(need, when=None),)
        yield "never", (dataclasses.replace(need, when=lambda _request: False),)
    if isinstance(need, Whole) and need.code is not None:
        yield "the type's own code", (dataclasses.replace(need, code=None),)
    if isinstance(need, Each) and need.others is not None:
        yield "not all or nothing", (dataclasses.replace(need, others=None),)


def _of_another_type(need: Need) -> Need:
    other = {ResourceType.TOPIC: ResourceType.GROUP}.get(need.types[0], ResourceType.TOPIC)

    def changed(target: Any) -> Any:
        return (other, target[1]) if isinstance(target, tuple) else target

    types = tuple(other for _ in need.types)
    if isinstance(need, Keep):
        return dataclasses.replace(need, types=types)
    if isinstance(need, Whole):
        found = need.find
        return dataclasses.replace(
            need, types=types, find=lambda request: [changed(each) for each in found(request)]
        )
    assert isinstance(need, Each)
    find = need.find
    return dataclasses.replace(need, types=types, find=lambda *given: changed(find(*given)))


async def trace(
    row: Row, version: int, request: Any, rights: Rights, profile: Profile, kept: Credentials
) -> Any:
    """Return how a request is answered, and what the authorizer was asked for it."""
    authorizer = Asking(rights)
    parts = dataclasses.replace(
        services(rights, CATALOG, AUDIT), authorizer=authorizer, profile=profile, credentials=kept
    )
    session = Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    context = RequestContext(session, row.key, version, "test", 1)
    asked = parts.rights(row, context)
    try:
        verdict = check(request, asked, CATALOG)
        if verdict.request is None:
            return verdict.response, authorizer.questions
        filtered = verdict.complete(filled_answer(row.key, NAMES, CATALOG))
        if row.key == ApiKey.FETCH:
            need = asked.declared("session")
            if need.when is None or need.when(request):
                asked.allowed("session", NAMES)  # as a cluster in memory does for fetch sessions
        if row.key == ApiKey.SHARE_FETCH:
            # The same for share sessions, and for the group, after each wait.
            asked.allowed("member", (request.group_id,))
            asked.allowed("session", NAMES)
        if row.key in TOLD_BY_A_COORDINATOR:
            asked.visible("show", NAMES)  # as a cluster in memory does for assignments
        if row.key in CHANGING:
            return verdict.request, filtered, authorizer.questions
        response = await handled(parts, asked, verdict.request)
        response = verdict.complete(response)
    except KeyError as error:
        return repr(error)
    return verdict.request, without_chance(response), filtered, authorizer.questions


TOLD_BY_A_COORDINATOR = {
    ApiKey.SYNC_GROUP,
    ApiKey.CONSUMER_GROUP_HEARTBEAT,
    ApiKey.SHARE_GROUP_HEARTBEAT,
}

# What these handlers do is not repeatable, or needs a store; what is asked is asked before.
CHANGING = {
    ApiKey.FETCH,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_ACLS,
    ApiKey.CREATE_ACLS,
    ApiKey.DELETE_ACLS,
}


def without_chance(response: Any) -> Any:
    """Return an answer without the ids that a trial creation of topics draws."""
    for topic in getattr(response, "topics", ()):
        if hasattr(topic, "num_partitions"):
            topic.topic_id = ZERO_UUID
    return response


@pytest.mark.parametrize("key", [pytest.param(key, id=APIS[key].name) for key in GATE])
async def test_no_change_of_a_need_goes_unnoticed(key: int, credentials: Credentials) -> None:
    survivors = set()
    for version in APIS[key].versions:
        row = GATE[key]
        for profile in Profile:
            for what, mutant in mutants(row, version):
                if mutant.applying(version, profile) == row.applying(version, profile):
                    continue
                if not await _is_noticed(row, mutant, version, profile, credentials):
                    survivors.add(f"v{version} {profile.value}: {what}")
    assert not survivors


async def _is_noticed(
    row: Row, mutant: Row, version: int, profile: Profile, kept: Credentials
) -> bool:
    for rights in RIGHTS:
        for request in requests(row.key, version):
            before = await trace(row, version, request, rights, profile, kept)
            if before != await trace(mutant, version, request, rights, profile, kept):
                return True
    return False


def test_a_row_that_cannot_be_enforced_is_refused_when_it_is_declared() -> None:
    heartbeat = GATE[ApiKey.HEARTBEAT]
    each_of_nothing = Each(
        operation=AclOperation.READ,
        types=(ResourceType.TOPIC,),
        find=lambda *_: (ResourceType.TOPIC, "orders"),
    )
    with pytest.raises(ValueError, match="its answer has no entries"):
        require_enforceable(dataclasses.replace(heartbeat, needs=(each_of_nothing,)))
    kept_nowhere = Keep(
        operation=AclOperation.READ, types=(ResourceType.TOPIC,), shown="throttle_time_ms"
    )
    with pytest.raises(ValueError, match=r"not array\.field"):
        require_enforceable(dataclasses.replace(heartbeat, needs=(kept_nowhere,)))
