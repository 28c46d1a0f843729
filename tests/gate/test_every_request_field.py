"""Each field of each forwarded request is asked about, patched, or listed as harmless.

A version of Kafka that adds a field fails here until its treatment is declared.
"""

from __future__ import annotations

from functools import cache

from aclbroker.broker.backends.upstream.keys import FORWARDED
from aclbroker.broker.gate.harmless_requests import EVERYWHERE, HARMLESS
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import APIS, ApiKey
from tests.gate.request_fields import Field, Treatment, fields, treatment
from tests.gateway.patched import PATCHED
from tests.support.messages import EXCHANGES, Exchange
from tests.support.tables import check_each

WALKED = [exchange for exchange in EXCHANGES if exchange.key in FORWARDED]

UNDECLARED = "ask for a right in gate/table.py, or say in gate/harmless_requests.py why not"

# A right on the cluster guards every field of these keys.
ASKED_BY_CLUSTER = {
    ApiKey.ALTER_REPLICA_LOG_DIRS,
    ApiKey.DESCRIBE_LOG_DIRS,
    ApiKey.ELECT_LEADERS,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    ApiKey.LIST_PARTITION_REASSIGNMENTS,
    ApiKey.DESCRIBE_QUORUM,
    ApiKey.UPDATE_FEATURES,
    ApiKey.UNREGISTER_BROKER,
    ApiKey.LIST_CONFIG_RESOURCES,
    ApiKey.ADD_RAFT_VOTER,
    ApiKey.REMOVE_RAFT_VOTER,
}


def declared(key: int, field: Field) -> bool:
    """Return whether a field is patched, or listed as harmless."""
    path = f"{APIS[key].name} {field.path}"
    return path in PATCHED or path in HARMLESS or field.name in EVERYWHERE


@cache
def walked(exchange: Exchange) -> dict[Field, Treatment]:
    """Return the treatment of each field of a request."""
    found = fields(APIS[exchange.key].request, exchange.version)
    return {field: treatment(*exchange, field) for field in found}


@cache
def in_all_versions() -> dict[tuple[int, str], set[Treatment]]:
    """Return the treatments of each field of each forwarded key in all versions."""
    treatments: dict[tuple[int, str], set[Treatment]] = {}
    for exchange in WALKED:
        for field, how in walked(exchange).items():
            treatments.setdefault((exchange.key, field.path), set()).add(how)
    return treatments


def test_each_field_is_asked_about_or_patched_or_harmless() -> None:
    def check(exchange: Exchange) -> None:
        unknown = {
            field.path
            for field, how in walked(exchange).items()
            if how is Treatment.OPEN and not declared(exchange.key, field)
        }
        assert not unknown, UNDECLARED

    check_each(WALKED, check)


def test_no_field_is_declared_in_vain() -> None:
    left = {key for key, treatments in in_all_versions().items() if Treatment.OPEN in treatments}
    paths = {f"{APIS[key].name} {path}" for key, path in left}
    assert {*PATCHED, *HARMLESS} <= paths
    rest = {path.rpartition(".")[2].rpartition(" ")[2] for path in paths - {*PATCHED, *HARMLESS}}
    assert set(EVERYWHERE) == rest
    assert not set(PATCHED) & set(HARMLESS)
    reasons = (*EVERYWHERE.values(), *HARMLESS.values(), *PATCHED.values())
    assert all(reason.endswith(".") for reason in reasons)


def test_each_request_is_asked_about_unless_its_key_is_exempt() -> None:
    def check(exchange: Exchange) -> None:
        treatments = set(walked(exchange).values())
        is_asked = not treatments.isdisjoint((Treatment.ASKED, Treatment.CLUSTER))
        assert is_asked is not bool(GATE[exchange.key].exempt)

    check_each([exchange for exchange in WALKED if walked(exchange)], check)


def test_the_walk_finds_nested_and_tagged_fields_and_arrays_that_may_be_null() -> None:
    paths = {path for _, path in in_all_versions()}
    assert {
        "replica_state.replica_id",
        "topology.subtopologies.copartition_groups.source_topics[]",
        "topic_partitions=null",
    } <= paths


def test_a_right_on_the_cluster_guards_each_field_of_requests_about_the_cluster() -> None:
    guarded = {
        key
        for key in FORWARDED
        if all(
            how == {Treatment.CLUSTER}
            for (each, _), how in in_all_versions().items()
            if each == key
        )
    }
    assert guarded == ASKED_BY_CLUSTER
