"""What the pipeline decides is what others decide: Kafka's own class, and a join in SQL.

The questions are random and different (`tests.pipeline.questions`). Not among them are resources
whose names begin with ``*`` or with a character below it, of which Kafka 4.3.0's class thinks
otherwise: see `test_kafka_thinks_otherwise_of_names_that_begin_with_a_star`.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from tests.support import toolchain

toolchain.require_spark()

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from pyspark.sql.types import StructType

from aclbroker.acl.authorizer import RuleKind, Session
from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.hosts import canonical
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.stored import USAGE, read_usage
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.deciding import Rules, decide
from aclbroker.pipeline.replay.questions import QUESTION, gathered
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.table import Batches, Usage
from tests.pipeline.kafka_decides import Answers, KafkaAuthorizer, rule_kinds
from tests.pipeline.questions import (
    Column,
    Questions,
    random_acls,
    random_questions,
)
from tests.pipeline.sql_oracle import decided_by_sql
from tools.audit_data.world import Sizes, World, make_acls

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# About 70 seconds on two cores; a busy machine may take several minutes.
# The oracles are queries of Spark, too.
pytestmark = [pytest.mark.timeout(1200), pytest.mark.apart, pytest.mark.engines("spark")]

SUPER_USERS = frozenset({"User:admin", "User:CN=the one,OU=Dev, O=Acme"})


def realistic_acls() -> list[AclBinding]:
    """The ACLs of a big cluster, but for those whom Kafka's class pays for with each question.

    These are the ones on ``*``, of which 20 stay, and those of prefixes so short that hundreds of
    them match each name.
    """
    acls = make_acls(World(Sizes()), seed=7)
    everything = [acl for acl in acls if acl.resource_name == WILDCARD]
    return everything[:20] + [
        acl
        for acl in acls
        if acl.resource_name != WILDCARD
        and (acl.pattern_type is PatternType.LITERAL or len(acl.resource_name) >= 12)
    ]


def all_rules() -> dict[str, Ruleset]:
    """By cluster: 90,000 ACLs, 3,000 of short prefixes, 300 and another default, 1,000 on ``*``."""
    prefixes = random_acls(3000, 1, everything=0.002, prefixes=0.7)
    everything = random_acls(2000, 2, everything=0.6)
    sparse = Ruleset(ordered(random_acls(300, 3, prefixes=0.3)), SUPER_USERS)
    return {
        "realistic": Ruleset(ordered(realistic_acls()), SUPER_USERS),
        "prefixes": Ruleset(ordered(prefixes), SUPER_USERS),
        "open": replace(sparse, allow_everyone_if_no_acl_found=True),
        "everything": Ruleset(ordered(everything), SUPER_USERS),
    }


FEWER = 1 if os.environ.get("HYPOTHESIS_PROFILE") == "nightly" else 4
"""By what the numbers of questions are divided: at night there is time for 3,200,000."""

COUNTS = {
    "realistic": 1_000_000 // FEWER,
    "prefixes": 1_000_000 // FEWER,
    "open": 1_000_000 // FEWER,
    "everything": 200_000 // FEWER,
}
"""How many questions are asked of whom. Kafka's class reads all ACLs on ``*`` for each question."""


SMALL_COUNT = sum(COUNTS.values()) - COUNTS["realistic"]


MARKS = {kind.value: 1000**number for number, kind in enumerate(RuleKind)}
"""What an event adds to the count of references, on which nothing depends, to tell Kafka's rule.

Questions are added up that differ in their hosts alone, of which there are fewer than 1,000.
"""


class Compared(NamedTuple):
    """The questions as the job `ingest` stores usage, with what Kafka decides; rules by cluster.

    ``usage``: the same as Spark's rows, with ``id`` and ``deciding_acl``.
    """

    stored: Usage
    usage: DataFrame
    sets: dict[str, dict[str, Ruleset]]

    def some(self, every: int) -> DataFrame:
        """Return every n-th question, without those of the set that takes long to index."""
        return self.usage.where((F.col("id") % every == 0) & (F.col("cluster") != "realistic"))

    @property
    def small_sets(self) -> dict[str, dict[str, Ruleset]]:
        """The rules of the clusters that `some` asks about."""
        rules = self.sets["ours"]
        return {"ours": {name: rules[name] for name in rules if name != "realistic"}}

    def decided(self, every: int, **options: Any) -> DataFrame:
        """Return what the pipeline decides on every n-th question, whatever its host means."""
        questions = self.some(every).select(
            *("id", *QUESTION, "allowed", "rule", "deciding_acl"),
            F.col("host").alias("example_host"),
        )
        return replay.decided(questions, self.small_sets, **options)


