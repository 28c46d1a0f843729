"""What a proposed set of rules breaks and opens: a planted case, and random ones by brute force."""

import json
from collections import Counter
from random import Random
from typing import Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.authorizer import ANY_RESOURCE, Action, Session
from aclbroker.acl.bindings import AclOperation, AclPermission, ResourceType
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.jobs.what_if import run
from aclbroker.pipeline.replay.flips import usage as flipped_usage
from aclbroker.pipeline.replay.flips.find import find_flips
from tests.acl.examples import ALL, LITERAL, PREFIXED, READ, WRITE, allow, deny
from tests.acl.strategies import HOSTS, PRINCIPALS
from tests.pipeline.use import figures_of, inputs_of, table_of, used


def acls(*given_acls, **settings):
    return Ruleset(**settings).with_acls(given_acls)


READS = allow()
OTHER_READS = allow(operation=ALL, name="ord", pattern_type=PREFIXED)
WRITES = allow(operation=WRITE, host="10.0.0.2")
DENIES_BOB = deny("User:bob")
STAYS = allow("User:bob", operation=ALL, name="*")

CURRENT = acls(READS, OTHER_READS, WRITES, DENIES_BOB, STAYS)
PROPOSED = acls(STAYS, deny("User:bob", name="secret"))

ROWS = [
    # Newly denied: whatever the host, since no ACL for READ names one.
    used(events=5),
    used(day=1, host="10.0.0.7", events=3),
    # Newly denied, and only asked to filter an answer.
    used(operation="DESCRIBE", events=2, quiet=True),
    # WRITE is allowed on orders by a prefix as well; on payments nothing ever was.
    used(operation="WRITE", host="10.0.0.2", events=1),
    used(operation="WRITE", resource_name="payments", allowed=False),
    # Newly allowed, and newly denied by a new DENY.
    used(principal="User:bob", allowed=False, events=4),
    used(day=2, principal="User:bob", resource_name="secret", events=9),
    # Nothing changes.
    used(principal="User:bob", resource_name="logs", events=100),
    # Drift: bob's write was denied then; the super user is not named now.
    used(principal="User:bob", resource_name="logs", operation="WRITE", allowed=False, events=6),
    used(principal="User:admin", rule="SuperUser", events=7),
    used(
        day=2,
        principal="User:bob",
        resource_type="CLUSTER",
        resource_name="kafka-cluster",
        operation="ALTER",
        api="CreateAcls",
    ),
    # A cluster without current rules: its own decisions are those before.
    used(cluster="c2", events=3),
    used(cluster="c2", allowed=False, events=2),
    used(cluster="c2", principal="User:bob", allowed=False, events=8),
    used(cluster="c3"),
]


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    return inputs_of(
        spark,
        tmp_path_factory.mktemp("what-if"),
        ROWS,
        days=4,
        current={"c1": CURRENT},
        proposed={"c1": PROPOSED, "c2": acls(READS)},
    )


@pytest.fixture(scope="module")
def result(inputs):
    return run(inputs)


@pytest.fixture(scope="module")
def flips(inputs, result):
    return inputs.spark.read.parquet(f"{inputs.output.place}/what-if/flips").collect()


def test_the_table_holds_every_flip_and_its_causes(flips):
    found = {(row.cluster, row.principal, row.operation, row.resource_name): row for row in flips}
    assert {key: (row.direction, row.flipped_events) for key, row in found.items()} == {
        ("c1", "User:alice", "READ", "orders"): ("newly denied", 8),
        ("c1", "User:alice", "DESCRIBE", "orders"): ("newly denied", 2),
        ("c1", "User:alice", "WRITE", "orders"): ("newly denied", 1),
        ("c1", "User:bob", "READ", "orders"): ("newly allowed", 4),
        ("c1", "User:bob", "READ", "secret"): ("newly denied", 9),
        ("c2", "User:alice", "READ", "orders"): ("newly allowed", 2),
    }
    reads = found["c1", "User:alice", "READ", "orders"]
    assert (reads.before_allowed, reads.before_rule) == (True, "MatchingAcl")
    assert (reads.after_allowed, reads.after_rule) == (False, "DefaultDeny")
    assert (
        set(reads.removed)
        == set(reads.before_allows)
        == {
            "ALLOW READ on TOPIC LITERAL orders to User:alice from *",
            "ALLOW ALL on TOPIC PREFIXED ord to User:alice from *",
        }
    )
    assert (reads.added, reads.after_denies, reads.settings) == ([], [], [])
    secret = found["c1", "User:bob", "READ", "secret"]
    assert (
        secret.added
        == secret.after_denies
        == ["DENY READ on TOPIC LITERAL secret to User:bob from *"]
    )
    assert secret.removed == []
    recorded = found["c2", "User:alice", "READ", "orders"]
    assert (recorded.before_allowed, recorded.before_allows, recorded.removed) == (None, None, [])


