"""The prefixes that `recommend` considered, as rows of tables: their price, and what they open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from aclbroker.broker.acl.bindings import PatternType
from aclbroker.broker.acl.operations import GRANTED_BY
from aclbroker.pipeline.analysis.opened import ChangedRights
from aclbroker.pipeline.analysis.prefixes import Candidate
from aclbroker.pipeline.analysis.recommendation import why_not
from aclbroker.pipeline.interface.result import Table
from aclbroker.pipeline.jobs.recommend.find import Recommendation
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED: Final = 5

_COLUMNS: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string())
            for name in ("cluster", "principal", "host", "resource_type", "operation", "prefix")
        ),
        pa.field("names", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("newly_allowed", pa.list_(pa.string())),
        pa.field("opens", pa.list_(pa.string())),
        pa.field("taken", pa.bool_()),
        pa.field("why_not", pa.string()),
    ]
)


class ConsideredPrefix(NamedTuple):
    """A prefix that was considered; ``why_not`` is None if it is recommended.

    ``opens`` are the patterns of names that are opened under it, with their exceptions, of one that
    is recommended.
    """

    cluster: str
    candidate: Candidate
    opens: tuple[str, ...]
    why_not: str | None


def considered_prefixes(found: Recommendation, maximum_price: int) -> list[ConsideredPrefix]:
    """Return all prefixes that were considered, those first that are recommended and cost least."""
    rows = []
    for cluster, considered in found.considered.items():
        acls = found.rules[cluster].acls
        taken = {acl for acl in acls if acl.pattern_type is PatternType.PREFIXED}
        forbidden = found.forbidden.get(cluster, ())
        opened: dict[str, list[ChangedRights]] = {}
        for changed in found.opened[cluster].opened if cluster in found.opened else ():
            for principal in changed.region.principals.names:
                opened.setdefault(principal, []).append(changed)
        for each in considered:
            reason = why_not(each, taken, forbidden, maximum_price)
            near = () if reason else opened.get(each.grantee.principal, ())
            opens = tuple(_opened_by(each, near))
            rows.append(ConsideredPrefix(cluster, each, opens, reason))
    return sorted(
        rows,
        key=lambda each: (each.why_not is not None, each.candidate.price, -each.candidate.names),
    )


def _opened_by(candidate: Candidate, opened: Sequence[ChangedRights]) -> list[str]:
    """Return the names under a prefix that are opened for its operation.

    ``opened`` is what is opened to its principal.
    """
    found = []
    for each in opened:
        names = each.region.names_of(candidate.grantee.principal)
        if (
            names.resource_type is candidate.grantee.resource_type
            and names.key[0].startswith(candidate.prefix)
            and any(GRANTED_BY[one] >> candidate.operation & 1 for one in each.region.operations)
        ):
            found.append(str(names))
    return found


def prefix_table(rows: Sequence[ConsideredPrefix], top: int, source: str) -> Table:
    """Return the first prefixes, for a report; ``source`` names the table of all."""
    columns = (
        "Cluster",
        "Principal",
        "Resource type",
        "Operation",
        "Prefix",
        "Names",
        "Price",
        "Newly allowed",
        "Opens",
        "Why not",
    )
    cells = [
        (
            each.cluster,
            each.candidate.grantee.principal,
            each.candidate.grantee.resource_type.name,
            each.candidate.operation.name,
            each.candidate.prefix,
            each.candidate.names,
            each.candidate.price,
            ", ".join(each.candidate.examples[:_NAMED]),
            "; ".join(each.opens[:_NAMED]),
            each.why_not or "",
        )
        for each in rows[:top]
    ]
    note = (
        "The price is how many existing names the principal would newly be allowed. What is opened "
        "are also names that do not exist yet."
    )
    return Table("Prefixes considered", columns, cells, len(rows), note, source)


def prefix_frame(spark: SparkSession, rows: Sequence[ConsideredPrefix]) -> DataFrame:
    """Return all prefixes as rows of Spark."""
    return frame_of(spark, _COLUMNS, map(_values, rows))


def _values(each: ConsideredPrefix) -> tuple[object, ...]:
    one = each.candidate
    return (
        each.cluster,
        one.grantee.principal,
        one.grantee.host,
        one.grantee.resource_type.name,
        one.operation.name,
        one.prefix,
        one.names,
        one.price,
        list(one.examples),
        list(each.opens),
        each.why_not is None,
        each.why_not,
    )
