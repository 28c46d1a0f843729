"""What `recommend` found, as tables: the first rows for people, all of them in files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.by_principal import AclsByPrincipal, Grouped
from aclbroker.pipeline.interface.coverage import coverage_table, write_coverage
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.left_out import left_out_table
from aclbroker.pipeline.interface.opened_rights import RIGHTS, rights_tables
from aclbroker.pipeline.interface.result import Cell, Table
from aclbroker.pipeline.jobs.recommend.doubts import PrincipalAcls
from aclbroker.pipeline.jobs.recommend.find import CHANGES, FLIPS, OPENED, Recommendation
from aclbroker.pipeline.jobs.recommend.prefix_rows import (
    ConsideredPrefix,
    prefix_frame,
    prefix_table,
)
from aclbroker.pipeline.spark.frames import frame_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ACLS: Final = "recommend/acls"
"""The files with what is recommended, which are no table."""

_CLUSTERS: Final = "recommend/clusters"
_COVERAGE: Final = "recommend/coverage"
_PRINCIPALS: Final = "recommend/principals"
_PREFIXES: Final = "recommend/prefixes"
_UNMET: Final = "recommend/unmet"

_TEXT, _NUMBER = pa.string(), pa.int64()
_CLUSTER_COLUMNS: Final = pa.schema(
    [
        ("cluster", _TEXT),
        *((name, _NUMBER) for name in ("acls", "recommended", "opened", "closed", "events")),
    ]
)
_PRINCIPAL_COLUMNS: Final = pa.schema(
    [
        ("cluster", _TEXT),
        ("principal", _TEXT),
        ("acls", _NUMBER),
        ("recommended", _NUMBER),
        ("allows", _NUMBER),
        ("allows_kept", _NUMBER),
        ("is_seen", pa.bool_()),
    ]
)
_UNMET_COLUMNS: Final = pa.schema(
    [
        ("cluster", _TEXT),
        ("principals", pa.list_(_TEXT)),
        *((name, _TEXT) for name in ("host", "operation", "resource_type", "resource_name")),
        ("reason", _TEXT),
    ]
)


class RecommendTables:
    """Everything of one recommendation, with the first ``top`` rows of each table for people.

    ``prefixes`` are those that were considered; None if none were asked for.
    """

    def __init__(
        self,
        inputs: Inputs,
        found: Recommendation,
        principals: Sequence[PrincipalAcls],
        prefixes: Sequence[ConsideredPrefix] | None,
        top: int,
    ) -> None:
        self._inputs = inputs
        self._found = found
        self._principals = principals
        self._prefixes = prefixes
        self._top = top

    def write(self) -> dict[str, str]:
        """Write all files, and return them with what each holds."""
        found, output, spark = self._found, self._inputs.output, self._inputs.spark
        wanted: dict[str, AclsByPrincipal] = {
            cluster: rules.by_principal for cluster, rules in found.rules.items()
        }
        # A cluster that is left out keeps its ACLs. Its file replaces one of an earlier run.
        wanted |= {
            cluster: Grouped(self._now(cluster))
            for cluster in found.left_out
            if cluster in self._inputs.current
        }
        outputs = output.acls(
            ACLS,
            dict(sorted(wanted.items())),
            current={cluster: self._now(cluster) for cluster in wanted},
        )
        output.table(_CLUSTERS, frame_of(spark, _CLUSTER_COLUMNS, self._of_clusters()))
        outputs[_CLUSTERS] = "every cluster, with its ACLs and the rights opened and closed"
        outputs[CHANGES] = "every ACL of now and every recommended one, with what becomes of it"
        output.table(_PRINCIPALS, frame_of(spark, _PRINCIPAL_COLUMNS, self._principals))
        outputs[_PRINCIPALS] = "every principal that ACLs name, with how many do"
        outputs[OPENED] = RIGHTS
        if self._prefixes is not None:
            output.table(_PREFIXES, prefix_frame(spark, self._prefixes))
            outputs[_PREFIXES] = "the prefixes that were considered, with their price"
        unmet = [(cluster, *_texts(each)) for cluster, each in self._unmet()]
        if unmet:
            output.table(_UNMET, frame_of(spark, _UNMET_COLUMNS, unmet))
            outputs[_UNMET] = "what was used, and no ACL can be recommended for"
        outputs |= write_coverage(self._inputs, self._logged(), _COVERAGE)
        if found.proof.flips is not None:
            outputs[FLIPS] = "what would be decided otherwise than now"
        return outputs

    def _logged(self) -> list[str]:
        return sorted({*self._found.rules, *self._found.left_out})

    def _now(self, cluster: str) -> Sequence[AclBinding]:
        current = self._inputs.current.get(cluster)
        return () if current is None else current.acls

    def _unmet(self) -> Iterator[tuple[str, Any]]:
        for cluster, unmet in self._found.unmet.items():
            for each in unmet:
                yield cluster, each

    def for_people(self) -> list[Table]:
        """Return the tables that have rows."""
        return [each for each in self._tables() if each.rows]

    def _tables(self) -> Iterator[Table]:
        if len(self._found.rules) > 1:
            yield self._clusters()
        yield from rights_tables(self._found.opened, self._top, OPENED)
        if self._found.left_out:
            yield left_out_table(self._found.left_out)
        yield self._silent()
        yield self._changing()
        if self._prefixes:
            yield prefix_table(self._prefixes, self._top, _PREFIXES)
        yield self._used_and_unmet()
        yield from coverage_table(self._inputs, self._logged(), _COVERAGE)
        if self._found.proof.flips is not None:
            yield self._flips(self._found.proof.flips)

    def _clusters(self) -> Table:
        columns = ("Cluster", "ACLs now", "Recommended", "Opened", "Closed", "Events")
        rows = list(self._of_clusters())
        return Table("Clusters", columns, rows[: self._top], len(rows), source=_CLUSTERS)

    def _of_clusters(self) -> Iterator[tuple[Cell, ...]]:
        """A row for each; what is not known of one is None."""
        for cluster, rules in self._found.rules.items():
            is_known = cluster in self._inputs.current
            events = self._found.proof.counts[cluster].events
            changed = _changed_rights(self._found, cluster)
            now = len(self._now(cluster)) if is_known else None
            yield cluster, now, len(rules), *changed, events

    def _silent(self) -> Table:
        silent = [each for each in self._principals if each.is_silent]
        silent.sort(key=lambda each: (each.allows_kept - each.allows, each))
        rows = [(*each[:2], each.allows, each.allows_kept) for each in silent[: self._top]]
        columns = ("Cluster", "Principal", "ALLOWs now", "Of these kept")
        note = "They lose what they are allowed. Who works more seldom than this log is among them."
        title = "Principals with ALLOWs that asked for nothing"
        return Table(title, columns, rows, len(silent), note, _PRINCIPALS)

    def _changing(self) -> Table:
        most = sorted(self._principals, key=lambda each: (-abs(each.after - each.before), each))
        rows = [each[:4] for each in most[: self._top]]
        columns = ("Cluster", "Principal", "ACLs now", "Recommended")
        title = "Principals whose ACLs change in number most"
        return Table(title, columns, rows, len(most), source=_PRINCIPALS)

    def _used_and_unmet(self) -> Table:
        unmet = [(cluster, *_texts(each)) for cluster, each in self._unmet()]
        rows: list[Sequence[Cell]] = [
            (cluster, principals[0], *further)
            for cluster, principals, _, *further in islice(unmet, self._top)
        ]
        columns = ("Cluster", "Principal", "Operation", "Resource type", "Resource", "Reason")
        title = "Used, but no ACL can be recommended"
        return Table(title, columns, rows, len(unmet), source=_UNMET)

    def _flips(self, flips: DataFrame) -> Table:
        columns = {
            "cluster": "Cluster",
            "principal": "Principal",
            "example_host": "Host",
            "operation": "Operation",
            "resource_type": "Resource type",
            "resource_name": "Resource",
            "events": "Events",
            "allowed_now": "Allowed now",
        }
        first = flips.orderBy("events", ascending=False).limit(self._top).select(*columns)
        rows: list[Sequence[Cell]] = [tuple(row) for row in first.collect()]
        total = sum(each.flips for each in self._found.proof.counts.values())
        title = "What would be decided otherwise"
        return Table(title, list(columns.values()), rows, total, source=FLIPS)


def _texts(unmet: Any) -> tuple[Any, ...]:
    operation, resource_type = unmet.operation.name, unmet.resource_type.name
    return unmet.principals, unmet.host, operation, resource_type, unmet.name, unmet.reason


def _changed_rights(found: Recommendation, cluster: str) -> tuple[Cell, Cell]:
    opened = found.opened.get(cluster)
    return (None, None) if opened is None else (opened.rights_opened, opened.rights_closed)
