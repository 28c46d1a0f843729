"""What `denials` found, for people to read, and the files it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any, Final, NamedTuple

import pyarrow as pa

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.grant import Kind, Remedy
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Chart, Figure, Result, Table

Key = tuple[str, str, str, str, str | None]
"""Cluster, principal, operation, resource type and name of something that was denied."""

POLICY: Final = "denials/allow-after-review"
"""The name says what to do with the file before it is used."""

_REMEDY_TABLE: Final = pa.schema(
    [
        *(
            pa.field(name, pa.string())
            for name in (
                *("cluster", "principal", "operation", "resource_type", "resource_name"),
                *("remedy", "acl", "note"),
            )
        ),
        pa.field("denies", pa.list_(pa.string())),
        pa.field("proven_events", pa.int64()),
    ]
)


class Counts(NamedTuple):
    """Denied events, and what is left out.

    ``rare`` is what was asked less often than ``min_events``; ``told`` how many principals,
    operations and resources are left.
    """

    events: int
    quiet_events: int
    rare: int
    rare_events: int
    told: int
    min_events: int


class Suggestion(NamedTuple):
    """A row of the table of what was denied, and what would allow it."""

    row: Mapping[str, Any]
    remedy: Remedy

    @property
    def key(self) -> Key:
        """What it is about."""
        row = self.row
        where = row["cluster"], row["principal"], row["operation"]
        return *where, row["resource_type"], row["resource_name"]


class Proof(NamedTuple):
    """A replay of what was denied under the current rules and all suggested ACLs.

    ``proven``: denied events that become allowed as suggested, where none is left that no DENY
    blocks. ``besides``: those that become allowed without being meant.
    """

    proven: Mapping[Key, int]
    besides: Mapping[Key, int]


@dataclass(frozen=True, slots=True)
class Found:
    """All that there is to tell; ``suggestions`` of the most frequent denials, in order."""

    counts: Counts
    suggestions: Sequence[Suggestion]
    proof: Proof
    days: Mapping[date, tuple[int, int]]
    principals: Sequence[tuple[str, int]]


def report(inputs: Inputs, found: Found, top: int) -> Result:
    """Write the files, and return what was found, with the first ``top`` rows of each table."""
    outputs = {"denials/denied": "what was denied, without what is left out"}
    _write_remedies(inputs, found)
    outputs["denials/remedies"] = "what would allow the most frequent ones"
    acls = _acls(found)
    if acls:
        written = inputs.output.acls(POLICY, acls)
        outputs |= {
            name: f"{what}; to be ADDED one by one, if the access is wanted: not to be applied as "
            "it is"
            for name, what in written.items()
        }
    kinds = Counter(each.remedy.kind for each in found.suggestions)
    return Result(
        "denials",
        "Denied: what was refused most, and what would allow it",
        _summary(inputs, found, kinds),
        figures=_figures(found, kinds),
        tables=[table for table in _tables(found, top) if table.rows],
        charts=_charts(inputs, found),
        warnings=list(_warnings(inputs, found, kinds)),
        outputs=outputs,
    )


def _acls(found: Found) -> dict[str, list[AclBinding]]:
    acls: dict[str, list[AclBinding]] = {}
    for each in found.suggestions:
        if each.remedy.acl is not None:
            acls.setdefault(each.row["cluster"], []).append(each.remedy.acl)
    return acls


def _write_remedies(inputs: Inputs, found: Found) -> None:
    rows = [
        (
            *each.key,
            each.remedy.kind.value,
            None if each.remedy.acl is None else acl_text(each.remedy.acl),
            each.remedy.note or None,
            [acl_text(acl) for acl in each.remedy.denies],
            found.proof.proven.get(each.key),
        )
        for each in found.suggestions
    ]
    columns = list(zip(*rows, strict=True)) or [()] * len(_REMEDY_TABLE)
    arrays = [
        pa.array(column, each.type) for column, each in zip(columns, _REMEDY_TABLE, strict=True)
    ]
    table = pa.Table.from_arrays(arrays, schema=_REMEDY_TABLE)
    inputs.output.table("denials/remedies", inputs.spark.createDataFrame(table))


def _summary(inputs: Inputs, found: Found, kinds: Counter[Kind]) -> str:
    window = f"from {inputs.window.first_day} to {inputs.window.last_day}"
    if not found.counts.events:
        return f"Nothing was denied {window}."
    return (
        f"{found.counts.events:,} events were denied {window}. Of the {len(found.suggestions):,} "
        f"most frequent denials, an ACL would allow {kinds[Kind.ALLOW]:,}, a DENY blocks "
        f"{kinds[Kind.DENY]:,}, and {kinds[Kind.NOW]:,} are allowed by now."
    )


def _figures(found: Found, kinds: Counter[Kind]) -> list[Figure]:
    counts, proof = found.counts, found.proof
    what = "each a principal, an operation and a resource"
    return [
        Figure("denied events", counts.events, "that did not only filter an answer"),
        Figure("quiet events left out", counts.quiet_events, "they only filtered an answer"),
        Figure(
            "rare denials left out",
            counts.rare,
            f"asked less than {counts.min_events} times, {counts.rare_events:,} events in all",
        ),
        Figure("denials told", counts.told, what),
        Figure("denials looked into", len(found.suggestions), "the most frequent ones"),
        *(Figure(kind.value, kinds[kind]) for kind in Kind if kinds[kind]),
        Figure(
            "suggested ACLs proven",
            len(proof.proven),
            f"a replay allows {sum(proof.proven.values()):,} denied events with them",
        ),
        Figure("denials allowed besides", len(proof.besides), "by the suggested ACLs"),
    ]


def _tables(found: Found, top: int) -> Iterator[Table]:
    columns = (
        *("Cluster", "Principal", "Operation", "Resource type", "Resource", "Events", "Days"),
        *("Hosts", "APIs", "First seen", "Last seen", "Allowed events", "Remedy", "By which ACL"),
    )
    rows = [
        (
            *each.key,
            each.row["events"],
            each.row["days"],
            each.row["hosts"],
            ", ".join(each.row["apis"]),
            f"{each.row['first_seen']:%Y-%m-%d %H:%M}",
            f"{each.row['last_seen']:%Y-%m-%d %H:%M}",
            each.row["allowed_events"],
            "; ".join(filter(None, (each.remedy.kind.value, each.remedy.note))),
            "; ".join(map(acl_text, filter(None, (each.remedy.acl, *each.remedy.denies)))),
        )
        for each in found.suggestions[:top]
    ]
    note = "Allowed events: the same principal, operation and resource, allowed at another time."
    yield Table("Top denied", columns, rows, found.counts.told, note)
    besides = sorted(found.proof.besides.items(), key=lambda item: (-item[1], str(item[0])))
    yield Table(
        "Denied, and allowed besides by the suggested ACLs",
        ("Cluster", "Principal", "Operation", "Resource type", "Resource", "Events"),
        [(*key, events) for key, events in besides[:top]],
        len(besides),
    )


def _charts(inputs: Inputs, found: Found) -> list[Chart]:
    days = inputs.window.days
    of_days = [found.days.get(day, (0, 0)) for day in days]
    by_day = Chart(
        "Denied events by day",
        "columns",
        [day.isoformat() for day in days],
        {
            "denied": [float(loud) for loud, _ in of_days],
            "quiet": [float(quiet) for _, quiet in of_days],
        },
        "quiet: they only filtered an answer",
    )
    by_principal = Chart(
        "Principals denied most",
        "bars",
        [principal for principal, _ in found.principals],
        {"denied events": [float(events) for _, events in found.principals]},
    )
    return [by_day, by_principal]


def _warnings(inputs: Inputs, found: Found, kinds: Counter[Kind]) -> Iterator[str]:
    missing = len({each.key for each in found.suggestions if each.remedy.acl}) - len(
        found.proof.proven
    )
    if missing:
        yield f"{missing:,} suggested ACLs do not allow all that they are for: a replay says so"
    if found.proof.besides:
        yield (
            f"the suggested ACLs would allow {len(found.proof.besides):,} other denials besides, "
            "by operations that they imply, or to sessions of several principals"
        )
    clusters = {each.row["cluster"] for each in found.suggestions} - set(inputs.current)
    for cluster in sorted(clusters):
        yield f"the ACLs of cluster {cluster} are not given: nothing is suggested for it"
    if kinds[Kind.NOW]:
        yield (
            f"{kinds[Kind.NOW]:,} of the denials looked into would be allowed by now: the rules "
            "have changed since"
        )
