"""The prefixes that `recommend` considered, as rows of tables: their price, and what they open."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding, PatternType
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.opened import ChangedRights
from aclbroker.pipeline.analysis.prefixes import Candidate
from aclbroker.pipeline.analysis.recommendation import why_not
from aclbroker.pipeline.interface.result import Table
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_NAMED: Final = 5

PREFIX_COLUMNS: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string())
            for name in ("principal", "host", "resource_type", "operation", "prefix")
        ),
        pa.field("names", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("newly_allowed", pa.list_(pa.string())),
        pa.field("opens", pa.list_(pa.string())),
        pa.field("taken", pa.bool_()),
        pa.field("why_not", pa.string()),
    ]
)
"""The columns of the table of prefixes, behind the cluster."""


class ConsideredPrefix(NamedTuple):
    """A prefix that was considered, a row of the table; ``why_not`` is None if it is ``taken``.

    ``opens`` are the patterns of names that are opened under it, with their exceptions, of one that
    is recommended.
    """

    cluster: str
    principal: str
    host: str
    resource_type: str
    operation: str
    prefix: str
    names: int
    price: int
    newly_allowed: Sequence[str]
    opens: Sequence[str]
    taken: bool
    why_not: str | None


def prefix_rows(
    considered: Iterable[Candidate],
    rules: Ruleset,
    forbidden: Collection[AclBinding],
    maximum_price: int,
    opened: Iterable[ChangedRights],
) -> Iterator[tuple[object, ...]]:
    """Yield a row with `PREFIX_COLUMNS` for each prefix that was considered.

    ``rules`` are those that are recommended, ``opened`` the rights that these open.
    """
    taken = {acl for acl in rules.acls if acl.pattern_type is PatternType.PREFIXED}
    by_principal: dict[str, list[ChangedRights]] = {}
    for changed in opened:
        for principal in changed.region.principals.names:
            by_principal.setdefault(principal, []).append(changed)
    for one in considered:
        reason = why_not(one, taken, forbidden, maximum_price)
        near = () if reason else by_principal.get(one.grantee.principal, ())
        yield (
            one.grantee.principal,
            one.grantee.host,
            one.grantee.resource_type.name,
            one.operation.name,
            one.prefix,
            one.names,
            one.price,
            list(one.examples),
            sorted(_opened_by(one, near)),
            reason is None,
            reason,
        )


def best_first(rows: Iterable[ConsideredPrefix]) -> list[ConsideredPrefix]:
    """Return prefixes, those first that are recommended, cost least and stand for most names."""
    return sorted(rows, key=lambda each: (not each.taken, each.price, -each.names, each[:6]))


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
            *each[:2],
            *each[3:8],
            ", ".join(each.newly_allowed[:_NAMED]),
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
    return frame_of(spark, pa.schema([pa.field("cluster", pa.string()), *PREFIX_COLUMNS]), rows)
