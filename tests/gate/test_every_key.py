"""Every key at every version: with all rights, with none, and with rights to half of the names."""

from __future__ import annotations

import asyncio
import dataclasses
import io
from collections.abc import Iterator
from typing import Any

import pytest

from aclbroker.acl.bindings import AclOperation
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.gate.answers import form_of
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Each
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers.answering import known_topics
from aclbroker.broker.handlers.services import Services
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS, ApiKey
from tests.gate.requests import codes, filled, strings
from tests.gate.rights import context, everything, handled, names_that_begin_with, nothing, services
from tests.support.messages import EXCHANGES, Exchange
from tests.support.tables import check_each

NAMES = ["may-1", "not-1", "may-2", "not-2"]
AUTHORIZATION = {29, 30, 31, 53, 65}
# These never refuse for want of rights: they are part of authentication, or they filter.
NEVER_REFUSED = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.LIST_GROUPS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}


@pytest.fixture(scope="module")
def audit() -> Audit:
    return Audit(load(), "cluster", configure(stream=io.StringIO()))


def new_catalog() -> Catalog:
    return Catalog(dict.fromkeys(NAMES, 1), NAMES)


@pytest.fixture
def catalog() -> Catalog:
    return new_catalog()


def as_sent(key: int, version: int, request: Any, catalog: Catalog) -> Any:
    """Return a request as it arrives: without what its version does not have, and with the ids of
    topics where that is all it has.
    """
    arrived = decode(APIS[key].request, version, encode(request, version))
    if key != ApiKey.METADATA:
        identify(arrived, catalog)
    return arrived


def identify(item: Any, catalog: Catalog) -> None:
    """Give the entries of arrays that have topic ids and no names the ids of the names' topics."""
    for array in (getattr(item, field.name) for field in dataclasses.fields(item)):
        for position, entry in enumerate(array if isinstance(array, list | tuple) else ()):
            if dataclasses.is_dataclass(entry):
                if hasattr(entry, "topic_id") and not getattr(
                    entry, "name", getattr(entry, "topic", "")
                ):
                    entry.topic_id = catalog.id_of(NAMES[position])
                identify(entry, catalog)


async def answer(parts: Services, key: int, version: int, request: Any) -> Any:
    """Return the whole answer to a request, as a client decodes it."""
    rights = parts.rights(GATE[key], context(key, version))
    verdict = check(request, rights, known_topics(parts, GATE[key], request))
    response = verdict.response
    if verdict.request is not None:
        response = await handled(parts, rights, verdict.request)
        response = verdict.complete(response)
    return decode(APIS[key].response, version, encode(response, version))


def asked(key: int) -> Any:
    """Return a request with the names, of a kind that every key's rules apply to."""
    request = filled(key, NAMES)
    if key == ApiKey.FETCH:
        request.replica_id = request.replica_state.replica_id = -1
    for resource in getattr(request, "resources", ()):
        resource.resource_type = 2
    for renewer in getattr(request, "renewers", ()):
        renewer.principal_type = "User"
    return request


def test_with_all_rights_nothing_is_refused_for_want_of_rights(audit: Audit) -> None:
    check_each(EXCHANGES, lambda exchange: asyncio.run(check_with_all_rights(exchange, audit)))


async def check_with_all_rights(exchange: Exchange, audit: Audit) -> None:
    (key, version), catalog = exchange, new_catalog()
    parts = services(everything, catalog, audit)
    assert parts.authorizer is not None
    if key in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.DESCRIBE_ACLS):
        await parts.authorizer.start()
    response = await answer(parts, key, version, as_sent(key, version, asked(key), catalog))
    assert not codes(response) & AUTHORIZATION
    if key in (ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS, ApiKey.DESCRIBE_ACLS):
        await parts.authorizer.close()


def test_without_rights_everything_is_refused_or_left_out(audit: Audit) -> None:
    check_each(EXCHANGES, lambda exchange: asyncio.run(check_without_rights(exchange, audit)))


