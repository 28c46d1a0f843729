"""Which ACLs can go, for people to read."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Any, Final

from aclbroker.broker.acl.bindings import AclPermission
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.scope import kafka_overlooks
from aclbroker.pipeline.analysis.use import AclUse, Stay, UseKind
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.jobs.unused.find import UnusedAcls

_SHOWN: Final = 20


def summary(inputs: Inputs, found: UnusedAcls) -> JobResult:
    """Return what was found as tables, figures and charts."""
    return _UnusedSummary(inputs, found).result()


class _UnusedSummary:
    """What was found, put into words."""

    def __init__(self, inputs: Inputs, found: UnusedAcls) -> None:
        self._inputs = inputs
        self._found = found
        self._log = found.log.values()
        self._uses = [(cluster, each) for cluster, uses in found.uses.items() for each in uses]
        self._several = len(found.uses) > 1
        self._days = f"{inputs.window.first_day} to {inputs.window.last_day}"

    def result(self) -> JobResult:
        """Return all of it."""
        going = self._those(stays=None)
        events = sum(self._found.removal.events.values())
        return JobResult(
            "unused",
            "ACLs that can go",
            f"{len(going):,} of {len(self._uses):,} ACLs can be removed together: in the log from "
            f"{self._days}, none of {events:,} events would have been decided otherwise.",
            self._figures(events),
            self._tables(going),
            [self._chart()],
            self._warnings(),
            self._found.outputs,
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
            Figure("Unmatched", len(self._those(use=UseKind.UNMATCHED)), "no event meets them"),
            Figure(
                "Matched, never decisive",
                len(self._those(use=UseKind.NEVER_DECISIVE)),
                "others decide the same",
            ),
            Figure(
                "Needed", len(self._those(use=UseKind.NEEDED)), "removed alone, they change events"
            ),
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
            for cluster, each in self._those(use=UseKind.UNMATCHED)
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
        labels = [each.value for each in UseKind]
        stay, go = (
            [
                sum(each.use is use and (each.stays is None) is goes for _, each in self._uses)
                for use in UseKind
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
        changes = self._found.filtering_changes
        if changes:
            found.append(
                f"{changes} decisions that only filter an answer change: lists of topics and the "
                "like get shorter."
            )
        if self._inputs.window.quarantined:
            found.append(
                f"{self._inputs.window.quarantined} lines of the log are no reliable events; what "
                "they may have needed is not known."
            )
        return found


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
