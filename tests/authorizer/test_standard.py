"""The built-in authorizer as the broker uses it: properties, a store, decisions and changes."""

import sqlite3
from contextlib import asynccontextmanager, closing

import pytest
from structlog.testing import capture_logs

from aclbroker.acl.authorizer import RequestContext
from aclbroker.acl.bindings import (
    AclFilter,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.observability.limited_log import PEER_BURST, LimitedLog
from aclbroker.broker.stores import StoreError
from aclbroker.broker.stores.memory import MemoryStore
from tests.acl.examples import (
    ALICE,
    ALL,
    CLUSTER,
    DESCRIBE,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
    session,
)

CONTEXT = RequestContext(ALICE, 30, 3, "client", 1)
CREATED = (0, None)
INVALID_REQUEST = 42
UNSUPPORTED_VERSION = 35
POLICY_VIOLATION = 44
UNKNOWN_SERVER_ERROR = -1


@asynccontextmanager
async def started(store=None, **properties):
    """A started authorizer; an underscore in a property's name stands for a dot."""
    authorizer = StandardAuthorizer(store)
    authorizer.configure({name.replace("_", "."): text for name, text in properties.items()})
    await authorizer.start()
    try:
        yield authorizer
    finally:
        await authorizer.close()


@pytest.fixture
async def store():
    return MemoryStore()


@pytest.fixture
async def authorizer(store):
    async with started(store) as running:
        yield running


@pytest.fixture
def url(tmp_path):
    return f"sqlite:///{tmp_path}/acls.db"


def codes(results):
    return [result.error_code for result in results]


def allowed(authorizer, operation=READ, name="orders", who=ALICE):
    context = CONTEXT._replace(session=who)
    [decision] = authorizer.authorize(context, operation, TOPIC, [name])
    return decision.allowed


def acls(authorizer, acl_filter=AclFilter()):  # noqa: B008 - a filter does not change
    return sorted(authorizer.acls(acl_filter))


async def test_created_acls_decide_and_survive_a_restart(url):
    async with started(aclbroker_store=url) as authorizer:
        assert not allowed(authorizer)
        assert await authorizer.create_acls(CONTEXT, [allow(), deny()]) == [CREATED, CREATED]
        assert not allowed(authorizer)
        await authorizer.delete_acls(CONTEXT, [AclFilter(*deny())])
        assert allowed(authorizer)
    async with started(aclbroker_store=url) as authorizer:
        assert allowed(authorizer)
        assert acls(authorizer) == [allow()]


async def test_it_decides_by_type_and_tells_authorized_operations(authorizer):
    assert not authorizer.authorize_by_resource_type(CONTEXT, WRITE, TOPIC).allowed
    await authorizer.create_acls(CONTEXT, [allow(operation=WRITE)])
    assert authorizer.authorize_by_resource_type(CONTEXT, WRITE, TOPIC).allowed
    field = authorizer.authorized_operations(CONTEXT, TOPIC, "orders")
    assert field == 1 << WRITE | 1 << DESCRIBE


async def test_decisions_are_in_the_order_of_the_names(authorizer):
    await authorizer.create_acls(CONTEXT, [allow()])
    decisions = authorizer.authorize(CONTEXT, READ, TOPIC, ["a", "orders", "b"])
    assert [each.allowed for each in decisions] == [False, True, False]


async def test_d1_a_creation_that_is_refused_does_not_stop_the_others(authorizer):
    creations = [
        allow(),
        allow(operation=AclOperation.ANY),
        allow("User:bob"),
        allow("no colon"),
        allow(resource_type=CLUSTER),
    ]
    results = await authorizer.create_acls(CONTEXT, creations)
    assert codes(results) == [0, INVALID_REQUEST, 0, INVALID_REQUEST, INVALID_REQUEST]
    assert "operation" in results[1].error_message
    assert acls(authorizer) == sorted([allow(), allow("User:bob")])


async def test_d2_an_unknown_code_in_a_creation_refuses_that_creation(authorizer):
    creations = [allow(resource_type=ResourceType.UNKNOWN), allow()]
    results = await authorizer.create_acls(CONTEXT, creations)
    assert codes(results) == [INVALID_REQUEST, 0]
    assert "resource type" in results[0].error_message


async def test_d2_an_unknown_code_in_a_filter_refuses_that_filter(authorizer):
    await authorizer.create_acls(CONTEXT, [allow(), allow("User:bob")])
    filters = [AclFilter(pattern_type=PatternType.UNKNOWN), AclFilter(*allow())]
    refused, applied = await authorizer.delete_acls(CONTEXT, filters)
    assert refused.error_code == UNSUPPORTED_VERSION
    assert refused.error_message
    assert (applied.error_code, applied.bindings) == (0, [allow()])
    assert acls(authorizer) == [allow("User:bob")]


async def test_d5_a_subnet_that_matches_nobody_is_stored_with_a_warning(url):
    async with started(aclbroker_store=url) as authorizer:
        with capture_logs() as logs:
            await authorizer.create_acls(
                CONTEXT, [allow(host="192.0.2.0/24"), allow("x", host="::/0")]
            )
        assert [(log["log_level"], log["hosts"]) for log in logs] == [("warning", ["192.0.2.0/24"])]
        assert not allowed(authorizer)
    with capture_logs() as logs:
        async with started(aclbroker_store=url):
            pass
    assert "aclbroker.acl.host.cidr" in logs[0]["event"]
    with capture_logs() as logs:
        async with started(aclbroker_store=url, aclbroker_acl_host_cidr="true") as authorizer:
            assert allowed(authorizer)
            await authorizer.create_acls(CONTEXT, [deny(host="192.0.2.0/31")])
            assert allowed(authorizer)
    assert logs == []


async def test_d7_a_limit_is_kept_and_names_its_property(store):
    async with started(store, aclbroker_acl_limit="2") as authorizer:
        creations = [allow(), allow(), allow("User:b"), allow("User:c"), allow("User:b")]
        results = await authorizer.create_acls(CONTEXT, creations)
        assert codes(results) == [0, 0, 0, POLICY_VIOLATION, 0]
        assert "2 ACLs (aclbroker.acl.limit)" in results[3].error_message
        await authorizer.delete_acls(CONTEXT, [AclFilter(*allow())])
        assert codes(await authorizer.create_acls(CONTEXT, [allow("User:c")])) == [0]


async def test_a_store_that_fails_changes_nothing_and_works_again_later(url, tmp_path):
    path, away = tmp_path / "acls.db", tmp_path / "away.db"
    async with started(aclbroker_store=url) as authorizer:
        await authorizer.create_acls(CONTEXT, [allow()])
        path.rename(away)
        with capture_logs() as logs:
            created = await authorizer.create_acls(CONTEXT, [deny(), allow(), allow("none")])
            deleted = await authorizer.delete_acls(
                CONTEXT, [AclFilter(), AclFilter(principal="User:bob")]
            )
        # Whether the one that was there still is cannot be known without the file, either.
        assert codes(created) == [UNKNOWN_SERVER_ERROR, UNKNOWN_SERVER_ERROR, INVALID_REQUEST]
        assert codes(deleted) == [UNKNOWN_SERVER_ERROR, 0]
        assert "log says why" in created[0].error_message
        assert deleted[0].bindings == ()
        assert str(path) not in created[0].error_message + deleted[0].error_message
        assert [(log["log_level"], str(path) in log["reason"]) for log in logs] == [
            ("error", True)
        ] * 2
        assert acls(authorizer) == [allow()]
        assert allowed(authorizer)
        away.rename(path)
        assert codes(await authorizer.create_acls(CONTEXT, [deny()])) == [0]
    async with started(aclbroker_store=url) as authorizer:
        assert acls(authorizer) == sorted([allow(), deny()])


async def test_nothing_is_decided_before_the_acls_are_loaded(store):
    authorizer = StandardAuthorizer(store)
    with pytest.raises(RuntimeError, match="not started"):
        allowed(authorizer)
    with pytest.raises(RuntimeError, match="not started"):
        await authorizer.create_acls(CONTEXT, [allow()])
    await authorizer.close()


async def test_it_must_be_configured_before_it_is_started():
    with pytest.raises(RuntimeError, match="configured"):
        await StandardAuthorizer().start()


async def test_a_start_that_fails_leaves_the_store_free_for_the_next(url, tmp_path):
    async with started(aclbroker_store=url) as authorizer:
        await authorizer.create_acls(CONTEXT, [allow()])
    with closing(sqlite3.connect(tmp_path / "acls.db", isolation_level=None)) as connection:
        connection.execute("UPDATE acl_change SET operation = 77")
        with pytest.raises(StoreError, match="without their checksums"):
            async with started(aclbroker_store=url):
                pass
        connection.execute("UPDATE acl_change SET operation = 3")
    async with started(aclbroker_store=url) as authorizer:
        assert allowed(authorizer)


async def test_super_users_and_the_default_are_configured_by_kafkas_properties(store):
    async with started(
        store, super_users=" User:a ;User:CN=b,O=c;", allow_everyone_if_no_acl_found="TRUE"
    ) as authorizer:
        assert allowed(authorizer, name="free", who=session("User:x"))
        await authorizer.create_acls(CONTEXT, [deny("User:*", ALL, "o", pattern_type=PREFIXED)])
        assert allowed(authorizer, who=session("User:a"))
        assert allowed(authorizer, who=session("User:CN=b,O=c"))
        assert not allowed(authorizer, who=session("User:x"))


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("super.users", "User:a;bob", "Type:name"),
        ("allow.everyone.if.no.acl.found", "yes", "true or false"),
        ("aclbroker.acl.host.cidr", "1", "true or false"),
        ("aclbroker.acl.limit", "-1", "number"),
        ("aclbroker.acl.limit", "many", "number"),
        ("aclbroker.store.history.max.changes", "", "0 for none"),
        ("aclbroker.store.history.max.changes", "-1", "0 for none"),
        ("aclbroker.store.max.lag.ms", "soon", "a number of milliseconds"),
        ("aclbroker.store.stale", "maybe", "allowed: serve, deny"),
    ],
)
def test_a_bad_property_is_refused_by_name(name, text, told):
    with pytest.raises(ValueError, match=told) as refused:
        StandardAuthorizer(MemoryStore()).configure({name: text})
    assert name in str(refused.value)


