"""Which ACLs can go: those that nothing in the log needed, all together, proven by a replay.

Decisions are those under the current rules (`pipeline.replay`), not the recorded ones: an ACL that
the log never names as the reason may be one of two that allow the same, and of these one has to
stay. Events of super users, and of broker users on their listener, need no ACL and count for none.

The files are the ACLs that remain and the commands that remove the others; replayed under what
remains, every event of the log is decided as it is now.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import pyarrow as pa
from pyspark.sql import functions as F

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.broker.acl.bindings import AclPermission
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.scope import kafka_overlooks
from aclbroker.pipeline.analysis.use import AclUse, Asked, Stay, Use, acl_uses
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, Result, Table
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.removal import Removal, proven, replayed, rules_of
from aclbroker.pipeline.usage.table import Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SHOWN: Final = 20

_COLUMNS: Final = [
    pa.field("use", pa.string()),
    pa.field("removable", pa.bool_()),
    pa.field("stays_because", pa.string()),
    pa.field("events", pa.int64()),
    pa.field("decisive_events", pa.int64()),
    pa.field("last_day", pa.date32()),
]


@dataclass(frozen=True, slots=True)
class UnusedOptions:
    """What counts as use, and what may go.

    - ``filtering``: also decisions that only filtered an answer, or filled one in (level TRACE):
      with them, whoever lists all topics uses every ACL by which a topic is shown
    - ``unmatched_denies``: also remove DENYs that no event met
    """

    filtering: bool = True
    unmatched_denies: bool = False


class _Log(NamedTuple):
    """What the log says of one cluster's ACLs, collected: bounded by the sets of ACLs that meet."""

    asked: list[Asked]
    events: int
    allowed_events: int
    exempt_events: int
    differing_events: int


Uses = dict[str, list[AclUse]]


def run(inputs: Inputs, options: UnusedOptions | None = None) -> Result:
    """Return which ACLs can go, and write the table, the ACLs that remain, and the commands.

    Raises InputError if there are no ACLs, or no allowed events in the log.
    """
    options = options or UnusedOptions()
    current = rules_of(inputs.current, "unused")
    _refuse_without_allowed(inputs.window.allowed, "the log")
    everything = inputs.usage.part(current)
    usage = everything if options.filtering else everything.part(quiet=False)
    log = _read(usage, current)
    for cluster in current:
        _refuse_without_allowed(log[cluster].allowed_events, f"the log of cluster {cluster}")
    uses = {
        cluster: acl_uses(
            rules,
            log[cluster].asked,
            young=_young(inputs, cluster),
            unmatched_denies=options.unmatched_denies,
        )
        for cluster, rules in current.items()
    }
    going = {
        cluster: {each.acl for each in found if each.stays is None}
        for cluster, found in uses.items()
    }
    removal = proven(usage, current, going)
    uses = _with_put_back(uses, removal)
    report = _Report(inputs, log, uses, removal)
    if not options.filtering:
        rest = everything.part(quiet=True)
        report.filtering_changes = replayed(rest, current, removal.remaining).flipped
    return report.result(_write(inputs, uses, removal))


def _refuse_without_allowed(allowed: int, what: str) -> None:
    if not allowed:
        raise InputError(
            f"{what} has no allowed event: every ACL would look unused. Brokers record denials "
            "alone by default. Set the level of Kafka's kafka.authorizer.logger to DEBUG, or "
            "aclbroker.audit.level=all here, and try again when the log covers all regular work"
        )


def _young(inputs: Inputs, cluster: str) -> list[int]:
    if cluster not in inputs.earlier:
        return []
    old = set(inputs.earlier[cluster].acls)
    return [at for at, acl in enumerate(inputs.current[cluster].acls) if acl not in old]


