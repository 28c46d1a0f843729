"""What a reviewer should look at, as results of SARIF: one for each row of certain tables."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import quote

from aclbroker.pipeline.acls.acl_text import resource_text
from aclbroker.pipeline.report.content import AuditReport
from aclbroker.pipeline.report.sarif import sarif
from aclbroker.terminal import shown

MOST_RESULTS: Final = 5_000
"""How many results a table has at most: GitHub shows as many, and takes 25,000 a run."""

RULES: Final = {
    "newly-denied": "Something that was asked, which the other rules deny",
    "newly-allowed": "Something that was asked, which the other rules allow",
    "opened": "Something that a proposal allows, whether anybody asked for it or not",
    "closed": "Something that a proposal denies, whether anybody asked for it or not",
    "unused": "An ACL that can go, as far as the log tells",
    "redundant": "An ACL that another one covers",
    "denied": "Something that was denied",
    "suspect": "A principal that was denied as an intruder would be",
    "decided-otherwise": "Something that was decided otherwise than the ACLs of its time decide",
}
"""What each kind of finding is."""

_LEVELS: Final = {
    **dict.fromkeys(("newly-denied", "opened", "decided-otherwise"), "error"),
    **dict.fromkeys(("newly-allowed", "suspect"), "warning"),
}
"""Those of all others are notes."""

Row = Mapping[str, Any]


class _Kind(NamedTuple):
    """How rows of a table are told: the rule of each, None to pass it over, and its text.

    ``options`` name the ACLs that it is about; the first that were given count.
    """

    rule: Callable[[Row], str | None]
    text: Callable[[Row], str]
    options: tuple[str, ...] = ("--acls",)


def findings_json(report: AuditReport) -> str:
    """Return all findings as a SARIF log; a table with too many says so in the run's properties."""
    results: list[dict[str, Any]] = []
    cut: dict[str, int] = {}
    for name, written in report.stored.items():
        kind = _KINDS.get(name) or (_OPENED if name.endswith("/opened") else None)
        if kind is None:
            continue
        found = _results(report, name, kind)
        results += islice(found, MOST_RESULTS)
        if next(found, None) is not None or written.count < written.total:
            cut[name] = written.total
    log = sarif("aclbroker audit", RULES, results)
    log["runs"][0]["properties"] = {"first_results_of": cut}
    # With line breaks Python's slow encoder would do it.
    return json.dumps(log) + "\n"


def _results(report: AuditReport, name: str, kind: _Kind) -> Iterator[dict[str, Any]]:
    place = cache(partial(_place, report, kind.options))
    for row in report.stored[name].records():
        rule = kind.rule(row)
        if rule is None:
            continue
        text = shown(kind.text(row))
        cluster = row.get("cluster")
        yield {
            "ruleId": rule,
            "level": _LEVELS.get(rule, "note"),
            "message": {"text": text if cluster is None else f"{shown(str(cluster))}: {text}"},
            "locations": [{"physicalLocation": {"artifactLocation": {
                "uri": place(cluster)
            }}}],
            "partialFingerprints": {"finding/v1": _fingerprint(rule, row)},
            "properties": {"table": name},
        }  # fmt: skip


def _place(report: AuditReport, options: tuple[str, ...], cluster: object) -> str:
    """The file that the rules came from; the log, if there is none."""
    for option in options:
        for each in report.sources:
            if each.option == option and each.cluster in (None, cluster):
                return quote(each.place, safe="/:")
    return quote(report.inputs[0][0] if report.inputs else report.output, safe="/:")


_IDENTIFYING: Final = (
    *("cluster", "acl_id", "listener", "principal", "other_principals", "example_host", "host"),
    *("operation", "resource_type", "resource_name", "pattern_type", "principals", "hosts"),
    *("operations", "name", "exceptions"),
)