def test_a_bad_store_is_refused_by_name():
    with pytest.raises(StoreError, match=r"aclbroker\.store"):
        StandardAuthorizer().configure({"aclbroker.store": "nowhere"})


async def test_hosts_by_which_nobody_can_come_are_created_as_in_kafka_and_warned_of(url: str):
    strange = ["10.0.0.1 ", "127.0.0.0-9", "client.example.org", "", "x" * 300]
    fine = ["*", "10.0.0.1", "::1", "fe80::1%eth0", "10.0.0.0/8"]
    with capture_logs() as logs:
        async with started(aclbroker_store=url, aclbroker_acl_host_cidr="true") as authorizer:
            hosts = [allow(host=host) for host in (*strange, *fine)]
            assert codes(await authorizer.create_acls(CONTEXT, hosts)) == [0] * len(hosts)
            await authorizer.create_acls(CONTEXT, [allow(name="other", host="10.0.0.2")])
    [warning] = logs
    assert warning["event"] == "ACLs match nobody: their hosts are no addresses"
    shown = sorted([*strange[:4], "x" * 256 + "... (300 characters)"])
    assert (warning["count"], warning["hosts"]) == (5, shown)
    with capture_logs() as logs:
        async with started(aclbroker_store=url, aclbroker_acl_host_cidr="true"):
            pass
    assert [each["count"] for each in logs] == [5]


