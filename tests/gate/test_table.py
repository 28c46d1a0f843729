"""The table itself: complete, as documented, and described in docs/gate.md as it is."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from aclbroker.acl.bindings import AclOperation
from aclbroker.broker.backends.declared import DECLARED_HANDLERS, UNLISTED
from aclbroker.broker.backends.memory import MEMORY_HANDLERS
from aclbroker.broker.backends.upstream.handlers import UPSTREAM_HANDLERS
from aclbroker.broker.backends.upstream.keys import NOT_OFFERED
from aclbroker.broker.gate.docs import main, text
from aclbroker.broker.gate.need import Keep, Profile, Row
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.handlers import ANSWERED_HERE
from aclbroker.protocol.messages import APIS, ApiKey

ROOT = Path(__file__).parents[2]

# The rows of Kafka's documentation, "Protocol (API key) | Operation | Resource", by the numbers of
# the keys. T topic, G group, C cluster, X transactional id.
DOCUMENTED = """
0 WRITE X, 0 IDEMPOTENT_WRITE C, 0 WRITE T, 1 CLUSTER_ACTION C, 1 READ T, 2 DESCRIBE T,
3 DESCRIBE T, 3 CREATE C, 3 CREATE T, 4 CLUSTER_ACTION C, 5 CLUSTER_ACTION C, 6 CLUSTER_ACTION C,
7 CLUSTER_ACTION C, 8 READ G, 8 READ T, 9 DESCRIBE G, 9 DESCRIBE T, 10 DESCRIBE G, 10 DESCRIBE X,
11 READ G, 12 READ G, 13 READ G, 14 READ G, 15 DESCRIBE G, 16 DESCRIBE C, 16 DESCRIBE G,
19 CREATE C, 19 CREATE T, 20 DELETE T, 21 DELETE T, 22 WRITE X, 22 IDEMPOTENT_WRITE C,
23 CLUSTER_ACTION C, 23 DESCRIBE T, 24 WRITE X, 24 WRITE T, 25 WRITE X, 25 READ G, 26 WRITE X,
27 CLUSTER_ACTION C, 28 WRITE X, 28 READ G, 28 READ T, 29 DESCRIBE C, 30 ALTER C, 31 ALTER C,
32 DESCRIBE_CONFIGS C, 32 DESCRIBE_CONFIGS T, 33 ALTER_CONFIGS C, 33 ALTER_CONFIGS T, 34 ALTER C,
35 DESCRIBE C, 37 ALTER T, 42 DELETE G, 43 CLUSTER_ACTION C, 44 ALTER_CONFIGS C,
44 ALTER_CONFIGS T, 45 ALTER C, 46 DESCRIBE C, 47 DELETE G, 47 READ T
"""
# Keys that the documentation names without a row of their own: part of authentication, or tokens.
WITHOUT_ROWS = {17, 18, 36, 38, 39, 40, 41}
TYPES = {"TOPIC": "T", "GROUP": "G", "CLUSTER": "C", "TRANSACTIONAL_ID": "X"}
# What Kafka 4.3 asks for in these keys, and its documentation does not tell of.
UNTOLD = {
    "22 TWO_PHASE_COMMIT X",  # version 6, KIP-939
    "10 CLUSTER_ACTION C",  # share coordinators, KIP-932
    "24 CLUSTER_ACTION C",  # version 4, between brokers, KIP-890
    "32 DESCRIBE_CONFIGS G",  # configurations of groups, KIP-848
    "33 ALTER_CONFIGS G",
    "44 ALTER_CONFIGS G",
}


def documented_rows() -> set[str]:
    return {row.strip() for row in DOCUMENTED.replace("\n", " ").split(",")}


def rows_of(row: Row) -> set[str]:
    """Return a row's needs in the documented profile, broader rights included."""
    found = set()
    for need in row.needs:
        if need.profile is Profile.KAFKA:
            continue
        if isinstance(need, Keep) and need.name and not row.exempt:
            continue  # what is shown beside an answer, of which the documentation says nothing
        types = [TYPES[kind.name] for kind in need.types if kind.name in TYPES]
        found |= {f"{int(row.key)} {need.operation.name} {kind}" for kind in types}
        if need.unless is not None and need.unless.anywhere is None:
            found.add(f"{int(row.key)} {need.unless.operation.name} C")
    return found


def test_every_row_is_answered_here_or_by_the_backend_and_by_one_of_them() -> None:
    for handlers in (DECLARED_HANDLERS, MEMORY_HANDLERS):
        assert set(GATE) == set(APIS) == {*ANSWERED_HERE, *handlers}
        assert not ANSWERED_HERE.keys() & handlers.keys()
        assert handlers.keys() >= UNLISTED


def test_a_gateway_answers_forwards_or_refuses_each_row_and_does_one_of_them() -> None:
    sets = (set(ANSWERED_HERE), set(UPSTREAM_HANDLERS), set(NOT_OFFERED))
    assert set().union(*sets) == set(GATE)
    assert sum(len(keys) for keys in sets) == len(GATE)


def test_the_documented_profile_is_the_documentation_row_for_row() -> None:
    keys = {int(row.split()[0]) for row in documented_rows()} | WITHOUT_ROWS
    ours = {line for key in sorted(keys) for line in rows_of(GATE[key])}
    assert ours - UNTOLD == documented_rows()


def test_a_row_without_needs_is_exempt_for_a_reason() -> None:
    for row in GATE.values():
        assert row.needs or row.exempt, row.key
        assert not row.exempt or all(isinstance(need, Keep) for need in row.needs), row.key
    exempt = {row.key for row in GATE.values() if row.exempt}
    assert exempt == {
        ApiKey.SASL_HANDSHAKE,
        ApiKey.API_VERSIONS,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.LIST_GROUPS,
        ApiKey.LIST_TRANSACTIONS,
        ApiKey.DESCRIBE_CLUSTER,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
        ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
        ApiKey.PUSH_TELEMETRY,
    }


def test_docs_gate_md_is_current() -> None:
    current = (ROOT / "docs" / "gate.md").read_text()
    assert current == text(), "run: .venv/bin/python -m aclbroker.broker.gate.docs docs/gate.md"


def test_the_document_is_written_where_the_command_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["docs", str(tmp_path / "gate.md")])
    main()
    assert (tmp_path / "gate.md").read_text() == text()


def test_what_a_version_that_is_not_offered_needs_is_in_the_table() -> None:
    [need] = [each for each in GATE[ApiKey.INIT_PRODUCER_ID].needs if 5 not in each.versions]
    assert need.operation is AclOperation.TWO_PHASE_COMMIT
    assert need.when is not None
    assert need.when(SimpleNamespace(enable2_pc=True))
    assert not need.when(SimpleNamespace(enable2_pc=False))