def _fingerprint(rule: str, row: Row) -> str:
    """What stays the same from run to run, however often it was asked."""
    known = [rule, *(row.get(name) for name in _IDENTIFYING)]
    if "kind" in row:
        known.append(row["kind"])
    return hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]


def _asked(row: Row) -> str:
    resource = resource_text(str(row.get("resource_type")), row.get("resource_name"))
    return f"{row.get('principal')} {row.get('operation')} on {resource}"


def _flip(row: Row) -> str:
    events = row.get("flipped_events") or 0
    causes = [
        f"{word} {row[name]}"
        for name, word in (("removed", "without"), ("added", "with"), ("settings", "by"))
        if row.get(name)
    ]
    why = f" ({'; '.join(causes)})" if causes else ""
    return f"{_asked(row)}: {row.get('direction')}, {events:,} events{why}"


def _acl(row: Row) -> str:
    resource = resource_text(f"{row.get('resource_type')} {row.get('pattern_type')}",
                             row.get("resource_name"))  # fmt: skip
    return (
        f"{row.get('permission')} {row.get('operation')} on {resource} "
        f"to {row.get('principal')} from {row.get('host')}"
    )


def _denied(row: Row) -> str:
    told = f"{_asked(row)}: denied {row.get('events') or 0:,} times"
    return f"{told}, the last on {row['last_seen']}" if row.get("last_seen") else told


def _otherwise(row: Row) -> str:
    logged, then = ("allowed" if row.get(key) else "denied" for key in ("allowed", "allowed_then"))
    return f"{_asked(row)}: {logged} {row.get('events') or 0:,} times, and {then} by the ACLs then"


def _opened(row: Row) -> str:
    """A row of what a change of rules opens or closes, for whoever asks."""
    who = row.get("principals") or "everyone"
    if row.get("is_everyone_else") and row.get("principals"):
        who = f"everyone but {who}"
    but = f" but {row['exceptions']}" if row.get("exceptions") else ""
    resource = f"{row.get('resource_type')} {row.get('pattern_type')}"
    example = f", for example {row['example']}" if row.get("example") else ""
    return (
        f"{row.get('change')}: {who}: {row.get('operations')} on "
        f"{resource_text(resource, row.get('name'))}{but} from {row.get('hosts')}{example}"
    )


_DIRECTIONS: Final = {"newly denied": "newly-denied", "newly allowed": "newly-allowed"}


def _kind_of_flip(option: str) -> _Kind:
    def rule(row: Row) -> str | None:
        return _DIRECTIONS.get(str(row.get("direction")))

    return _Kind(rule, _flip, (option, "--acls"))


_OPENED: Final = _Kind(lambda row: "closed" if row.get("change") == "closed" else "opened", _opened)
_KINDS: Final[Mapping[str, _Kind]] = {
    "what-if/flips": _kind_of_flip("--proposed"),
    "diff/flips": _kind_of_flip("--other"),
    "unused/acls": _Kind(
        lambda row: "unused" if row.get("removable") else None,
        lambda row: f"{_acl(row)}: can go ({row.get('use')})",
    ),
    "redundant/covered": _Kind(
        lambda _: "redundant", lambda row: f"{_acl(row)}: covered by {row.get('covered_by')}"
    ),
    "denials/denied": _Kind(lambda _: "denied", _denied),
    "denials/seldom": _Kind(
        lambda _: "denied",
        lambda row: (
            f"{row.get('principal')} {row.get('operation')} on {row.get('resource_type')}: "
            f"{row.get('names')} names denied seldom, such as {row.get('example')}"
        ),
    ),
    "denials/suspects": _Kind(
        lambda _: "suspect",
        lambda row: f"{row.get('principal')} ({row.get('kind')}) was denied {row.get('what')}",
    ),
    "point-in-time/otherwise": _Kind(
        lambda row: "decided-otherwise" if row.get("verdict") == "otherwise" else None,
        _otherwise,
        ("--history",),
    ),
}
"""How rows of each table are told; tables called ``JOB/opened`` are told by `_OPENED`."""