async def check_without_rights(exchange: Exchange, audit: Audit) -> None:
    (key, version), catalog = exchange, new_catalog()
    parts = services(nothing, catalog, audit)
    request = as_sent(key, version, asked(key), catalog)
    verdict = check(request, parts.rights(GATE[key], context(key, version)), catalog)
    response = await answer(parts, key, version, request)
    if key in NEVER_REFUSED:
        assert not strings(response) & set(NAMES)
    elif key == ApiKey.DESCRIBE_LOG_DIRS and version < 3:
        assert not response.results
    elif key == ApiKey.CREATE_DELEGATION_TOKEN and version < 3:
        assert codes(response) == {61}  # a token of one's own, and there are none
    else:
        assert codes(response) & AUTHORIZATION
        assert not codes(response) - AUTHORIZATION - {0, 55}
        assert verdict.request is None or key == ApiKey.METADATA


def entries(key: int, version: int) -> Iterator[str]:
    """Yield the array of the request whose entries are refused one by one, if there is one."""
    row = GATE[key]
    form = form_of(key, version)
    needs = [need for need in row.needs if version in need.versions]
    if form.echo and not row.own and all(isinstance(need, Each) for need in needs):
        yield form.echo.asked


def test_only_allowed_entries_go_on_and_all_are_answered_in_their_order(audit: Audit) -> None:
    partial = [(exchange, array) for exchange in EXCHANGES for array in entries(*exchange)]
    check_each(partial, lambda case: asyncio.run(check_entries(*case, audit)))


async def check_entries(exchange: Exchange, array: str, audit: Audit) -> None:
    (key, version), catalog = exchange, new_catalog()
    request = as_sent(key, version, asked(key), catalog)
    parts = services(names_that_begin_with("may"), catalog, audit)
    rights = parts.rights(GATE[key], context(key, version))
    verdict = check(request, rights, catalog)
    sent = getattr(request, array)
    spared = any(isinstance(need, Each) and need.others for need in GATE[key].needs)
    assert verdict.request is not None or spared
    if verdict.request is not None:
        assert getattr(verdict.request, array) == [sent[0], sent[2]]
    response = await answer(parts, key, version, request)
    form = form_of(key, version).echo
    assert form is not None
    answered = getattr(response, form.answer)
    assert len(answered) == len(NAMES)
    refused = [bool(codes(each) & AUTHORIZATION) for each in answered]
    assert refused == [False, True, False, True]


@pytest.mark.parametrize("version", APIS[ApiKey.METADATA].versions)
async def test_metadata_of_all_topics_leaves_out_what_may_not_be_described(
    version: int, audit: Audit, catalog: Catalog
) -> None:
    parts = services(names_that_begin_with("may"), catalog, audit)
    request = APIS[ApiKey.METADATA].request(topics=None if version else ())
    response = await answer(parts, ApiKey.METADATA, version, request)
    assert [topic.name for topic in response.topics] == ["may-1", "may-2"]


async def test_metadata_without_rights_to_what_it_asks_for_is_not_one_of_all_topics(
    audit: Audit, catalog: Catalog
) -> None:
    parts = services(names_that_begin_with("may"), catalog, audit)
    for version in APIS[ApiKey.METADATA].versions:
        request = filled(ApiKey.METADATA, ["not-1"])
        response = await answer(parts, ApiKey.METADATA, version, request)
        assert [(topic.name, topic.error_code) for topic in response.topics] == [("not-1", 29)]


async def test_topic_partitions_without_rights_to_what_is_asked_for_are_not_all_of_them(
    audit: Audit, catalog: Catalog
) -> None:
    parts = services(names_that_begin_with("may"), catalog, audit)
    key = ApiKey.DESCRIBE_TOPIC_PARTITIONS
    response = await answer(parts, key, 0, filled(key, ["not-1"]))
    assert [(topic.name, topic.error_code) for topic in response.topics] == [("not-1", 29)]
    response = await answer(parts, key, 0, APIS[key].request())
    assert [topic.name for topic in response.topics] == ["may-1", "may-2"]


async def test_list_groups_shows_all_to_who_may_describe_the_cluster(
    audit: Audit, catalog: Catalog
) -> None:
    half = names_that_begin_with("may")

    def with_cluster(operation: AclOperation, kind: Any, name: str | None) -> bool:
        return operation is AclOperation.DESCRIBE and name == "kafka-cluster"

    request = APIS[ApiKey.LIST_GROUPS].request()
    for rights, expected in ((half, ["may-1", "may-2"]), (with_cluster, NAMES)):
        parts = services(rights, catalog, audit)
        response = await answer(parts, ApiKey.LIST_GROUPS, 5, request)
        assert [group.group_id for group in response.groups] == expected