def _read(usage: Usage, current: Mapping[str, Ruleset]) -> dict[str, _Log]:
    """Decide all questions anew and collect what they say of ACLs, equal ones together."""
    sets = {"current": current}
    decided = replay.replayed(usage, sets, explain=True)
    log = {cluster: _Log([], 0, 0, 0, 0) for cluster in current}
    for row in _grouped(decided).toArrow().to_pylist():
        cluster, events = row["cluster"], row["events"]
        before = log[cluster]
        if row["allows"] or row["denies"] or row["only"] is not None:
            before.asked.append(
                Asked(row["allows"], row["denies"], row["only"], events, row["last_day"])
            )
        log[cluster] = _Log(
            before.asked,
            before.events + events,
            before.allowed_events + row["allowed_events"],
            before.exempt_events + (events if row["exempt"] else 0),
            before.differing_events + row["differing_events"],
        )
    return log


def _grouped(decided: DataFrame) -> DataFrame:
    """Return one row for all questions that the same ACLs allow and deny."""
    exempt = F.col("current_rule") == RuleKind.SUPER_USER.value
    nothing = F.array().cast("array<int>")
    on_resource = F.col("current_on_resource")
    count, allowed = F.col("events"), F.col("allowed_events")
    differing = F.when(F.col("current_allowed"), count - allowed).otherwise(allowed)
    return (
        decided.select(
            "cluster",
            exempt.alias("exempt"),
            *(
                F.when(exempt, nothing)
                .otherwise(F.array_sort(F.col(f"current_{which}")))
                .alias(which)
                for which in ("allows", "denies")
            ),
            F.when(~exempt & (F.size(on_resource) == 1), on_resource[0]).alias("only"),
            count,
            allowed,
            differing.alias("differing_events"),
            F.to_date("last_seen").alias("last_day"),
        )
        .groupBy("cluster", "exempt", "allows", "denies", "only")
        .agg(
            F.sum("events").alias("events"),
            F.sum("allowed_events").alias("allowed_events"),
            F.sum("differing_events").alias("differing_events"),
            F.max("last_day").alias("last_day"),
        )
    )


def _with_put_back(uses: Uses, removal: Removal) -> Uses:
    return {
        cluster: [
            each._replace(stays=Stay.PUT_BACK) if each.acl in removal.put_back[cluster] else each
            for each in found
        ]
        for cluster, found in uses.items()
    }


def _write(inputs: Inputs, uses: Uses, removal: Removal) -> dict[str, str]:
    rows = (
        (
            cluster,
            each.acl,
            (
                each.use.value,
                each.stays is None,
                each.stays and each.stays.value,
                each.events,
                each.decisive_events,
                each.last_day,
            ),
        )
        for cluster, found in uses.items()
        for each in found
    )
    inputs.output.table("unused/acls", acl_table(inputs.spark, rows, _COLUMNS))
    files = inputs.output.acls(
        "unused/remaining",
        {cluster: rules.acls for cluster, rules in removal.remaining.items()},
        current={cluster: inputs.current[cluster].acls for cluster in removal.remaining},
    )
    return {"unused/acls": "every ACL with its use (Parquet)", **files}


