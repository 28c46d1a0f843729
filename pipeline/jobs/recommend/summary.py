"""What `recommend` found, for people to read, and the files it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.analysis.prefixes import Candidate
from aclbroker.pipeline.analysis.recommendation import why_not
from aclbroker.pipeline.analysis.reduction import Reduction, reduction
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.jobs.recommend.find import Recommendation
from aclbroker.pipeline.replay.drift import Drift, drift_warnings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED: Final = 5

_PREFIX_TABLE: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string())
            for name in ("cluster", "principal", "host", "resource_type", "operation", "prefix")
        ),
        pa.field("names", pa.int64()),
        pa.field("price", pa.int64()),
        pa.field("newly_allowed", pa.list_(pa.string())),
        pa.field("taken", pa.bool_()),
        pa.field("why_not", pa.string()),
    ]
)


def summary(inputs: Inputs, found: Recommendation, *, maximum_price: int, top: int) -> JobResult:
    """Write the files, and return what was found, with the first ``top`` rows of each table."""
    return _RecommendSummary(inputs, found, maximum_price, top).result()


@dataclass(frozen=True, slots=True)
class _Prefix:
    cluster: str
    candidate: Candidate
    why_not: str | None


@dataclass
class _RecommendSummary:
    inputs: Inputs
    found: Recommendation
    maximum_price: int
    top: int
    reductions: dict[str, Reduction] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.prefixes = list(self._considered())
        for cluster, rules in self.found.rules.items():
            self.reductions[cluster] = reduction(self._now(cluster), rules.acls)

    def _now(self, cluster: str) -> Sequence[AclBinding]:
        current = self.inputs.current.get(cluster)
        return () if current is None else current.acls

    def _considered(self) -> Iterator[_Prefix]:
        for cluster, draft in self.found.drafts.items():
            taken = {
                acl
                for acl in self.found.rules[cluster].acls
                if acl.pattern_type is PatternType.PREFIXED
            }
            forbidden = self.found.forbidden.get(cluster, ())
            for each in draft.considered:
                reason = why_not(each, taken, forbidden, self.maximum_price)
                yield _Prefix(cluster, each, reason)

    def result(self) -> JobResult:
        rules = self.found.rules
        outputs = dict(
            self.inputs.output.acls(
                "recommend/acls",
                {cluster: ruleset.acls for cluster, ruleset in rules.items()},
                current={cluster: self._now(cluster) for cluster in rules},
            )
        )
        self.inputs.output.table("recommend/prefixes", self._prefix_table())
        outputs["recommend/prefixes"] = "the prefixes that were considered, with their price"
        if self.found.proof.flips is not None:
            outputs["recommend/flips"] = "what would be decided otherwise than now"
        return JobResult(
            "recommend",
            "Least privilege: the smallest set of ACLs for what was used",
            self._sentence(),
            figures=self._figures(),
            tables=[each for each in self._tables() if each.rows],
            charts=[self._chart()],
            warnings=list(self._warnings()),
            outputs=outputs,
        )

    def _sentence(self) -> str:
        counts = self.found.proof.counts.values()
        before = sum(len(self._now(cluster)) for cluster in self.found.rules)
        after = sum(len(rules.acls) for rules in self.found.rules.values())
        flips = sum(each.flips for each in counts)
        outcome = f"all but {flips:,} of them" if flips else "all of them"
        return (
            f"{after:,} ACLs{f' instead of {before:,}' if before else ''} allow what was used from "
            f"{self.inputs.window.first_day} to {self.inputs.window.last_day}: a replay of "
            f"{sum(each.questions for each in counts):,} questions "
            f"({sum(each.events for each in counts):,} events) decides {outcome} as now."
        )

    def _figures(self) -> list[Figure]:
        counts = self.found.proof.counts.values()
        acls = [acl for rules in self.found.rules.values() for acl in rules.acls]
        denies = sum(acl.permission is AclPermission.DENY for acl in acls)
        prefixed = sum(acl.pattern_type is PatternType.PREFIXED for acl in acls)
        grants = "principal, resource pattern and operation of an ALLOW"
        return [
            Figure("ACLs now", sum(len(self._now(cluster)) for cluster in self.found.rules)),
            Figure("ACLs recommended", len(acls)),
            Figure("DENY ACLs kept", denies, "they hold for something that is granted"),
            Figure("PREFIXED ACLs recommended", prefixed),
            Figure("grants kept", self._reduced("kept"), f"{grants}; all of it stays allowed"),
            Figure("grants narrowed", self._reduced("narrowed"), "a part stays allowed"),
            Figure("grants gone", self._reduced("gone"), "nobody used any of it"),
            Figure("questions replayed", sum(each.questions for each in counts)),
            Figure("events replayed", sum(each.events for each in counts)),
            Figure(
                "allowed events proven",
                sum(each.allowed_events - each.lost_events for each in counts),
                "allowed now, and under the recommended ACLs",
            ),
            Figure("allowed events that would be denied", sum(each.lost_events for each in counts)),
            Figure("denied events that would be allowed", sum(e.gained_events for e in counts)),
            Figure(
                "events of super users",
                sum(each.exempt_events for each in counts),
                "and of broker users on their listener; they need no ACL",
            ),
        ]

    def _reduced(self, name: str) -> int:
        return sum(getattr(each, name) for each in self.reductions.values())

    def _tables(self) -> Iterator[Table]:
        if len(self.found.rules) > 1:
            yield self._clusters()
        yield self._principals()
        yield self._prefixes()
        yield self._unmet()
        if self.found.proof.flips is not None:
            yield self._flips(self.found.proof.flips)

    def _clusters(self) -> Table:
        columns = ("Cluster", "ACLs now", "Recommended", "Kept", "Narrowed", "Gone", "Events")
        rows = [
            (
                cluster,
                len(self._now(cluster)),
                len(rules.acls),
                *self.reductions[cluster],
                self.found.proof.counts[cluster].events,
            )
            for cluster, rules in self.found.rules.items()
        ]
        return Table("Clusters", columns, rows[: self.top], len(rows))

    def _principals(self) -> Table:
        before: Counter[tuple[str, str]] = Counter()
        after: Counter[tuple[str, str]] = Counter()
        for cluster, rules in self.found.rules.items():
            before.update((cluster, acl.principal) for acl in self._now(cluster))
            after.update((cluster, acl.principal) for acl in rules.acls)
        everyone = sorted({*before, *after}, key=lambda who: (-abs(after[who] - before[who]), who))
        rows = [(*who, before[who], after[who]) for who in everyone[: self.top]]
        columns = ("Cluster", "Principal", "ACLs now", "Recommended")
        return Table("Principals whose ACLs change in number most", columns, rows, len(everyone))

    def _prefixes(self) -> Table:
        columns = (
            "Cluster",
            "Principal",
            "Resource type",
            "Operation",
            "Prefix",
            "Names",
            "Price",
            "Newly allowed",
            "Why not",
        )
        best = sorted(
            self.prefixes,
            key=lambda each: (
                each.why_not is not None,
                each.candidate.price,
                -each.candidate.names,
            ),
        )
        rows = [
            (
                each.cluster,
                each.candidate.grantee.principal,
                each.candidate.grantee.resource_type.name,
                each.candidate.operation.name,
                each.candidate.prefix,
                each.candidate.names,
                each.candidate.price,
                ", ".join(each.candidate.examples[:_NAMED]),
                each.why_not or "",
            )
            for each in best[: self.top]
        ]
        note = "The price is how many existing names the principal would newly be allowed."
        return Table("Prefixes considered", columns, rows, len(best), note)

    def _prefix_table(self) -> DataFrame:
        columns: list[list[object]] = [[] for _ in _PREFIX_TABLE]
        for each in self.prefixes:
            one = each.candidate
            values = (
                each.cluster,
                one.grantee.principal,
                one.grantee.host,
                one.grantee.resource_type.name,
                one.operation.name,
                one.prefix,
                one.names,
                one.price,
                one.examples,
                each.why_not is None,
                each.why_not,
            )
            for column, value in zip(columns, values, strict=True):
                column.append(value)
        arrays = [
            pa.array(column, each.type) for column, each in zip(columns, _PREFIX_TABLE, strict=True)
        ]
        return self.inputs.spark.createDataFrame(pa.Table.from_arrays(arrays, schema=_PREFIX_TABLE))

    def _unmet(self) -> Table:
        unmet = [
            (cluster, each)
            for cluster, draft in self.found.drafts.items()
            for each in draft.grants.unmet
        ]
        rows = [
            (
                cluster,
                each.principals[0],
                each.operation.name,
                each.resource_type.name,
                each.name,
                each.reason,
            )
            for cluster, each in unmet[: self.top]
        ]
        columns = ("Cluster", "Principal", "Operation", "Resource type", "Resource", "Reason")
        return Table("Used, but no ACL can be recommended", columns, rows, len(unmet))

    def _chart(self) -> Chart:
        before: Counter[ResourceType] = Counter()
        after: Counter[ResourceType] = Counter()
        for cluster, rules in self.found.rules.items():
            before.update(acl.resource_type for acl in self._now(cluster))
            after.update(acl.resource_type for acl in rules.acls)
        types = sorted({*before, *after}, key=lambda each: (-before[each], each))
        return Chart(
            "ACLs by resource type",
            "bars",
            [each.name for each in types],
            {
                "now": [before[each] for each in types],
                "recommended": [after[each] for each in types],
            },
        )

    def _warnings(self) -> Iterator[str]:
        counts = self.found.proof.counts
        flips = sum(each.flips for each in counts.values())
        if flips:
            yield (
                f"{flips:,} questions would be decided otherwise than now, and no ACL can be "
                "recommended that mends it: see recommend/flips"
            )
        if self.found.any_topic_lost:
            yield self._about_any_topic()
        yield from self._about_silent()
        known = self.inputs.current
        yield from self._about_drift()
        for cluster in counts:
            if cluster not in known:
                yield (
                    f"the ACLs of cluster {cluster} are not given: what the log says was allowed "
                    f"is taken for used ({counts[cluster].mixed_events:,} events are of "
                    "questions that it answers both ways), and no DENY is kept"
                )
        missing = sorted(set(known) - set(counts))
        if missing:
            yield f"no recommendation for {', '.join(missing)}: the log has nothing of it"

    def _about_drift(self) -> Iterator[str]:
        known = [
            each for name, each in self.found.proof.counts.items() if name in self.inputs.current
        ]
        drift = Drift(
            sum(each.denied_since for each in known),
            sum(each.allowed_since for each in known),
            sum(each.mixed_events for each in known),
        )
        yield from drift_warnings(drift, self.inputs.usage, self.inputs.current)

    def _about_any_topic(self) -> str:
        names = [principal for _, principal in self.found.any_topic_lost]
        more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
        return (
            "these principals were allowed something on any topic, as idempotent producers ask "
            f"for, and would be on none, because they used none: {', '.join(names[:_NAMED])}{more}"
        )

    def _about_silent(self) -> Iterator[str]:
        """Warn of principals that lose everything because the log does not know them."""
        silent = set()
        for cluster, evidence in self.found.evidence.items():
            seen = {principal for session in evidence.sessions for principal in session}
            having = {acl.principal for acl in self._now(cluster)} - {WILDCARD_PRINCIPAL}
            silent |= {(cluster, principal) for principal in having - seen}
        if silent:
            yield (
                f"{len(silent):,} principals with ACLs asked for nothing from "
                f"{self.inputs.window.first_day} to {self.inputs.window.last_day}, and would lose "
                "all of them; what runs more seldom than that is not known"
            )

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
        first = flips.orderBy("events", ascending=False).limit(self.top).select(*columns)
        rows: list[Sequence[Cell]] = [tuple(row) for row in first.collect()]
        total = sum(each.flips for each in self.found.proof.counts.values())
        return Table("What would be decided otherwise", list(columns.values()), rows, total)
