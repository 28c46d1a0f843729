"""What `recommend` found, for people to read, and the files it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from aclbroker.acl.bindings import AclBinding, ResourceType
from aclbroker.pipeline.analysis.opened import OPENS_NOTHING
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.interface.coverage import judged_by
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Chart, Figure, JobResult
from aclbroker.pipeline.jobs.recommend.doubts import principals_of, warnings
from aclbroker.pipeline.jobs.recommend.find import Recommendation
from aclbroker.pipeline.jobs.recommend.tables import RecommendTables


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
        opened = self.found.opened.values()
        self.rights_opened = sum(each.rights_opened for each in opened)
        self.rights_closed = sum(each.rights_closed for each in opened)

    def _now(self, cluster: str) -> Sequence[AclBinding]:
        current = self.inputs.current.get(cluster)
        return () if current is None else current.acls

    def result(self) -> JobResult:
        """Write everything, and return it."""
        principals = [
            each
            for cluster, rules in self.found.rules.items()
            for each in principals_of(
                cluster,
                rules.changes(),
                self.found.principals_of(cluster) | rules.super_users,
            )
        ]
        prefixes = None if self.options is None else self.found.considered
        tables = RecommendTables(self.inputs, self.found, principals, prefixes, self.top)
        return JobResult(
            "recommend",
            "Least privilege: the smallest set of ACLs for what was used",
            self._sentence(),
            figures=self._figures(),
            tables=tables.for_people(),
            charts=[self._chart()],
            warnings=warnings(self.inputs, self.found, principals),
            outputs=tables.write(),
            alarms=self._alarms(),
            left_out=dict(self.found.left_out),
            is_doubted=self.found.is_doubted,
        )

    def _alarms(self) -> dict[str, int]:
        is_known = len(self.found.opened) == len(self.found.rules)
        found = {"opened": self.rights_opened} if self.rights_opened or is_known else {}
        if self.found.opened or self.found.left_out:
            found["drift"] = self.found.drift
        return found

    def _sentence(self) -> str:
        counts = self.found.proof.counts.values()
        before = sum(len(self._now(cluster)) for cluster in self.found.rules)
        after = sum(len(rules) for rules in self.found.rules.values())
        flips = sum(each.flips for each in counts)
        outcome = f"all but {flips:,} of them" if flips else "all of them"
        return (
            f"{after:,} ACLs{f' instead of {before:,}' if before else ''} allow what was used from "
            f"{self.inputs.window.first_day} to {self.inputs.window.last_day}: a replay of "
            f"{sum(each.questions for each in counts):,} questions "
            f"({sum(each.events for each in counts):,} events) decides {outcome} as now. "
            f"{self._opened()}{judged_by(self.inputs, self.found.rules)}{self._left_out()}"
        )

    def _left_out(self) -> str:
        left_out = len(self.found.left_out)
        given = left_out + len(self.found.rules)
        return f" Of {given:,} clusters, {left_out:,} are left out." if left_out else ""

    def _opened(self) -> str:
        """Say what the recommended sets open, of those clusters where that is known."""
        found = self.found.opened
        if not found:
            return "What it opens is not known, because the current ACLs are not given."
        opening = {name: each for name, each in found.items() if each.opened}
        if not opening:
            if len(found) == len(self.found.rules):
                return f"It {OPENS_NOTHING}."
            if len(found) == 1:
                return f"In {next(iter(found))} it {OPENS_NOTHING}."
            where = f"In the {len(found):,} clusters whose ACLs are given"
            return f"{where} it {OPENS_NOTHING}."
        cluster, first = next(iter(opening.items()))
        if len(self.found.rules) == 1:
            return f"It {first.sentence()}."
        others = f"; all together {self.rights_opened:,} rights" if len(opening) > 1 else ""
        return f"In {cluster} it {first.sentence()}{others}."

    def _figures(self) -> list[Figure]:
        counts = self.found.proof.counts.values()
        rules = self.found.rules.values()
        denies = sum(len(each.denies) for each in rules)
        prefixed = sum(each.tally.prefixed for each in rules)
        return [
            Figure("ACLs now", sum(len(self._now(cluster)) for cluster in self.found.rules)),
            Figure("ACLs recommended", sum(map(len, rules))),
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
                "events decided otherwise than logged", self.found.drift, "under the ACLs of now"
            ),
            Figure(
                "events of super users",
                sum(each.exempt_events for each in counts),
                "and of broker users on their listener; they need no ACL",
            ),
        ]

    def _chart(self) -> Chart:
        before: Counter[ResourceType] = Counter()
        after: Counter[ResourceType] = Counter()
        for cluster, rules in self.found.rules.items():
            before.update(acl.resource_type for acl in self._now(cluster))
            after.update(rules.tally.by_type)
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
