"""Decisions by a join in SQL, written from Kafka's documentation: a second opinion for tests.

Every resource pattern that matches a name is made from it: the name, ``*``, and each beginning.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from aclbroker.acl.hosts import canonical
from aclbroker.pipeline.acls.ruleset import Ruleset

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_ACLS = (
    "cluster string, resource_type string, resource_name string, pattern_type string, "
    "principal string, host string, operation string, permission string"
)
_CLUSTERS = "cluster string, super_users array<string>, is_open boolean"
_IMPLIED = "asked string, granted string"
_OPERATIONS = [
    *(("DESCRIBE", granted) for granted in ("READ", "WRITE", "DELETE", "ALTER")),
    ("DESCRIBE_CONFIGS", "ALTER_CONFIGS"),
]

_QUERY = """
WITH patterns AS (
  SELECT *, 'LITERAL' AS pattern_type, resource_name AS pattern FROM {questions}
  UNION ALL
  SELECT *, 'LITERAL', '*' FROM {questions} WHERE resource_name <> '*'
  UNION ALL
  SELECT questions.*, 'PREFIXED', left(resource_name, length) FROM {questions} AS questions
  LATERAL VIEW explode(sequence(1, length(resource_name))) AS length
  WHERE resource_name <> ''
),
matches AS (
  SELECT
    patterns.cluster, id, permission,
    acls.principal IN (patterns.principal, 'User:*')
      AND acls.host IN (patterns.host, '*')
      AND (
        acls.operation IN (patterns.operation, 'ALL')
        OR (permission = 'ALLOW' AND implied.granted IS NOT NULL)
      ) AS applies
  FROM patterns
  JOIN {acls} AS acls
    ON acls.cluster = patterns.cluster
    AND acls.resource_type = patterns.resource_type
    AND acls.pattern_type = patterns.pattern_type
    AND acls.resource_name = patterns.pattern
  LEFT JOIN {implied} AS implied
    ON implied.asked = patterns.operation AND implied.granted = acls.operation
),
found AS (
  SELECT
    cluster, id,
    bool_or(applies AND permission = 'DENY') AS denies,
    bool_or(applies AND permission = 'ALLOW') AS allows
  FROM matches GROUP BY cluster, id
)
SELECT
  questions.cluster, questions.id,
  CASE
    WHEN array_contains(super_users, principal) THEN 'SuperUser'
    WHEN denies OR allows THEN 'MatchingAcl'
    WHEN found.id IS NULL AND is_open THEN 'DefaultAllow'
    ELSE 'DefaultDeny'
  END AS sql_rule,
  array_contains(super_users, principal)
    OR CASE WHEN found.id IS NULL THEN is_open ELSE allows AND NOT denies END AS sql_allowed
FROM {questions} AS questions
JOIN {clusters} AS clusters ON clusters.cluster = questions.cluster
LEFT JOIN found ON found.cluster = questions.cluster AND found.id = questions.id
"""


def decided_by_sql(questions: DataFrame, rules: Mapping[str, Ruleset]) -> DataFrame:
    """Return the ``cluster`` and ``id`` of each question with ``sql_allowed`` and ``sql_rule``."""
    spark = questions.sparkSession
    acls = [
        (
            *(cluster, acl.resource_type.name, acl.resource_name, acl.pattern_type.name),
            *(acl.principal, canonical(acl.host), acl.operation.name, acl.permission.name),
        )
        for cluster, ruleset in rules.items()
        for acl in ruleset.acls
    ]
    clusters = [
        (cluster, sorted(each.super_users), each.allow_everyone_if_no_acl_found)
        for cluster, each in rules.items()
    ]
    return spark.sql(
        _QUERY,
        questions=questions,
        acls=spark.createDataFrame(acls, _ACLS),
        clusters=spark.createDataFrame(clusters, _CLUSTERS),
        implied=spark.createDataFrame(_OPERATIONS, _IMPLIED),
    )
