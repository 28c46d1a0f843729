"""Tables with one ACL a row."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.ruleset import acl_id

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_ACL: Final = [
    pa.field(name, pa.string())
    for name in (
        *("cluster", "acl_id", "resource_type", "resource_name", "pattern_type"),
        *("principal", "host", "operation", "permission"),
    )
]


def acl_table(
    spark: SparkSession,
    rows: Iterable[tuple[str, AclBinding, Sequence[Any]]],
    further: Sequence[pa.Field],
) -> DataFrame:
    """Return a table of clusters, their ACLs, and ``further`` columns with the values of each."""
    schema = pa.schema([*_ACL, *further])
    columns = list(
        zip(*((cluster, *_values(acl), *values) for cluster, acl, values in rows), strict=True)
    )
    arrays = [
        pa.array(columns[at] if columns else [], field.type) for at, field in enumerate(schema)
    ]
    return spark.createDataFrame(pa.Table.from_arrays(arrays, schema=schema))


def _values(acl: AclBinding) -> tuple[str, ...]:
    return (
        acl_id(acl),
        acl.resource_type.name,
        acl.resource_name,
        acl.pattern_type.name,
        acl.principal,
        acl.host,
        acl.operation.name,
        acl.permission.name,
    )
