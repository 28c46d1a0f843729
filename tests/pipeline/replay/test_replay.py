"""A replay of usage decides each event as the authorizer does, with its own host and listener."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa
import pyarrow.parquet as pq

from aclbroker.acl.authorizer import ANY_RESOURCE, Action, Decision, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import BrokerUsers
from aclbroker.pipeline import schemas
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.frames import functions
from aclbroker.pipeline.ingest.stored import USAGE, read_usage
from aclbroker.pipeline.interface.output import Output
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.flips.find import find_flips
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.replay.questions import QUESTION
from aclbroker.pipeline.usage.table import Usage
from tests import model

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, Row, SparkSession

PRINCIPALS = ["User:a", "User:b", "User:*", "Group:g", "User:broker", "User:super", "User:ü, x"]
OTHERS = [None, None, ["Group:g"], ["User:b", "Group:g"], ["User:super"], ["User:broker"]]
HOSTS = ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.1.1", "fe80::1", "fe80::2%e0", "9.9.9.9"]
NAMES = ["a", "ab", "abc", "b", "*", "ü", "hardcode", ANY_RESOURCE, None]
TYPES = [ResourceType.TOPIC, ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [
    *(AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE),
    *(AclOperation.DESCRIBE_CONFIGS, AclOperation.ALTER_CONFIGS),
]
SUBNETS = ["10.0.0.0/30", "10.0.0.0/8", "fe80::/10", "fe80::2"]
MIDNIGHT = datetime(2026, 11, 21, tzinfo=UTC)


def random_acl(random: Random, hosts: list[str]) -> AclBinding:
    return AclBinding(
        random.choice(TYPES),
        random.choice([name for name in NAMES if name]),
        random.choice([PatternType.LITERAL, PatternType.PREFIXED]),
        random.choice([*PRINCIPALS, "User:*"]),
        random.choice([*hosts, "*", "*"]),
        random.choice([*OPERATIONS, AclOperation.ALL]),
        random.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
    )


def random_rules(random: Random, hosts: list[str], count: int, *, cidr: bool = False) -> Ruleset:
    return Ruleset(
        ordered(random_acl(random, hosts) for _ in range(count)),
        super_users=frozenset({"User:super"}),
        broker_users=BrokerUsers(frozenset({"User:broker"}), "INTERNAL"),
        allow_everyone_if_no_acl_found=random.random() < 0.5,
        cidr=cidr,
    )


def random_usage(random: Random, count: int) -> list[dict[str, Any]]:
    """Rows of usage; some have the same key."""
    return [_usage_row(random) for _ in range(count)]


def _usage_row(random: Random) -> dict[str, Any]:
    others = random.choice(OTHERS)
    seen = MIDNIGHT + timedelta(minutes=random.randrange(3 * 24 * 60))
    return {
        "cluster": random.choice(["one", "two", "unknown"]),
        "day": seen.date(),
        "listener": random.choice(["INTERNAL", "EXTERNAL", None]),
        "principal": random.choice(PRINCIPALS),
        "other_principals": others and json.dumps(others),
        "host": random.choice(HOSTS),
        "operation": random.choice(OPERATIONS).name,
        "resource_type": random.choice(TYPES).name,
        "resource_name": random.choice(NAMES),
        "api": "Fetch",
        "allowed": random.random() < 0.5,
        "rule": None,
        "quiet": random.random() < 0.3,
        "events": random.randrange(1, 5),
        "reference_count": random.randrange(9),
        "first_seen": seen,
        "last_seen": seen + timedelta(minutes=random.randrange(2)),
    }


class Case(NamedTuple):
    """Rules by set and cluster. The second set does not know one of the clusters."""

    sets: dict[str, dict[str, Ruleset]]
    usage: list[dict[str, Any]]


def random_case(seed: str) -> Case:
    random = Random(seed)
    hosts, cidr = {
        "subnets": ([*HOSTS[:3], *SUBNETS, "::ffff:10.0.0.1", ""], True),
        "hosts": ([*HOSTS[:4], *SUBNETS, "0:0:0:0:0:0:0:1", ""], False),
        "no hosts": ([], False),
    }[seed]
    rules = [random_rules(random, hosts, count, cidr=cidr) for count in (40, 12, 30)]
    if seed == "no hosts":
        rules = [Ruleset(each.acls, each.super_users) for each in rules]
    sets = {"now": {"one": rules[0], "two": rules[1]}, "then": {"one": rules[2]}}
    return Case(sets, random_usage(random, 3_000))


def decision_of(rules: Ruleset, row: dict[str, Any]) -> Decision:
    """What the broker's authorizer decides on one event of a row."""
    principals = (row["principal"], *json.loads(row["other_principals"] or "[]"))
    session = Session(principals, row["host"] or "nowhere at all", row["listener"] or "")
    action = Action(
        AclOperation[row["operation"]], ResourceType[row["resource_type"]], row["resource_name"]
    )
    authorizer = rules.authorizer()
    if action.resource_name == ANY_RESOURCE and action.resource_type is ResourceType.TOPIC:
        return authorizer.authorize_by_resource_type(session, *action[:2])
    return authorizer.decide(session, action)