class _Report:
    """What was found, put into words."""

    def __init__(
        self, inputs: Inputs, log: Mapping[str, _Log], uses: Uses, removal: Removal
    ) -> None:
        self._inputs = inputs
        self._log = log.values()
        self._removal = removal
        self._uses = [(cluster, each) for cluster, found in uses.items() for each in found]
        self._several = len(uses) > 1
        self._days = f"{inputs.window.first_day} to {inputs.window.last_day}"
        self.filtering_changes = 0
        """Decisions that only filter an answer, were left out, and do change."""

    def result(self, outputs: dict[str, str]) -> Result:
        going = self._those(stays=None)
        events = sum(self._removal.events.values())
        return Result(
            "unused",
            "ACLs that can go",
            f"{len(going):,} of {len(self._uses):,} ACLs can be removed together: in the log from "
            f"{self._days}, none of {events:,} events would have been decided otherwise.",
            self._figures(events),
            self._tables(going),
            [self._chart()],
            self._warnings(),
            outputs,
        )

    def _those(self, **wanted: Any) -> list[tuple[str, AclUse]]:
        return [
            (cluster, each)
            for cluster, each in self._uses
            if all(getattr(each, name) is value for name, value in wanted.items())
        ]

    def _figures(self, events: int) -> list[Figure]:
        young = self._those(stays=Stay.YOUNG)
        closing = self._those(stays=Stay.CLOSES)
        put_back = self._those(stays=Stay.PUT_BACK)
        figures = [
            Figure("ACLs", len(self._uses)),
            Figure("Unmatched", len(self._those(use=Use.UNMATCHED)), "no event meets them"),
            Figure(
                "Matched, never decisive",
                len(self._those(use=Use.NEVER_DECISIVE)),
                "others decide the same",
            ),
            Figure("Needed", len(self._those(use=Use.NEEDED)), "removed alone, they change events"),
            Figure("Removable together", len(self._those(stays=None))),
            Figure(
                "Events decided otherwise without them",
                0,
                f"of {events:,} that were replayed under the remaining ACLs",
            ),
            Figure("Events of super users", sum(each.exempt_events for each in self._log)),
        ]
        if self._inputs.earlier:
            note = "not there when the log begins; they stay"
            figures.append(Figure("ACLs younger than the log", len(young), note))
        if closing:
            note = "the last ACL of a pattern; without it, everyone is allowed"
            figures.append(Figure("Unused, but they keep resources closed", len(closing), note))
        if put_back:
            note = "the replay without them changed decisions"
            figures.append(Figure("Put back", len(put_back), note))
        return figures

    def _tables(self, going: list[tuple[str, AclUse]]) -> list[Table]:
        denies = [
            (cluster, each)
            for cluster, each in self._those(use=Use.UNMATCHED)
            if each.acl.permission is AclPermission.DENY
        ]
        return [
            self._table("ACLs that can go together", going, "The first ones by name."),
            self._table(
                "DENYs that no event met",
                denies,
                "That nobody tried does not mean that nobody will: removing a DENY opens what it "
                "denies to whom an ALLOW allows it. They stay unless it is asked for otherwise.",
            ),
        ]

    def _table(self, title: str, uses: list[tuple[str, AclUse]], note: str) -> Table:
        rows: list[Sequence[Cell]] = [
            (
                *((cluster,) if self._several else ()),
                acl_text(each.acl),
                each.use.value,
                each.events,
                _day(each.last_day),
            )
            for cluster, each in uses[:_SHOWN]
        ]
        cluster = ("Cluster",) if self._several else ()
        columns = (*cluster, "ACL", "Use", "Events", "Last day")
        return Table(title, columns, rows, len(uses), note)

    def _chart(self) -> Chart:
        labels = [each.value for each in Use]
        stay, go = (
            [
                sum(each.use is use and (each.stays is None) is goes for _, each in self._uses)
                for use in Use
            ]
            for goes in (False, True)
        )
        return Chart("ACLs by use", "bars", labels, {"stay": stay, "can go": go})

    def _warnings(self) -> list[str]:
        found = []
        differing = sum(each.differing_events for each in self._log)
        if differing:
            found.append(
                f"{differing} events are recorded otherwise than the current rules decide: ACLs or "
                "super users have changed since, or the rules given are not those of the log."
            )
        unknown = sorted(set(self._inputs.current) - set(self._inputs.earlier))
        if unknown:
            found.append(
                "It is not known which ACLs were there when the log begins, so one that was made "
                f"yesterday may look unused (clusters: {', '.join(unknown)})."
            )
        overlooked = sum(
            not self._inputs.current[cluster].cidr and kafka_overlooks(each.acl.host)
            for cluster, each in self._uses
        )
        if overlooked:
            found.append(
                f"{overlooked} ACLs name an address in a form that Kafka never matches (it knows "
                "0:0:0:0:0:0:0:1, not ::1); here they count as that address."
            )
        if self.filtering_changes:
            found.append(
                f"{self.filtering_changes} decisions that only filter an answer change: lists of "
                "topics and the like get shorter."
            )
        if self._inputs.window.quarantined:
            found.append(
                f"{self._inputs.window.quarantined} lines of the log are no reliable events; what "
                "they may have needed is not known."
            )
        return found


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
