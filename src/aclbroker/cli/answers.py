"""Answers about ACLs as lines for people, or as rows for programs: JSON, YAML and CSV."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from aclbroker.acl.reasoning.allowing import concerns
from aclbroker.acl.reasoning.compound import Part
from aclbroker.acl.reasoning.difference import Compared
from aclbroker.acl.reasoning.explain import Change, Explanation
from aclbroker.acl.reasoning.names import NamePattern
from aclbroker.acl.reasoning.questions import Holder, Reasoner
from aclbroker.acl.reasoning.regions import Region, Request
from aclbroker.cli.lost_use import LostUse, Use, besides_row, notes, summary, used_line, used_row
from aclbroker.cli.mending import Step, steps
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.terminal import complain, csv_lines, put, put_text

Row = dict[str, Any]


class Answer(NamedTuple):
    """The same twice: rows that all have the same fields, and lines of text.

    ``notes`` are said to standard error when all is written.
    """

    rows: Sequence[Row]
    lines: Sequence[str]
    notes: Sequence[str] = ()


def write(answer: Answer, form: str) -> None:
    """Write an answer to standard output as text, json, yaml or csv."""
    _FORMS[form](answer)
    if answer.notes:
        sys.stdout.flush()
    complain(*answer.notes)


def _text(answer: Answer) -> None:
    put(*answer.lines)


def _json(answer: Answer) -> None:
    # The encoder escapes all control characters but DEL.
    put_text(json.dumps(answer.rows, indent=2, ensure_ascii=True).replace("\x7f", "\\u007f"))


def _yaml(answer: Answer) -> None:
    import yaml

    put_text(yaml.safe_dump(list(answer.rows), sort_keys=False, allow_unicode=False))


def _csv(answer: Answer) -> None:
    if answer.rows:
        rows = (map(_cell, row.values()) for row in answer.rows)
        put(*csv_lines((answer.rows[0], *rows)))


_FORMS: Final[dict[str, Callable[[Answer], None]]] = {
    "text": _text,
    "json": _json,
    "yaml": _yaml,
    "csv": _csv,
}


def _cell(value: Any) -> Any:
    return "; ".join(map(str, value)) if isinstance(value, list) else value


def holders(reasoner: Reasoner, found: Sequence[Holder], *, is_prefix: bool) -> Answer:
    """Return who may do something; with ``is_prefix``, on how many of the names."""
    rows: list[Row] = []
    lines: list[str] = []
    for holder in found:
        on_some = holder.on_some & ~holder.on_all if is_prefix else 0
        for names, mask in (("all", holder.on_all), ("some", on_some)):
            if not mask:
                continue
            hosts = [str(area) for area in reasoner.cut.areas(mask)]
            row: Row = {"principal": str(holder.principals), "hosts": hosts}
            line = f"{holder.principals} from {'; '.join(hosts)}"
            if is_prefix:
                row["names"] = names
                example = f", such as {holder.example.name}" if names == "some" else ""
                line += f", {names} names{example}"
            rows.append({**row, "example": _request(holder.example)})
            lines.append(line)
    users = reasoner.rules.broker_users
    for principal in sorted(users.principals):
        lines.append(f"{principal} on listener {users.listener}, as a broker's user")
    return Answer(rows, lines or ["nobody"])


def regions(found: Iterable[Region]) -> Answer:
    """Return what somebody may do."""
    rows = [_region(each) for each in found]
    lines = [_region_line(row) for row in rows]
    return Answer(rows, lines or ["nothing"])


def differences(compared: Compared, use: LostUse | None = None) -> Answer:
    """Return what is gained and lost, with ``use`` also how much of what is lost was used."""
    rows: list[Row] = []
    lines: list[str] = []
    for number, (is_gained, region) in enumerate(compared.differences):
        row = _region(region)
        example = region.example(compared.named)
        told = None if example is None else _request(example)
        rows.append({"change": "gained" if is_gained else "lost", **row, "example": told})
        lines.append(f"{'+' if is_gained else '-'} {_region_line(row, row['principals'])}")
        lines.append(f"    such as {told}")
        if use is not None:
            _add_use(rows, lines, use.of_differences.get(number))
    for asked, each in use.besides.items() if use is not None else ():
        rows.append(besides_row(asked, each))
        lines.append(f"- {_region_line(rows[-1], rows[-1]['principals'])}")
        _add_use(rows, lines, each)
    lines = lines or ["no difference"]
    if use is not None:
        lines.append(summary(compared, use))
    return Answer(rows, lines, [] if use is None else notes(use))


def _add_use(rows: list[Row], lines: list[str], use: Use | None) -> None:
    """Tell of the last row, and below the last line, how much it was used."""
    rows[-1] |= used_row(use)
    lines += [] if use is None else [used_line(use)]


def explanation(found: Explanation, where: str, *, recorded: str | None = None) -> Answer:
    """Return why a request is decided as it is; ``where`` says from which hosts it comes.

    ``recorded`` is what an audit log says of it.
    """
    verdict = "allowed" if found.is_allowed else "denied"
    deciding = None if found.acl is None else acl_text(found.acl)
    change = None if found.change is None else _change(found.change)
    row: Row = {
        "request": _request(found.request._replace(host=where)),
        "decision": verdict,
        "rule": found.kind.value,
        "acl": deciding,
        "matching": [acl_text(acl) for acl in found.matching],
        "near_misses": [f"{acl_text(near.acl)}: {near.why}" for near in found.near_misses],
        "smallest_change": change,
        "would_do": found.would_do,
        "recorded": recorded,
    }
    lines = [f"{row['request']}: {verdict} ({found.kind.value})"]
    if recorded is not None:
        lines.append(f"recorded: {recorded}")
    if deciding is not None:
        lines.append(f"decided by: {deciding}")
    lines += [f"matches: {text}" for text in row["matching"] if text != deciding]
    lines += [f"nearly allows: {text}" for text in row["near_misses"]]
    if change is not None:
        lines.append(f"would be {'denied' if found.is_allowed else 'allowed'} after: {change}")
    if found.would_do is not None:
        lines.append(f"would do: {found.would_do}")
    return Answer([row], lines)


def activity(parts: Sequence[Part], where: str, change: Change | None, server: str) -> Answer:
    """Return each right that an activity needs, and what would give those that are missing.

    ``where`` says from which hosts the requests come, ``server`` are options of commands, quoted.
    """
    rows: list[Row] = []
    lines: list[str] = []
    made, why_none = _steps(change, server)
    for part in parts:
        verdict = "allowed" if part.is_allowed else "denied"
        rows.append(
            {
                "api": part.need.api,
                "request": _request(part.request._replace(host=where)),
                "decision": verdict,
                "instead": part.instead,
                "fix": [] if part.is_allowed else _lines_for(part.request, made),
                "no_fix": None if part.is_allowed else why_none,
            }
        )
        instead = f" (by {part.instead})" if part.instead else ""
        what = f"{part.request.operation.name} on {part.request.resource_type.name}"
        lines.append(f"{verdict}: {what} {part.request.name} for {part.need.api}{instead}")
    if all(part.is_allowed for part in parts):
        return Answer(rows, ["yes", *lines])
    if made:
        lines += ["would be allowed after:", *(f"    {each.line}" for each in made)]
    elif change is not None:
        lines.append(f"would be allowed after: {_change(change)}")
    if why_none is not None:
        lines.append(f"    no command: {why_none}")
    return Answer(rows, ["no", *lines])


def _steps(change: Change | None, server: str) -> tuple[list[Step], str | None]:
    """Return the command lines of a change, or why there are none."""
    if change is None:
        return [], None
    try:
        return steps(change.add, change.remove, server), None
    except ValueError as error:
        return [], str(error)


def _lines_for(request: Request, made: Sequence[Step]) -> list[str]:
    """Return the lines that have to do with a request: all if another right does in its place."""
    own = [each.line for each in made if any(concerns(acl, request) for acl in each.acls)]
    return own or [each.line for each in made]


def _region(region: Region) -> Row:
    names = region.names
    but = [_pattern(each) for each in names.exceptions]
    but += [f"{principal} on {_pattern(pattern)}" for principal, pattern in region.exceptions()]
    return {
        "principals": str(region.principals),
        "operations": [each.name for each in region.operations],
        "resource_type": names.resource_type.name,
        "pattern_type": names.pattern.pattern_type.name,
        "name": names.pattern.name,
        "but": but,
        "hosts": [str(area) for area in region.hosts],
    }


def _pattern(pattern: NamePattern) -> str:
    return f"{pattern.pattern_type.name} {pattern.name}"


def _region_line(row: Row, principals: str = "") -> str:
    but = f" but {', '.join(row['but'])}" if row["but"] else ""
    who = f"{principals}: " if principals else ""
    return (
        f"{who}{', '.join(row['operations'])} on {row['resource_type']} {row['pattern_type']} "
        f"{row['name']}{but} from {'; '.join(row['hosts'])}"
    )


def _request(request: Request) -> str:
    return str(request)


def _change(change: Change) -> str:
    return str(change)