def behind(rules: Ruleset, row: dict[str, Any]) -> tuple[set[int], set[int], set[int]]:
    """The positions of the ACLs that allow, that deny, and of all on the resource."""
    principals = (row["principal"], *json.loads(row["other_principals"] or "[]"))
    operation = AclOperation[row["operation"]]
    sources = {operation, AclOperation.ALL}
    found: tuple[set[int], set[int], set[int]] = (set(), set(), set())
    for position, acl in enumerate(rules.acls):
        name, resource_type = row["resource_name"], ResourceType[row["resource_type"]]
        if name is None or not model.pattern_matches(acl, resource_type, name):
            continue
        found[2].add(position)
        if model.applies(acl, principals, row["example_host"], rules.cidr):
            if acl.permission is AclPermission.DENY and acl.operation in sources:
                found[1].add(position)
            implied = model.IMPLIED.get(operation, set())
            if acl.permission is AclPermission.ALLOW and acl.operation in sources | implied:
                found[0].add(position)
    return found


def usage_table(spark: "SparkSession", usage: Iterable[dict[str, Any]]) -> "DataFrame":
    schema = schemas.usage()
    return spark.createDataFrame(
        [tuple(row[name] for name in schema.fieldNames()) for row in usage], schema
    )


@pytest.fixture(params=["subnets", "hosts", "no hosts"])
def case(request: pytest.FixtureRequest) -> Case:
    return random_case(request.param)


def test_a_replay_decides_as_the_authorizer(spark: "SparkSession", case: Case) -> None:
    usage = usage_table(spark, case.usage)
    rows = replay.replayed(Usage(usage), case.sets, explain=True).collect()
    check_questions(case, rows)
    for name, by_cluster in case.sets.items():
        check_decisions(name, by_cluster, case, rows)
        for row in rows:
            check_explanation(name, by_cluster.get(row.cluster), row)


@pytest.mark.engines("spark")
@pytest.mark.thorough
def test_many_parts_are_decided_in_few_tasks(spark: "SparkSession") -> None:
    """As with Spark's own setting of 200 on a machine of two cores."""
    case = random_case("hosts")
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "200")
    try:
        usage = Usage(usage_table(spark, case.usage).repartition(5))
        found = replay.replayed(usage, case.sets)
        rows = found.withColumn("task", functions.spark_partition_id()).collect()
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", str(before))
    check_questions(case, rows)
    for name, by_cluster in case.sets.items():
        check_decisions(name, by_cluster, case, rows)
    assert 1 < len({row.task for row in rows}) <= 2 * spark.sparkContext.defaultParallelism


def stored_usage(
    spark: "SparkSession", place: Path, usage: Iterable[dict[str, Any]], numbered: list[str]
) -> Usage:
    """Usage in Parquet files, in which only some columns have dictionaries."""
    schema = schemas.arrow(schemas.usage())
    by_file: dict[Path, list[dict[str, Any]]] = defaultdict(list)
    for row in usage:
        by_file[place / USAGE / f"cluster={row['cluster']}" / f"day={row['day']}"].append(row)
    for directory, rows in by_file.items():
        directory.mkdir(parents=True)
        table = pa.Table.from_pylist(rows, schema).drop_columns(["cluster", "day"])
        pq.write_table(table, directory / "a.parquet", use_dictionary=numbered)
    return read_usage(spark, str(place))


