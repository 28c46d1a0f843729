"""What was denied and what would allow it: files, and tables for people to read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text, resource_text
from aclbroker.pipeline.analysis.grant import Kind, without_implied
from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Chart, Figure, JobResult, Table
from aclbroker.pipeline.interface.wording import clusters_in_short
from aclbroker.pipeline.jobs.denials.denied import KEY, SELDOM_KEY
from aclbroker.pipeline.jobs.denials.find import DENIED, SELDOM, Denials
from aclbroker.pipeline.jobs.denials.suspects import SPIKE, Suspect, how_often
from aclbroker.pipeline.report.words import counted
from aclbroker.pipeline.spark.frames import frame_of

POLICY: Final = "denials/allow-after-review"
"""The name says what to do with the file before it is used."""

SUSPECTS: Final = "denials/suspects"
_REMEDIES: Final = "denials/remedies"
_BESIDES: Final = "denials/besides"

_REMEDY_TABLE: Final = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in (*KEY, "remedy", "note")),
        *(pa.field(name, pa.list_(pa.string())) for name in ("acls", "denies", "opens")),
        pa.field("proven_events", pa.int64()),
    ]
)
_TIME: Final = pa.timestamp("us", tz="UTC")
_SUSPECT_TABLE: Final = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in Suspect._fields[:4]),
        pa.field("events", pa.int64()),
        pa.field("first_seen", _TIME),
        pa.field("last_seen", _TIME),
    ]
)
_BESIDES_TABLE: Final = pa.schema(
    [*(pa.field(name, pa.string()) for name in KEY), pa.field("events", pa.int64())]
)


def summary(inputs: Inputs, found: Denials, top: int) -> JobResult:
    """Write the files, and return what was found, with the first ``top`` rows of each table."""
    outputs = {
        DENIED: "what was denied, but for seldom denials",
        SELDOM: "what was denied seldom, by principal and kind of resource",
        SUSPECTS: "principals that behave like intruders, and why",
    }
    inputs.output.table(SUSPECTS, frame_of(inputs.spark, _SUSPECT_TABLE, found.suspects))
    _write_remedies(inputs, found)
    outputs[_REMEDIES] = "what would allow the most frequent ones"
    if found.proof.besides:
        _write_besides(inputs, found)
        outputs[_BESIDES] = "what was denied, and the suggested ACLs would allow besides"
    acls = _acls(found)
    if acls:
        written = inputs.output.acls(POLICY, acls)
        outputs |= {
            name: f"{what}; to be ADDED one by one, if the access is wanted: not to be applied as "
            "it is. What another one in it implies is left out"
            for name, what in written.items()
        }
    kinds = Counter(each.remedy.kind for each in found.suggestions)
    return JobResult(
        "denials",
        "Denied: what was refused most, and what would allow it",
        _sentence(inputs, found, kinds),
        figures=_figures(found, kinds),
        tables=[table for table in _tables(found, top) if table.rows],
        charts=_charts(inputs, found),
        warnings=list(_warnings(inputs, found, kinds)),
        outputs=outputs,
        alarms={"suspects": len({each[:2] for each in found.suspects})},
    )


def _acls(found: Denials) -> dict[str, list[AclBinding]]:
    acls: dict[str, dict[AclBinding, None]] = {}
    for each in found.suggestions:
        if each.remedy.acls:
            acls.setdefault(each.row["cluster"], {}).update(dict.fromkeys(each.remedy.acls))
    return {cluster: without_implied(of_cluster) for cluster, of_cluster in acls.items()}


def _write_remedies(inputs: Inputs, found: Denials) -> None:
    rows = [
        (
            *each.key,
            each.remedy.kind.value,
            each.remedy.note or None,
            [acl_text(acl) for acl in each.remedy.acls],
            [acl_text(acl) for acl in each.remedy.denies],
            list(map(str, each.opens)),
            found.proof.proven.get(each.key),
        )
        for each in found.suggestions
    ]
    inputs.output.table(_REMEDIES, frame_of(inputs.spark, _REMEDY_TABLE, rows))


def _write_besides(inputs: Inputs, found: Denials) -> None:
    rows = [(*key, events) for key, events in found.proof.besides.items()]
    inputs.output.table(_BESIDES, frame_of(inputs.spark, _BESIDES_TABLE, rows))


def _sentence(inputs: Inputs, found: Denials, kinds: Counter[Kind]) -> str:
    first, last = inputs.window.first_day, inputs.window.last_day
    window = f"from {first} to {last}"
    if not found.counts.events:
        return f"Nothing was denied {window}."
    window = f"on {first}" if first == last else window
    told = f"{_events(found.counts.events)} denied {window}.{_suspects(found)}"
    if not found.suggestions or found.counts.events == 1:
        return told
    many = kinds[Kind.HOSTS]
    of_hosts = f"{many:,} came from too many hosts for ACLs by host (see --any-host), "
    return (
        f"{told} Of the {len(found.suggestions):,} most frequent denials, ACLs would allow "
        f"{kinds[Kind.ALLOW]:,}, {of_hosts if many else ''}a DENY blocks {kinds[Kind.DENY]:,}, and "
        f"{kinds[Kind.NOW]:,} are allowed by now."
    )


def _events(count: int) -> str:
    return "1 event was" if count == 1 else f"{count:,} events were"


def _suspects(found: Denials) -> str:
    """Return a sentence on the first suspect, and on the number of other suspects."""
    if not found.suspects:
        return ""
    first = found.suspects[0]
    theirs = [each for each in found.suspects if each[:2] == first[:2] and each.kind != SPIKE]
    theirs = theirs or [first]
    what = "; ".join(f"{each.kind}: {each.what}" for each in theirs)
    start, end = (min(each.first_seen for each in theirs), max(each.last_seen for each in theirs))
    others = len({each[:2] for each in found.suspects}) - 1
    more = f" So may {counted(others, 'other principal')}." if others else ""
    return (
        f" {first.principal} may be an intruder, from {_minute(start)} to {_minute(end)} UTC "
        f"({what}).{more}"
    )


def _figures(found: Denials, kinds: Counter[Kind]) -> list[Figure]:
    counts, proof = found.counts, found.proof
    what = "each a principal, an operation and a resource"
    return [
        Figure("denied events", counts.events, "that did not only filter an answer"),
        Figure("quiet events left out", counts.quiet_events, "they only filtered an answer"),
        Figure(
            "seldom denials put together",
            counts.rare,
            f"{how_often(counts.min_events)}, {counts.rare_events:,} events in all",
        ),
        Figure("denials told", counts.told, what),
        Figure("denials looked into", len(found.suggestions), "the most frequent ones"),
        *(Figure(kind.value, kinds[kind]) for kind in Kind if kinds[kind]),
        Figure(
            "denials proven to be allowed",
            len(proof.proven),
            f"a replay with the suggested ACLs allows {sum(proof.proven.values()):,} denied events",
        ),
        Figure(
            "denials whose ACLs open more",
            sum(bool(each.opens) for each in found.suggestions),
            "operations that they imply, or all hosts",
        ),
        Figure("denials allowed besides", len(proof.besides), "by the suggested ACLs"),
    ]


def _tables(found: Denials, top: int) -> Iterator[Table]:
    columns = (
        *("Cluster", "Principal", "Operation", "Resource", "Events", "Remedy", "By which ACL"),
        *("Opens besides", "Days", "Hosts", "APIs", "First seen", "Last seen", "Allowed events"),
    )
    rows = [
        (
            *each.key[:3],
            resource_text(*each.key[3:]),
            each.row["events"],
            "; ".join(filter(None, (each.remedy.kind.value, each.remedy.note))),
            "; ".join(map(acl_text, (*each.remedy.acls, *each.remedy.denies))),
            "; ".join(map(str, each.opens)),
            each.row["days"],
            each.row["hosts"],
            ", ".join(each.row["apis"]),
            _minute(each.row["first_seen"]),
            _minute(each.row["last_seen"]),
            each.row["allowed_events"],
        )
        for each in found.suggestions[:top]
    ]
    note = (
        "Allowed events: the same principal, operation and resource, allowed at another time. "
        "Opens besides: what the ACLs allow that was not denied."
    )
    yield _suspects_table(found, top)
    yield Table("Top denied", columns, rows, found.counts.told, note, DENIED)
    yield _seldom_table(found, top)
    besides = sorted(found.proof.besides.items(), key=lambda item: (-item[1], str(item[0])))
    yield Table(
        "Denied, and allowed besides by the suggested ACLs",
        ("Cluster", "Principal", "Operation", "Resource", "Events"),
        [(*key[:3], resource_text(*key[3:]), events) for key, events in besides[:top]],
        len(besides),
        source=_BESIDES,
    )


def _suspects_table(found: Denials, top: int) -> Table:
    columns = ("Cluster", "Principal", "Kind", "Denied", "Events", "First seen", "Last seen")
    rows: list[Sequence[Cell]] = [
        (*each[:5], _minute(each.first_seen), _minute(each.last_seen))
        for each in found.suspects[:top]
    ]
    note = (
        "A wrong configuration may look the same. To principals with scans, or with denials on the "
        "cluster, no ACL is proposed."
    )
    title = "Principals that behave like intruders"
    return Table(title, columns, rows, len(found.suspects), note, SUSPECTS)


def _seldom_table(found: Denials, top: int) -> Table:
    columns = (
        *("Cluster", "Principal", "Operation", "Kind", "Names", "Events", "For example"),
        *("First seen", "Last seen"),
    )
    first = found.seldom.orderBy(F.desc("names"), *SELDOM_KEY).limit(top).collect()
    rows: list[Sequence[Cell]] = [
        (
            *(row[name] for name in (*SELDOM_KEY, "names", "events")),
            resource_text(row["resource_type"], row["example"]),
            _minute(row["first_seen"]),
            _minute(row["last_seen"]),
        )
        for row in first
    ]
    total = len(rows) if len(rows) < top else found.seldom.count()
    title = f"Denied seldom: names {how_often(found.counts.min_events)}, by kind of resource"
    note = "With --min-events 1 each name is told by itself, with what would allow it."
    return Table(title, columns, rows, total, note, SELDOM)


def _minute(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M}"


def _charts(inputs: Inputs, found: Denials) -> list[Chart]:
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


def _warnings(inputs: Inputs, found: Denials, kinds: Counter[Kind]) -> Iterator[str]:
    missing = len({each.key for each in found.suggestions if each.remedy.acls}) - len(
        found.proof.proven
    )
    if missing:
        yield f"of {missing:,} denials the suggested ACLs do not allow all: a replay says so"
    if found.proof.besides:
        yield (
            f"the suggested ACLs would allow {len(found.proof.besides):,} other denials besides, "
            "by operations that they imply, or to sessions of several principals"
        )
    clusters = sorted({each.row["cluster"] for each in found.suggestions} - set(inputs.current))
    if clusters:
        named = clusters_in_short(clusters)
        yield f"the ACLs of {named} are not given: nothing is suggested there"
    if kinds[Kind.NOW]:
        yield (
            f"{kinds[Kind.NOW]:,} of the denials looked into would be allowed by now: the rules "
            "have changed since"
        )
