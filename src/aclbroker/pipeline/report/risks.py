"""What to look at first: what a proposal changes, and the ACLs that give or take most."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, Literal, NamedTuple

from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.interface.alarms import ALARMS
from aclbroker.pipeline.interface.result import Cell
from aclbroker.pipeline.report.content import AuditReport, Column, LoggedCluster, WrittenTable

Level = Literal["high", "check", "none"]
_LEVELS: Final = ("high", "check", "none")

ALTER_CLUSTER: Final = "ALTER on the cluster"
ALL_NAMES: Final = "ALL on every name"
EVERYBODY: Final = "to User:*"
ALL: Final = "ALL"
DENY: Final = "DENY"

STAYS: Final = "stays"
ADDED: Final = "added by the proposal"
REMOVED: Final = "removed by the proposal"

MOST_ACLS: Final = 50_000
"""How many ACLs are listed."""

_WHY: Final = {
    ALTER_CLUSTER: "who has it can give everybody everything, and take it",
    ALL_NAMES: "every operation on every resource of a type",
    EVERYBODY: "whoever gets through the door has it, unless a DENY takes it back",
    ALL: "every operation on a resource, those that later versions add included",
    DENY: "it takes back what an ALLOW gives: without it, that is open again",
}
_CALLED: Final = {
    ALTER_CLUSTER: "ALLOWs of ALTER on the cluster",
    ALL_NAMES: "ALLOWs of ALL on every name",
    EVERYBODY: "ALLOWs to User:*",
    ALL: "ALLOWs of ALL",
    DENY: "DENYs",
}
_OPENING: Final = frozenset(["newly-denied", "newly-allowed", "opened", "suspects"])
"""Alarms that count principals which lose or get a right, or which behave like intruders."""


class Risk(NamedTuple):
    """A number to look at. ``level``: how much it matters; ``job``: the one that found it."""

    level: Level
    number: int
    what: str
    why: str
    job: str | None = None


class RiskyAcl(NamedTuple):
    """An ACL, why it is listed, and what the proposal does to it; None without a proposal."""

    cluster: str
    kinds: tuple[str, ...]
    change: str | None
    acl: AclBinding


def kinds(acl: AclBinding) -> tuple[str, ...]:
    """Return why an ACL is one to look at; nothing for most."""
    if acl.permission is AclPermission.DENY:
        return (DENY,)
    is_all = acl.operation is AclOperation.ALL
    found = []
    if acl.resource_type is ResourceType.CLUSTER and (
        is_all or acl.operation is AclOperation.ALTER
    ):
        found.append(ALTER_CLUSTER)
    if is_all and acl.resource_name == "*" and acl.pattern_type is PatternType.LITERAL:
        found.append(ALL_NAMES)
    if acl.principal == WILDCARD_PRINCIPAL:
        found.append(EVERYBODY)
    if is_all and not found:
        found.append(ALL)
    return tuple(found)


def risky_acls(report: AuditReport) -> list[RiskyAcl]:
    """Return the ACLs to look at: what the proposal changes first, and then what gives most."""
    found = [each for cluster in report.clusters for each in _of_cluster(cluster)]
    order = {kind: at for at, kind in enumerate(_WHY)}
    found.sort(key=lambda each: (each.change in (None, STAYS), order[each.kinds[0]], each.cluster))
    return found


def _of_cluster(cluster: LoggedCluster) -> Iterator[RiskyAcl]:
    now = _risky(cluster.current.acls if cluster.current else ())
    if cluster.proposed is None:
        yield from (RiskyAcl(cluster.name, why, None, acl) for acl, why in now.items())
        return
    then = _risky(cluster.proposed.acls)
    for acl, why in now.items():
        yield RiskyAcl(cluster.name, why, STAYS if acl in then else REMOVED, acl)
    for acl, why in then.items():
        if acl not in now:
            yield RiskyAcl(cluster.name, why, ADDED if cluster.current else None, acl)


def _risky(acls: Iterable[AclBinding]) -> dict[AclBinding, tuple[str, ...]]:
    # Of hundreds of thousands, most need no closer look.
    suspects = (
        acl
        for acl in acls
        if acl.permission is _DENY or acl.operation in _WIDE or acl.principal == WILDCARD_PRINCIPAL
    )
    return {acl: why for acl in suspects if (why := kinds(acl))}


_DENY: Final = AclPermission.DENY
_WIDE: Final = (AclOperation.ALL, AclOperation.ALTER)


def risks(report: AuditReport, acls: Sequence[RiskyAcl]) -> list[Risk]:
    """Return what to look at, the worst first. ``acls``: what `risky_acls` returns."""
    found = [
        *_suspects(report),
        *_new_behaviour(report),
        *_alarms(report),
        *_removed_denies(report),
        *_open_clusters(report),
        *_of_acls(acls),
    ]
    return sorted(found, key=lambda each: _LEVELS.index(each.level))


def _alarms(report: AuditReport) -> Iterator[Risk]:
    for job, alarms in report.job_alarms.items():
        for name, count in alarms.items():
            if name == _SUSPECTS and count and _SUSPECT_TABLE in report.stored:
                # `_suspects` has one risk for each kind of suspect.
                continue
            alarm = ALARMS.get(name)
            what = name.replace("-", " ")
            level: Level = "high" if name in _OPENING else "check"
            level = level if count else "none"
            yield Risk(level, count, what, alarm.counts if alarm else "", job)


def _suspects(report: AuditReport) -> Iterator[Risk]:
    """Yield a risk for each kind of suspect that the job denials found."""
    written = report.stored.get(_SUSPECT_TABLE)
    by_kind: dict[str, list[Mapping[str, object]]] = {}
    for row in written.records() if written else ():
        by_kind.setdefault(str(row["kind"]), []).append(row)
    for kind in sorted(by_kind, key=lambda each: (each not in _SUSPICIOUS, each)):
        rows = by_kind[kind]
        first = f"{rows[0]['principal']} was denied {rows[0]['what']}"
        more = f", and {len(rows) - 1:,} more" if len(rows) > 1 else ""
        yield Risk("high", len(rows), _SUSPICIOUS.get(kind, kind), f"{first}{more}", "denials")


_SUSPECTS: Final = "suspects"
_SUSPECT_TABLE: Final = "denials/suspects"
_SUSPICIOUS: Final = {
    "scan": "scans of many names",
    "cluster": "attempts to administer the cluster",
    "new host": "principals denied from new hosts",
    "spike": "days with far more denials than before",
}
"""The name for several suspects, by their kind."""


def _new_behaviour(report: AuditReport) -> Iterator[Risk]:
    """Yield the risks that the job anomalies found: new hosts, and days with spikes."""
    for name, what, why in _NEW:
        written = report.stored.get(name)
        if written is not None and written.total:
            yield Risk("high", written.total, what, why, "anomalies")


_NEW: Final = (
    ("anomalies/hosts", "new hosts", "a known principal came from them for the first time"),
    ("anomalies/spikes", "spikes", "far more administrative events, or denials, than before"),
)
"""The tables of the job anomalies whose rows are risks, each with a name and a reason."""


def _removed_denies(report: AuditReport) -> Iterator[Risk]:
    """DENYs that the job unused would remove."""
    written = report.stored.get("unused/acls")
    if written is None:
        return
    count = sum(
        row.get("permission") == DENY and row.get("removable") is True for row in written.records()
    )
    why = "that the job unused proposes to remove"
    yield Risk("check" if count else "none", count, "DENYs to remove", why, "unused")


def _open_clusters(report: AuditReport) -> Iterator[Risk]:
    known = [each.current for each in report.clusters if each.current is not None]
    count = sum(rules.allow_everyone_if_no_acl_found for rules in known)
    if count:
        why = "what no ACL is about is allowed to everybody (allow.everyone.if.no.acl.found)"
        yield Risk("high", count, "clusters open without ACLs", why)


def _of_acls(acls: Sequence[RiskyAcl]) -> Iterator[Risk]:
    """What the proposal changes, and then what is in force."""
    found = Counter((kind, each.change) for each in acls for kind in each.kinds)
    for kind, why in _WHY.items():
        for change in (ADDED, REMOVED):
            # What gives rights comes, or what takes them back goes.
            opens = change == (REMOVED if kind == DENY else ADDED)
            if found[kind, change]:
                level: Level = "high" if opens else "check"
                yield Risk(level, found[kind, change], f"{_CALLED[kind]} {change}", why)
    for kind, why in _WHY.items():
        count = found[kind, STAYS] + found[kind, REMOVED] + found[kind, None]
        if count:
            yield Risk("check", count, _CALLED[kind], why)


def as_table(acls: Sequence[RiskyAcl]) -> WrittenTable:
    """Return the first `MOST_ACLS` as columns; those that say the same of all are left out."""
    listed = acls[:MOST_ACLS]
    columns = [_column("Why", [", ".join(each.kinds) for each in listed])]
    if any(each.change for each in listed):
        columns.append(_column("Change", [each.change for each in listed]))
    if len({each.cluster for each in listed}) > 1:
        columns.append(_column("Cluster", [each.cluster for each in listed]))
    columns.append(_column("ACL", [acl_text(each.acl) for each in listed]))
    return WrittenTable(columns, len(acls))


def _column(name: str, values: Sequence[Cell]) -> Column:
    distinct = list(dict.fromkeys(values))
    places = {value: at for at, value in enumerate(distinct)}
    return Column(name, distinct, array("i", [places[value] for value in values]))