def test_how_files_keep_hosts_makes_no_difference(spark: "SparkSession", tmp_path: Path) -> None:
    random = Random(5)
    rules = [random_rules(random, HOSTS[:3], count) for count in (40, 30)]
    before, after = ({"one": each} for each in rules)
    case = Case({"now": before, "then": after}, random_usage(random, 2_000))
    flipped = []
    for numbered in (["host", "principal"], ["principal"]):
        place = tmp_path / "-".join(numbered)
        usage = stored_usage(spark, place, case.usage, numbered)
        check_questions(case, replay.replayed(usage, case.sets).collect())
        flips = find_flips(usage, before, after, Output(spark, str(place / "out")), "flips")
        flipped.append(Counter(tuple(row) for row in flips.usage.rows.collect()))
    assert flipped[0] == flipped[1]
    assert {row[6] for row in flipped[0]} == set(HOSTS)


def check_questions(case: Case, rows: list["Row"]) -> None:
    """Each question is there once, with the counts of all events that asked it."""
    rules = [each for by_cluster in case.sets.values() for each in by_cluster.values()]
    hosts = Hosts(rules)
    has_listeners = any(each.broker_users.principals for each in rules)
    expected: dict[Any, list[dict[str, Any]]] = defaultdict(list)
    for row in case.usage:
        key = row | {
            "host": hosts.class_of(row["host"]),
            "listener": row["listener"] if has_listeners else None,
        }
        expected[tuple(key[name] for name in QUESTION)].append(row)
    found = {tuple(row[name] for name in QUESTION): row for row in rows}
    assert len(found) == len(rows)
    assert found.keys() == expected.keys()
    for key, asking in expected.items():
        row = found[key]
        assert (row.events, row.reference_count) == (
            sum(each["events"] for each in asking),
            sum(each["reference_count"] for each in asking),
        )
        assert row.allowed_events == sum(each["events"] for each in asking if each["allowed"])
        assert row.loud_events == sum(each["events"] for each in asking if not each["quiet"])
        assert row.first_seen.astimezone(UTC) == min(each["first_seen"] for each in asking)
        assert row.last_seen.astimezone(UTC) == max(each["last_seen"] for each in asking)
        asked_from = {each["host"] for each in asking}
        assert row.example_host in asked_from if row.host else row.example_host is None


def check_decisions(
    name: str, by_cluster: dict[str, Ruleset], case: Case, rows: list["Row"]
) -> None:
    """As many events of each kind are decided so as if each were decided by itself."""
    kind = ["cluster", "principal", "other_principals", "operation", "resource_type"]
    expected: Counter[Any] = Counter()
    for event in case.usage:
        rules = by_cluster.get(event["cluster"])
        decision = None if rules is None else decision_of(rules, event)
        told = (decision.allowed, decision.kind.value) if decision is not None else (None, None)
        key = *(event[each] for each in kind), event["resource_name"], *told
        expected[key] += event["events"]
    found: Counter[Any] = Counter()
    for row in rows:
        key = *(row[each] for each in kind), row.resource_name
        found[*key, row[f"{name}_allowed"], row[f"{name}_rule"]] += row.events
    assert found == expected


def check_explanation(name: str, rules: Ruleset | None, row: "Row") -> None:
    allows, denies, on_resource = (
        row[f"{name}_{which}"] for which in ("allows", "denies", "on_resource")
    )
    if rules is None:
        assert (allows, denies, on_resource) == (None, None, None)
        return
    if row.resource_name == ANY_RESOURCE and row.resource_type == "TOPIC":
        # Which ones these are is held against the authorizer in test_any_topic.py.
        decision = decision_of(rules, row.asDict() | {"host": row.example_host})
        acl = decision.rule.binding
        if acl is not None:
            assert rules.acls.index(acl) in (allows if decision.allowed else denies)
        return
    expected = behind(rules, row.asDict())
    assert (set(allows), set(denies)) == expected[:2]
    assert len(allows) + len(denies) == len(expected[0]) + len(expected[1])
    if rules.allow_everyone_if_no_acl_found:
        assert set(on_resource) == expected[2]
    else:
        assert on_resource is None
