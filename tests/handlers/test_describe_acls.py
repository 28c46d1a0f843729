"""DescribeAcls: lists the ACLs of that moment, in every version."""

from __future__ import annotations

import asyncio
import io
from collections.abc import Awaitable, Iterable
from dataclasses import replace

import pytest

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclBinding, AclFilter, AclOperation, AclPermission
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.backends.backend import Relayed
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.broker.handlers.acls import filter_of
from aclbroker.broker.handlers.answering import LaterAnswer
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.broker.server.dispatch import dispatch
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.turns import Turns
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.describe_acls import DescribeAclsRequest
from aclbroker.protocol.wire import decode_response
from tests.acl.examples import LITERAL, PREFIXED, WRITE, allow, deny
from tests.gate.rights import declared
from tests.support.client import ALL_ACLS, request_frame


class Always(Turns):
    """Turns that are over whenever that is asked."""

    def is_over(self) -> bool:
        return True


class Held(Always):
    """After ten turns there is no other before ``going`` is set; then ``held`` is."""

    def __init__(self) -> None:
        super().__init__()
        self.held, self.going = asyncio.Event(), asyncio.Event()
        self._left = 10

    async def _next_turn(self, principal: str, *, is_new: bool) -> None:
        self._left -= 1
        if not self._left:
            self.held.set()
            await self.going.wait()
        await super()._next_turn(principal, is_new=is_new)


ADMIN = Session(("User:admin",), "127.0.0.1", "PLAINTEXT")
CONTEXT = RequestContext(ADMIN, ApiKey.CREATE_ACLS, 3, "test", 1)
ALL_VERSIONS = APIS[ApiKey.DESCRIBE_ACLS].versions

FIRST = [
    allow(),
    deny("User:bob"),
    allow(operation=WRITE, host="10.0.0.1"),
    allow(name="ord", pattern_type=PREFIXED),
    allow("User:bob", name="é"),
]


@pytest.fixture
async def services():
    authorizer = StandardAuthorizer(MemoryStore())
    authorizer.configure({"super.users": "User:admin"})
    await authorizer.start()
    await authorizer.create_acls(CONTEXT, FIRST)
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    yield Services(authorizer, audit, declared(Catalog(), "PLAINTEXT"), ANSWERED_HERE)
    await authorizer.close()


async def described(
    services: Services, request: DescribeAclsRequest = ALL_ACLS, version: int = 3
) -> list[AclBinding]:
    """The ACLs of the answer, sorted; each resource pattern must be there once."""
    frame = request_frame(ApiKey.DESCRIBE_ACLS, version, request)[4:]
    answer = dispatch(services, ADMIN, frame)
    answer = await answer if isinstance(answer, Awaitable) else answer
    assert not isinstance(answer, LaterAnswer | Relayed)
    return listed(bytes(answer), version)


def listed(answer: bytes, version: int) -> list[AclBinding]:
    _, response = decode_response(APIS[ApiKey.DESCRIBE_ACLS], version, answer[4:])
    assert (response.error_code, response.error_message) == (0, "")
    patterns = [(r.resource_type, r.pattern_type, r.resource_name) for r in response.resources]
    assert len(set(patterns)) == len(patterns)
    return sorted(
        AclBinding(
            resource.resource_type,
            resource.resource_name,
            resource.pattern_type,
            acl.principal,
            acl.host,
            AclOperation(acl.operation),
            AclPermission(acl.permission_type),
        )
        for resource in response.resources
        for acl in resource.acls
    )


