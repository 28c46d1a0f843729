"""What `recommend` found, for people to read, and the files it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.analysis.opened import OPENS_NOTHING
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.opened_rights import RIGHTS, rights_frame, rights_tables
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.jobs.recommend.find import Recommendation
from aclbroker.pipeline.jobs.recommend.prefix_rows import (
    considered_prefixes,
    prefix_frame,
    prefix_table,
)
from aclbroker.pipeline.replay.drift import Drift, drift_warnings

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NAMED: Final = 5


def summary(
    inputs: Inputs, found: Recommendation, *, prefixes: PrefixOptions | None, top: int
) -> JobResult:
    """Write the files, and return what was found, with the first ``top`` rows of each table."""
    return _RecommendSummary(inputs, found, prefixes, top).result()


@dataclass
class _RecommendSummary:
    inputs: Inputs
    found: Recommendation
    options: PrefixOptions | None
    top: int

    def __post_init__(self) -> None:
        price = 0 if self.options is None else self.options.maximum_price
        self.prefixes = considered_prefixes(self.found, price)
        opened = self.found.opened.values()
        self.rights_opened = sum(each.rights_opened for each in opened)
        self.rights_closed = sum(each.rights_closed for each in opened)

    def _now(self, cluster: str) -> Sequence[AclBinding]:
        current = self.inputs.current.get(cluster)
        return () if current is None else current.acls

    def result(self) -> JobResult:
        rules = self.found.rules
        outputs = dict(
            self.inputs.output.acls(
                "recommend/acls",
                {cluster: ruleset.acls for cluster, ruleset in rules.items()},
                current={cluster: self._now(cluster) for cluster in rules},
            )
        )
        output, spark = self.inputs.output, self.inputs.spark
        output.table("recommend/opened", rights_frame(spark, self.found.opened))
        outputs["recommend/opened"] = RIGHTS
        if self.options is not None:
            output.table("recommend/prefixes", prefix_frame(spark, self.prefixes))
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
            alarms=self._alarms(),
        )

    def _alarms(self) -> dict[str, int]:
        is_known = len(self.found.opened) == len(self.found.rules)
        return {"opened": self.rights_opened} if self.rights_opened or is_known else {}

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
            f"({sum(each.events for each in counts):,} events) decides {outcome} as now. "
            f"{self._opened()}"
        )

    def _opened(self) -> str:
        """Say what the recommended sets open, of those clusters where that is known."""
        found = self.found.opened
        if not found:
            return "What it opens is not known, because the current ACLs are not given."
        opening = {name: each for name, each in found.items() if each.opened}
        if not opening:
            known = "" if len(found) == len(self.found.rules) else f"In {', '.join(found)} it "
            return f"{known or 'It '}{OPENS_NOTHING}."
        cluster, first = next(iter(opening.items()))
        if len(self.found.rules) == 1:
            return f"It {first.sentence()}."
        others = f"; all together {self.rights_opened:,} rights" if len(opening) > 1 else ""
        return f"In {cluster} it {first.sentence()}{others}."

    def _figures(self) -> list[Figure]:
        counts = self.found.proof.counts.values()
        acls = [acl for rules in self.found.rules.values() for acl in rules.acls]
        denies = sum(acl.permission is AclPermission.DENY for acl in acls)
        prefixed = sum(
            acl.pattern_type is PatternType.PREFIXED and acl.permission is AclPermission.ALLOW
            for acl in acls
        )
        return [
            Figure("ACLs now", sum(len(self._now(cluster)) for cluster in self.found.rules)),
            Figure("ACLs recommended", len(acls)),
            Figure("DENY ACLs kept", denies, "they hold for something that is granted"),
            Figure("PREFIXED ALLOWs recommended", prefixed),
            Figure("rights opened", self.rights_opened, "of all requests, asked or not"),
            Figure("rights closed", self.rights_closed, "of all requests, asked or not"),
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

    def _tables(self) -> Iterator[Table]:
        if len(self.found.rules) > 1:
            yield self._clusters()
        yield from rights_tables(self.found.opened, self.top)
        yield self._principals()
        yield prefix_table(self.prefixes, self.top)
        yield self._unmet()
        if self.found.proof.flips is not None:
            yield self._flips(self.found.proof.flips)

    def _clusters(self) -> Table:
        columns = ("Cluster", "ACLs now", "Recommended", "Opened", "Closed", "Events")
        rows = [
            (
                cluster,
                len(self._now(cluster)),
                len(rules.acls),
                *self._changed(cluster),
                self.found.proof.counts[cluster].events,
            )
            for cluster, rules in self.found.rules.items()
        ]
        return Table("Clusters", columns, rows[: self.top], len(rows))

    def _changed(self, cluster: str) -> tuple[Cell, Cell]:
        found = self.found.opened.get(cluster)
        return (None, None) if found is None else (found.rights_opened, found.rights_closed)

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
                    "questions that it answers both ways), no DENY is kept, and what the "
                    "recommended set opens is not known"
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