async def test_a_malformed_subnet_is_refused_where_subnets_match_and_taken_as_by_kafka_elsewhere(
    url: str,
):
    hosts = [allow(host=host) for host in ("10.0.0.0/33", "a/8", "10.0.0.0/8", "a")]
    async with started(aclbroker_store=url, aclbroker_acl_host_cidr="true") as authorizer:
        results = await authorizer.create_acls(CONTEXT, hosts)
    assert codes(results) == [INVALID_REQUEST] * 2 + [0, 0]
    assert results[0].error_message == (
        "The host '10.0.0.0/33' is no subnet: write one such as 10.1.0.0/16."
    )
    async with started(aclbroker_store=url) as authorizer:
        assert codes(await authorizer.create_acls(CONTEXT, hosts)) == [0] * 4


async def test_who_creates_many_acls_of_strange_hosts_causes_a_few_lines(store):
    authorizer = StandardAuthorizer(store)
    authorizer.lines = LimitedLog(lambda: 0.0)
    authorizer.configure({})
    await authorizer.start()
    other = CONTEXT._replace(session=session("User:bob", host="192.0.2.9"))
    with capture_logs() as logs:
        for number in range(100):
            await authorizer.create_acls(CONTEXT, [allow(host=f"host-{number}")])
        await authorizer.create_acls(other, [allow(host="10.0.0.0/8")])
    await authorizer.close()
    assert [each["peer"] for each in logs] == [ALICE.host] * PEER_BURST + [other.session.host]
    assert "aclbroker.acl.host.cidr" in logs[-1]["event"]


async def test_super_users_and_the_default_can_be_changed_while_it_runs(authorizer):
    await authorizer.create_acls(CONTEXT, [allow(host="10.0.0.0/8")])
    assert not allowed(authorizer, WRITE)
    authorizer.reconfigure({"super.users": "User:alice"})
    assert allowed(authorizer, WRITE)
    with pytest.raises(ValueError, match=r"super\.users"):
        authorizer.reconfigure({"super.users": "alice"})
    assert allowed(authorizer, WRITE)
    authorizer.reconfigure({})
    assert not allowed(authorizer, WRITE)
    assert not allowed(authorizer, WRITE, "other")
    authorizer.reconfigure({"allow.everyone.if.no.acl.found": "true"})
    assert allowed(authorizer, WRITE, "other")
    authorizer.reconfigure({})
    assert not allowed(authorizer, WRITE, "other")
    authorizer.reconfigure({"broker.users": "User:alice"})
    assert allowed(authorizer, WRITE, "other")


def test_what_is_not_started_yet_takes_new_settings_for_its_start():
    authorizer = StandardAuthorizer(MemoryStore())
    authorizer.configure({})
    authorizer.reconfigure({"super.users": "User:alice"})
    with pytest.raises(RuntimeError, match="not started"):
        allowed(authorizer)