def test_the_summary_counts_both_directions(result):
    assert result.summary == (
        "Of 152 events the proposed ACLs newly deny 20 (2 principals) "
        "and newly allow 6 (2 principals)."
    )
    figures = figures_of(result)
    assert figures["Newly denied: questions"] == 4
    assert (figures["ACLs removed"], figures["ACLs added"]) == (4, 1)
    (note,) = (f.note for f in result.figures if f.label == "Newly denied: questions")
    assert note == "1 of them were only asked to filter an answer"


def test_examples_name_what_decides_on_both_sides(result):
    assert table_of(result, "Newly denied")[0] == {
        "Cluster": "c1",
        "Principal": "User:bob",
        "Operation": "READ",
        "Resource": "TOPIC secret",
        "Host": "any",
        "Events": 9,
        "Last": "2026-03-03",
        "Before": "ALLOW ALL on TOPIC LITERAL * to User:bob from *",
        "After": "DENY READ on TOPIC LITERAL secret to User:bob from *",
    }
    assert table_of(result, "Newly allowed")[1]["Before"] == "recorded in the log"


def test_the_changes_that_flip_most_come_first(result):
    causes = table_of(result, "What makes decisions flip")
    assert causes[0] == {
        "Cluster": "c1",
        "Change": "removed",
        "ACL or setting": "ALLOW ALL on TOPIC PREFIXED ord to User:alice from *",
        "Questions": 3,
        "Newly denied": 11,
        "Newly allowed": 0,
    }
    assert {(c["Change"], c["Newly allowed"]) for c in causes if c["Newly allowed"]} == {
        ("removed", 4)
    }


def test_tops_and_charts(result):
    principals = table_of(result, "Principals whose decisions flip")
    assert [tuple(row.values()) for row in principals] == [
        ("c1", "User:bob", 9, 4),
        ("c1", "User:alice", 11, 0),
        ("c2", "User:alice", 0, 2),
    ]
    hosts = table_of(result, "Hosts they come from")
    assert ("c1", "10.0.0.7", 3, 0) in [tuple(row.values()) for row in hosts]
    by_day = result.charts[0]
    assert list(by_day.labels)[0::3] == ["2026-03-01", "2026-03-04"]
    assert by_day.series == {"newly denied": [8, 3, 9, 0], "newly allowed": [6, 0, 0, 0]}


def test_drift_is_told_with_its_likeliest_reasons(result):
    text = "\n".join(result.warnings)
    assert "left out, since no proposed ACLs are given: cluster c3" in text
    assert "14 events were decided otherwise" in text
    assert "(8 were allowed and now are not, 6 were denied and now are not)" in text
    assert "7 events were allowed to super users that are not given as such: User:admin" in text
    assert "1 allowed requests to create or delete ACLs, the last on 2026-03-03" in text


def test_a_ci_run_can_fail_on_the_events_that_flip_and_on_drift(result):
    assert result.alarms == {"newly-denied": 20, "newly-allowed": 6, "drift": 14}


def test_settings_alone_can_be_tried(spark, tmp_path):
    rows = [
        used(principal="User:bob", resource_name="logs", rule="DefaultAllow", events=3),
        used(principal="User:admin", rule="SuperUser", events=7),
        used(events=5),
    ]
    current = acls(
        READS, super_users=frozenset(["User:admin"]), allow_everyone_if_no_acl_found=True
    )
    proposed = acls(READS)
    inputs = inputs_of(spark, tmp_path, rows, 1, current={"c1": current}, proposed={"c1": proposed})
    found = run(inputs)
    assert found.title == "What the proposed settings would change"
    assert found.summary == (
        "Of 15 events the proposed settings newly deny 10 (2 principals) "
        "and newly allow 0 (0 principals)."
    )
    assert [tuple(row.values()) for row in table_of(found, "Settings that differ")] == [
        ("c1", "super.users", "User:admin", ""),
        ("c1", "allow.everyone.if.no.acl.found", "true", "false"),
    ]
    causes = {row["ACL or setting"]: row["Newly denied"]
              for row in table_of(found, "What makes decisions flip")}  # fmt: skip
    assert causes == {"super.users or broker.users": 7, "allow.everyone.if.no.acl.found": 3}
    assert found.alarms == {"newly-denied": 10, "newly-allowed": 0, "drift": 0}