@pytest.fixture(scope="module")
def kafka_authorizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAuthorizer]:
    authorizer = KafkaAuthorizer(tmp_path_factory.mktemp("kafka-decides"))
    yield authorizer
    authorizer.close()


@pytest.fixture(scope="module")
def compared(
    spark: SparkSession,
    kafka_authorizer: KafkaAuthorizer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Compared:
    place = tmp_path_factory.mktemp("questions")
    rules = all_rules()
    for seed, (cluster, count) in enumerate(COUNTS.items()):
        questions = random_questions(rules[cluster], count, seed)
        answers = kafka_authorizer.decide(rules[cluster], questions)
        table = _usage(questions, answers)
        directory = place / USAGE / f"cluster={cluster}" / "day=2026-01-01"
        directory.mkdir(parents=True)
        for start in range(0, count, 250_000):
            pq.write_table(table.slice(start, 250_000), directory / f"{start}.parquet")
    usage = spark.read.parquet(str(place / USAGE)).withColumn("day", F.to_date("day"))
    return Compared(read_usage(spark, str(place)), usage, {"ours": rules})


def _usage(questions: Questions, answers: Answers) -> pa.Table:
    count = len(questions.principal)
    moment = pa.scalar(datetime(2026, 1, 1, tzinfo=UTC), pa.timestamp("us", "UTC"))
    one = pa.repeat(pa.scalar(1, pa.int64()), count)
    rules = rule_kinds(answers.rule)
    texts = pa.array(questions.texts)
    hosts = pa.array([canonical(text) for text in questions.texts])
    return pa.table(
        {
            "id": np.arange(count),
            "listener": pa.nulls(count, pa.string()),
            "principal": _chosen(questions.principal, texts),
            "other_principals": pa.nulls(count, pa.string()),
            "host": _chosen(questions.host, hosts),
            "operation": _chosen(questions.operation, [each.name for each in AclOperation]),
            "resource_type": _chosen(questions.resource_type, [each.name for each in ResourceType]),
            "resource_name": _chosen(questions.resource_name, texts),
            "api": pa.repeat("Fetch", count),
            "allowed": answers.allowed.astype(bool),
            "rule": pa.array(rules).dictionary_encode(),
            "quiet": pa.repeat(False, count),
            "events": one,
            "reference_count": [MARKS[kind] for kind in rules],
            "first_seen": pa.repeat(moment, count),
            "last_seen": pa.repeat(moment, count),
            "deciding_acl": answers.rule,
        }
    )


def _chosen(positions: Column, values: Any) -> pa.DictionaryArray:
    return pa.DictionaryArray.from_arrays(positions, values)


@pytest.mark.thorough
def test_decisions_are_those_of_kafkas_own_class(spark: SparkSession, compared: Compared) -> None:
    rules = spark.sparkContext.broadcast({"ours": Rules(compared.sets["ours"])})
    marks = pa.array([MARKS[kind.value] for kind in RuleKind])
    kinds = pa.array([kind.value for kind in RuleKind])

    def counts(batches: Batches) -> Batches:
        with uncollected():
            for batch in batches:
                decided = decide(batch, rules.value)
                allowed, rule, events = (
                    decided[name] for name in ("ours_allowed", "ours_rule", "events")
                )
                mark = marks.take(pc.index_in(rule, kinds))
                same = pc.and_(
                    pc.equal(decided["allowed_events"], pc.if_else(allowed, events, 0)),
                    pc.equal(decided["reference_count"], pc.multiply(mark, events)),
                )
                columns = [decided["cluster"], allowed, rule, same, events]
                yield pa.RecordBatch.from_arrays(columns, schema.names)

    schema = StructType.fromDDL(
        "cluster string, allowed boolean, rule string, same boolean, events long"
    )
    decided = gathered(compared.stored, compared.sets, counts, schema)
    rows = decided.groupBy(*schema.names[:4]).sum("events").collect()
    found = {tuple(row) for row in rows}
    assert {row[:3] for row in found} == {
        *((cluster, allowed, "MatchingAcl") for cluster in COUNTS for allowed in (True, False)),
        *((cluster, True, "SuperUser") for cluster in COUNTS),
        *((cluster, False, "DefaultDeny") for cluster in COUNTS),
        ("open", True, "DefaultAllow"),
    }
    assert [row for row in found if not row[3]] == []
    assert sum(row[4] for row in found) == sum(COUNTS.values())


@pytest.mark.thorough
def test_the_acl_that_kafka_names_is_among_those_that_decide(compared: Compared) -> None:
    decided = compared.decided(40, explain=True).where(F.col("rule") == "MatchingAcl")
    deciding = F.when(F.col("allowed"), F.col("ours_allows")).otherwise(F.col("ours_denies"))
    named = F.array_contains(deciding, F.col("deciding_acl"))
    counts = {row[0]: row[1] for row in decided.groupBy(named).count().collect()}
    assert list(counts) == [True]
    assert counts[True] > 5000 // FEWER


@pytest.mark.thorough
def test_hosts_that_no_acl_names_change_no_decision_if_they_are_left_out(
    compared: Compared,
) -> None:
    """What `gathered` makes of the questions, and what is decided of each with its host."""
    usage = compared.some(20)
    sets = compared.small_sets
    asked = replay.replayed(Usage(usage), sets)
    allowed = F.when(F.col("ours_allowed"), F.col("events")).otherwise(0)
    (found,) = asked.agg(
        F.sum("events").alias("events"),
        F.count("*").alias("questions"),
        F.sum((F.col("allowed_events") != allowed).cast("int")).alias("wrong"),
    ).collect()
    assert found.events == SMALL_COUNT // 20
    assert found.questions < found.events
    assert found.wrong == 0
    same = F.col("ours_allowed") == F.col("allowed")
    counts = {row[0]: row[1] for row in compared.decided(20).groupBy(same).count().collect()}
    assert counts == {True: found.events}


@pytest.mark.thorough
def test_the_same_is_decided_by_a_join_in_sql(compared: Compared) -> None:
    decided = compared.decided(100)
    by_sql = decided_by_sql(compared.some(100), compared.small_sets["ours"])
    same = (F.col("ours_allowed") == F.col("sql_allowed")) & (
        F.col("ours_rule") == F.col("sql_rule")
    )
    joined = decided.join(by_sql, ["cluster", "id"])
    assert {row[0]: row[1] for row in joined.groupBy(same).count().collect()} == {
        True: SMALL_COUNT // 100
    }


@pytest.mark.parametrize(
    ("permission", "theirs", "ours"),
    [
        (AclPermission.DENY, [False, True, False], [False, False, False]),
        (AclPermission.ALLOW, [True, False, True], [True, True, True]),
    ],
)
def test_kafka_thinks_otherwise_of_names_that_begin_with_a_star(
    kafka_authorizer: KafkaAuthorizer,
    permission: AclPermission,
    theirs: list[bool],
    ours: list[bool],
) -> None:
    """To 4.3.0 the ACLs on ``*`` are of the group ``*``, and not of the group ``*x``, nor prefixes.

    So whoever is denied all groups may use that one, and whoever is allowed all may not. Here the
    ACLs on ``*`` are of all names.
    """
    acl = AclBinding(
        ResourceType.GROUP,
        WILDCARD,
        PatternType.LITERAL,
        "User:alice",
        WILDCARD,
        AclOperation.READ,
        permission,
    )
    denies = permission is AclPermission.DENY
    rules = Ruleset((acl,), frozenset({"User:admin"}), allow_everyone_if_no_acl_found=denies)
    names = ["*", "*x", "x"]
    texts = ["User:alice", "10.0.0.1", *names]
    asked = [(0, 1, AclOperation.READ, ResourceType.GROUP, texts.index(name)) for name in names]
    questions = Questions(texts, *np.array(asked, np.int32).T)
    assert kafka_authorizer.decide(rules, questions).allowed.tolist() == theirs
    session, action = Session(("User:alice",), "10.0.0.1", ""), AclOperation.READ
    decided = rules.authorizer().authorize(session, action, ResourceType.GROUP, names)
    assert [decision.allowed for decision in decided] == ours
