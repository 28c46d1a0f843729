"""Which ACLs can go, for people to read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from functools import cached_property
from typing import Any, Final

from aclbroker.acl.bindings import WILDCARD_PRINCIPAL, AclPermission
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.proof import is_overlooked
from aclbroker.pipeline.analysis.staying import Stay
from aclbroker.pipeline.analysis.use import AclUse, UseKind
from aclbroker.pipeline.interface.coverage import (
    coverage_table,
    coverage_warnings,
    judged_by,
)
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.left_out import left_out_lines, left_out_table
from aclbroker.pipeline.interface.opened_rights import rights_tables
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.interface.wording import clusters_in_short, in_short
from aclbroker.pipeline.jobs.unused.find import ACLS, COVERAGE, OPENED, UnusedAcls
from aclbroker.pipeline.jobs.unused.options import UnusedOptions
from aclbroker.pipeline.report.words import counted

_STAYING: Final = {
    Stay.KEPT: ("ACLs on the keep-list", "they stay, used or not"),
    Stay.PROTECTS: ("DENYs that protect", "they deny what ALLOWs that stay allow"),
    Stay.LOGGED: ("ACLs that explain allowed events", "which the rules given deny; they stay"),
    Stay.CLOSES: (
        "Unused, but they keep resources closed",
        "the last ACL of a pattern; without it, everyone is allowed",
    ),
    Stay.DOUBTED: (
        "ACLs that lines in quarantine may have used",
        "what those lines were is not known; they stay",
    ),
    Stay.PUT_BACK: ("Put back", "without them something would open or be decided otherwise"),
}
"""The title and the note of a figure, by the reason why its ACLs stay."""


def summary(inputs: Inputs, found: UnusedAcls, options: UnusedOptions) -> JobResult:
    """Return the findings as figures, charts, and tables of the first rows."""
    return _UnusedSummary(inputs, found, options).result()


class _UnusedSummary:
    """What was found, put into words."""

    def __init__(self, inputs: Inputs, found: UnusedAcls, options: UnusedOptions) -> None:
        self._inputs = inputs
        self._found = found
        self._top = options.top
        self._keeps = options.keeps
        self._listed = "by principal" if options.by_principal else "by name"
        self._log = [found.log[cluster] for cluster in found.uses]
        self._uses = [(cluster, each) for cluster, uses in found.uses.items() for each in uses]
        self._several = len(found.log) > 1
        self._days = f"{inputs.window.first_day} to {inputs.window.last_day}"

    def result(self) -> JobResult:
        """Return all of it."""
        inputs = self._inputs
        going = self._those(stays=None)
        events = sum(self._found.removal.events.values())
        drift = sum(each.drift.events for each in self._log)
        left_out = self._found.left_out
        changed = self._found.removal.changed.values()
        closed = sum(each.rights_closed for each in changed)
        return JobResult(
            "unused",
            "ACLs that can go",
            f"{len(going):,} of {len(self._uses):,} ACLs can be removed together: that opens "
            f"nothing (proven for every request, asked or not), and in the log from {self._days} "
            f"none of {events:,} events would have been decided otherwise. It closes "
            f"{closed:,} rights that nobody used."
            f"{judged_by(inputs, self._found.uses)}{self._left_out_sentence()}",
            self._figures(events, drift, closed),
            [
                *self._tables(going),
                *rights_tables(self._found.removal.changed, self._top, OPENED),
                *coverage_table(inputs, list(self._found.log), COVERAGE),
                *([left_out_table(left_out)] if left_out else []),
            ],
            [self._chart()],
            self._warnings(),
            self._found.outputs,
            {
                "unused": len(going),
                "drift": drift + sum(self._found.log[each].drift.events for each in left_out),
                "opened": sum(each.rights_opened for each in changed),
            },
            left_out=dict(left_out),
            is_doubted=self._found.is_doubted,
        )

    def _left_out_sentence(self) -> str:
        left_out, given = len(self._found.left_out), len(self._found.log)
        return f" Of {given:,} clusters, {left_out:,} are left out." if left_out else ""

    def _those(self, **wanted: Any) -> list[tuple[str, AclUse]]:
        return [
            (cluster, each)
            for cluster, each in self._uses
            if all(getattr(each, name) is value for name, value in wanted.items())
        ]

    def _figures(self, events: int, drift: int, closed: int) -> list[Figure]:
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
            Figure("Rights opened without them", 0, "proven for every request, asked or not"),
            Figure("Rights closed without them", closed, "that nobody used"),
            Figure(
                "Events decided otherwise without them",
                0,
                f"of {events:,} that were replayed under the remaining ACLs",
            ),
            Figure("Events decided otherwise than logged", drift, "under the ACLs as they are"),
            Figure("Events of super users", sum(each.exempt_events for each in self._log)),
        ]
        if self._inputs.earlier:
            note = "not there when the log begins; they stay"
            young = len(self._those(stays=Stay.YOUNG))
            figures.append(Figure("ACLs younger than the log", young, note))
        for stay, (label, note) in _STAYING.items():
            count = len(self._those(stays=stay))
            if count:
                figures.append(Figure(label, count, note))
        return figures

    def _tables(self, going: list[tuple[str, AclUse]]) -> list[Table]:
        denies = [each for each in going if each[1].acl.permission is AclPermission.DENY]
        allows = [each for each in going if each[1].acl.permission is AclPermission.ALLOW]
        tables = [
            self._table(
                "DENYs that can go together with the ALLOWs",
                denies,
                "They protect nothing that is left: no ALLOW that stays would allow what they "
                "deny, or other DENYs that stay deny all of it.",
            ),
            self._table("ALLOWs that can go together", allows, f"The first ones {self._listed}."),
            self._table(
                "DENYs that stay, though no event met them",
                [
                    (cluster, each)
                    for cluster, each in self._those(use=UseKind.UNMATCHED)
                    if each.acl.permission is AclPermission.DENY and each.stays is not None
                ],
                "That nobody tried does not mean that nobody will: an ALLOW that stays would "
                "allow what they deny.",
            ),
            self._table(
                "ACLs that stay because the log says otherwise than the rules",
                self._those(stays=Stay.LOGGED),
                "The log has allowed events that are denied now, and these ACLs would explain "
                "them.",
            ),
        ]
        tables.append(self._losing_table())
        return [each for each in tables if each.total]

    @cached_property
    def _losing(self) -> list[tuple[str, str, int]]:
        """Return the principals that lose all their ALLOWs unused, with the number of these."""
        counts: dict[tuple[str, str], int] = {}
        others = set()
        for cluster, each in self._uses:
            if each.acl.permission is not AclPermission.ALLOW:
                continue
            who = cluster, each.acl.principal
            counts[who] = counts.get(who, 0) + 1
            if each.stays is not None or each.events:
                others.add(who)
        return [
            (*who, count)
            for who, count in sorted(counts.items())
            if who not in others and who[1] != WILDCARD_PRINCIPAL and not self._needs_none(*who)
        ]

    def _needs_none(self, cluster: str, principal: str) -> bool:
        rules = self._inputs.current[cluster]
        return principal in rules.super_users | rules.broker_users.principals

    def _losing_table(self) -> Table:
        losing = self._losing
        rows: list[Sequence[Cell]] = [
            each if self._several else each[1:] for each in losing[: self._top]
        ]
        cluster = ("Cluster",) if self._several else ()
        note = "No event met any of them. --keep PRINCIPAL leaves them alone."
        title = "Principals that lose all their ALLOWs"
        return Table(title, (*cluster, "Principal", "ALLOWs"), rows, len(losing), note, ACLS)

    def _about_losing(self) -> Iterator[str]:
        losing = self._losing
        if losing:
            named = in_short(dict.fromkeys(principal for _, principal, _ in losing))
            yield (
                f"{counted(len(losing), 'principal')} would lose all their ALLOWs, because no "
                f"event met any of them: {named}. Disaster recovery, or the work of a quarter, may "
                f"be more seldom than this log: --keep {losing[0][1]} leaves them alone."
            )

    def _about_keeps(self) -> Iterator[str]:
        acls = [each.acl for _, each in self._uses]
        idle = [each.text for each in self._keeps if not any(map(each.keeps, acls))]
        if idle:
            yield f"The keep-list names what no ACL is about: {in_short(idle)}."

    def _table(self, title: str, uses: list[tuple[str, AclUse]], note: str) -> Table:
        rows: list[Sequence[Cell]] = [
            (
                *((cluster,) if self._several else ()),
                acl_text(each.acl),
                each.use.value,
                each.why or (each.stays and each.stays.value),
                each.events,
                _day(each.last_day),
            )
            for cluster, each in uses[: self._top]
        ]
        cluster = ("Cluster",) if self._several else ()
        columns = (*cluster, "ACL", "Use", "Why", "Events", "Last day")
        return Table(title, columns, rows, len(uses), note, ACLS)

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
        left_out = (f"{each[0].upper()}{each[1:]}" for each in left_out_lines(self._found.left_out))
        silent = coverage_warnings(
            self._inputs,
            self._found.uses,
            "An ACL that was used when nothing was logged looks unused.",
        )
        found = [*left_out, *silent, *self._about_losing(), *self._found.drift_warnings]
        found += self._about_keeps()
        unknown = sorted(set(self._found.uses) - set(self._inputs.earlier))
        if unknown:
            found.append(
                "It is not known which ACLs were there when the log begins, so one that was made "
                f"yesterday may look unused ({clusters_in_short(unknown)})."
            )
        overlooked = sum(
            not self._inputs.current[cluster].cidr and is_overlooked(each.acl.host)
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
                f"{counted(self._inputs.window.quarantined, 'line')} of the log cannot be read "
                "reliably. ACLs stay that they may have used: "
                f"{len(self._those(stays=Stay.DOUBTED)):,} for no other reason."
            )
        return found


def _day(day: date | None) -> str | None:
    return None if day is None else day.isoformat()