def of(acls: Iterable[AclBinding], acl_filter: AclFilter) -> list[AclBinding]:
    return sorted(acl for acl in acls if acl_filter.matches(acl))


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_each_version_lists_the_same_acls_over_and_over(services, version):
    for _ in range(2):
        # Version 0 knows literal patterns only.
        wanted = FIRST if version else [acl for acl in FIRST if acl.pattern_type == LITERAL]
        assert await described(services, version=version) == sorted(wanted)


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_a_list_is_not_older_than_the_acls(services, version):
    await described(services, version=version)
    added = [allow(operation=WRITE), allow("User:carol"), allow("User:carol", name="new")]
    await services.authorizer.create_acls(CONTEXT, added)
    now = {acl for acl in (*FIRST, *added) if version or acl.pattern_type == LITERAL}
    assert await described(services, version=version) == sorted(now)
    for acl in sorted(now):
        await services.authorizer.delete_acls(CONTEXT, [AclFilter(*acl)])
        now.discard(acl)
        assert await described(services, version=version) == sorted(now)


@pytest.mark.parametrize(
    "asked",
    [
        DescribeAclsRequest(1, None, 1, "User:alice", None, 1, 1),
        DescribeAclsRequest(2, "orders-1", 2, "User:alice", None, 1, 1),
        DescribeAclsRequest(1, None, 1, None, "10.0.0.1", 1, 1),
        DescribeAclsRequest(1, None, 1, None, None, 3, 1),
        DescribeAclsRequest(1, None, 1, None, None, 1, 2),
        DescribeAclsRequest(2, "orders", 3, None, None, 1, 1),
    ],
    ids=["principal", "principal and match", "host", "operation", "permission", "name"],
)
async def test_a_filtered_list_does_not_spoil_the_whole_one(services, asked):
    assert await described(services, asked) == of(FIRST, filter_of(asked))
    assert await described(services) == sorted(FIRST)
    assert await described(services, asked) == of(FIRST, filter_of(asked))


class OneOfOnesOwn(StandardAuthorizer):
    """Has its ACLs one by one, and one more than the built-in authorizer; those of a pattern are
    not together.
    """

    def acls(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        found = sorted(super().acls(acl_filter), key=lambda acl: acl.principal)
        return iter([*found, *filter(acl_filter.matches, [allow("User:own")])])


@pytest.mark.parametrize("version", ALL_VERSIONS)
async def test_the_acls_of_an_authorizer_of_ones_own_are_listed(services, version):
    authorizer = OneOfOnesOwn(services.authorizer.store)
    authorizer.configure({"super.users": "User:admin"})
    await authorizer.start()
    everything = [acl for acl in FIRST if version or acl.pattern_type == LITERAL]
    own = replace(services, authorizer=authorizer)
    assert await described(own, version=version) == sorted([*everything, allow("User:own")])
    await authorizer.close()


async def test_a_long_list_that_changes_while_it_is_made_is_one_of_a_moment(services):
    """Others get their turns meanwhile, but the list is never half old and half new."""
    many = [allow(name=f"topic-{number}") for number in range(5_000)]
    await services.authorizer.create_acls(CONTEXT, many)
    turns = Held()
    making = asyncio.create_task(described(replace(services, turns=turns)))
    await turns.held.wait()
    await services.authorizer.create_acls(CONTEXT, [allow("User:carol", name="topic-7")])
    await services.authorizer.delete_acls(CONTEXT, [AclFilter(*many[8])])
    assert not making.done()
    turns.going.set()
    now = {*FIRST, *many, allow("User:carol", name="topic-7")} - {many[8]}
    assert await making == sorted(now)
    assert await described(services) == sorted(now)


async def test_a_list_of_a_principal_may_lose_its_patterns_while_it_is_made(services):
    many = [allow("User:dave", name=f"topic-{number}") for number in range(5_000)]
    await services.authorizer.create_acls(CONTEXT, many)
    asked = DescribeAclsRequest(1, None, 1, "User:dave", None, 1, 1)
    making = asyncio.create_task(described(replace(services, turns=Always()), asked))
    await asyncio.sleep(0)
    await services.authorizer.delete_acls(CONTEXT, [AclFilter(*acl) for acl in many[2_500:]])
    assert not making.done()
    assert await making == sorted(many[:2_500])