def test_rules_of_other_clusters_alone_are_refused(inputs):
    from dataclasses import replace

    with pytest.raises(InputError, match="needs a proposed set"):
        run(replace(inputs, proposed={}))
    with pytest.raises(
        InputError, match=r"of clusters c1, c2, c3, but proposed ACLs are only given for cluster c9"
    ):
        run(replace(inputs, proposed={"c9": PROPOSED}))


def _random_acls(random, count):
    return [
        allow(
            random.choice(PRINCIPALS),
            random.choice([ALL, READ, WRITE]),
            random.choice(["a", "ab", "*"]),
            pattern_type=random.choice([LITERAL, PREFIXED]),
            host=random.choice(HOSTS),
        )._replace(permission=random.choice([AclPermission.ALLOW, AclPermission.DENY]))
        for _ in range(count)
    ]


def _random_rules(random, everyone):
    users = BrokerUsers(frozenset([random.choice(PRINCIPALS)]), "INTERNAL")
    return acls(
        *_random_acls(random, 25),
        super_users=frozenset([random.choice(PRINCIPALS)]),
        broker_users=users,
        allow_everyone_if_no_acl_found=everyone,
        cidr=True,
    )


@pytest.mark.parametrize("most_flips", [0, 1_000], ids=["joined", "sent"])
def test_flips_are_those_that_brute_force_finds(spark, tmp_path, monkeypatch, most_flips):
    monkeypatch.setattr(flipped_usage, "_MOST_FLIPS", most_flips)
    random = Random(7)
    current = {f"k{n}": _random_rules(random, everyone=bool(n % 2)) for n in range(4)}
    proposed = {f"k{n}": _random_rules(random, everyone=bool(n % 3)) for n in range(4)}
    rows = [
        used(
            cluster=f"k{random.randrange(4)}",
            listener=random.choice(["INTERNAL", "SASL"]),
            principal=random.choice(PRINCIPALS),
            other_principals=random.choice([None, None, json.dumps(["Group:staff"])]),
            host=random.choice(["10.0.0.1", "10.0.7.7", "::1", "2001:db8::1"]),
            operation=random.choice(["READ", "WRITE", "DESCRIBE"]),
            resource_name=random.choice(["a", "abc", "b", None, ANY_RESOURCE]),
        )
        for _ in range(600)
    ]
    usage = inputs_of(spark, tmp_path, rows, days=1).usage
    flips = find_flips(usage, current, proposed, Output(spark, str(tmp_path)), "flips")
    expected = Counter(
        (*(row[name] for name in (*QUESTIONED, "host")), direction)
        for row in rows
        if (direction := _direction(current, proposed, row))
    )
    assert len(expected) > 50
    assert _counted(flips.usage.rows, (*QUESTIONED, "host", "direction")) == expected
    by_question: Counter[tuple[Any, ...]] = Counter()
    for (*question, _, direction), events in expected.items():
        by_question[*question, direction] += events
    assert _counted(flips.table, (*QUESTIONED, "direction")) == by_question


QUESTIONED = ("cluster", "principal", "operation", "resource_name")


def _counted(table, columns):
    found: Counter[tuple[Any, ...]] = Counter()
    for row in table.collect():
        found[tuple(row[name] for name in columns)] += row.flipped_events
    return found


def _direction(current, proposed, row):
    session = Session(
        (row["principal"], *json.loads(row["other_principals"] or "[]")),
        row["host"],
        row["listener"],
    )
    before, after = (
        _allowed(rules[row["cluster"]].authorizer(), session, row) for rules in (current, proposed)
    )
    if before == after:
        return None
    return "newly allowed" if after else "newly denied"


def _allowed(authorizer, session, row):
    operation, resource_type = AclOperation[row["operation"]], ResourceType[row["resource_type"]]
    if row["resource_name"] == ANY_RESOURCE:
        return authorizer.authorize_by_resource_type(session, operation, resource_type).allowed
    return authorizer.decide(
        session, Action(operation, resource_type, row["resource_name"])
    ).allowed
