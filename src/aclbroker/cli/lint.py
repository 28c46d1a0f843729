"""The arguments of `aclbroker lint`, and its findings as lines, rows and SARIF."""

from __future__ import annotations

import argparse
import gc
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from aclbroker.cli.mending import server_options, steps
from aclbroker.cli.rules_source import SourceError, add_source, source_of

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.acl.reasoning.lint.findings import Finding
    from aclbroker.acl.reasoning.lint.orphans import Live
    from aclbroker.cli.answers import Answer

_STORE: Final = "aclbroker-store"
"""What SARIF calls the store of the default settings."""


def add_lint(parser: argparse.ArgumentParser) -> None:
    """Add the options to the command."""
    parser.add_argument(
        "--ignore",
        metavar="CODE",
        action="append",
        default=[],
        help="a kind of findings to leave out, such as redundant; may be repeated",
    )
    parser.add_argument("--sarif", metavar="FILE", help="write the findings as SARIF 2.1.0, too")
    parser.add_argument(
        "--topics", metavar="FILE", help="the topics that there are, one a line, to find orphans"
    )
    parser.add_argument(
        "--consumer-groups", metavar="FILE", help="the groups that there are, one a line"
    )
    parser.add_argument(
        "--live",
        action="store_true",
        help="ask --bootstrap-server for topics and groups; the login must be allowed to DESCRIBE "
        "all of them",
    )
    parser.add_argument(
        "--accept-empty-list",
        action="store_true",
        help="the cluster has no topics, or no groups, if no name is in their list",
    )
    add_source(parser)


def linted(options: argparse.Namespace) -> tuple[int, Answer]:
    """Return the exit status, and the findings. Raises SourceError and ValueError."""
    from aclbroker.acl.reasoning.lint.findings import CODES, Severity
    from aclbroker.acl.reasoning.lint.linting import lint
    from aclbroker.cli.answers import Answer

    for code in options.ignore:
        if code not in CODES:
            raise ValueError(f"--ignore {code}: no code of {', '.join(CODES)}")
    if options.live and options.bootstrap_server is None:
        raise ValueError("--live asks a cluster: name it with --bootstrap-server")
    live = _live(options)
    source = source_of(options)
    with _no_collector():
        rules = source.rules()
        _check_empty(live, rules.acls, options)
        found = [each for each in lint(rules, live) if each.code not in options.ignore]
        rows = _rows(found, server_options(options))
    if options.sarif is not None:
        _write_sarif(rows, source.place or _STORE, Path(options.sarif))
    lines = [line for row in rows for line in _lines(row)]
    counts = Counter(each.severity for each in found)
    told = ", ".join(_counted(counts[each], each.name.lower()) for each in reversed(Severity))
    summary = f"{_counted(len(found), 'finding')}: {told}" if found else "nothing found"
    is_bad = any(each.severity >= Severity.WARNING for each in found)
    return int(is_bad), Answer(rows, [*lines, summary])


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


@contextmanager
def _no_collector() -> Iterator[None]:
    """Spare Python's collector, which would look through all ACLs again and again for nothing."""
    is_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if is_on:
            gc.enable()


def _live(options: argparse.Namespace) -> Live:
    from aclbroker.acl.files.name_lists import read_groups, read_topics
    from aclbroker.acl.reasoning.lint.orphans import Live

    topics: Collection[str] | None = None
    groups: Collection[str] | None = None
    if options.live:
        topics, groups = _of_cluster(options)
    if options.topics is not None:
        topics = _names(options.topics, read_topics)
    if options.consumer_groups is not None:
        groups = _names(options.consumer_groups, read_groups)
    return Live(topics, groups)


def _names(file: str, read: Callable[[str], frozenset[str]]) -> frozenset[str]:
    """Return the names in a file. Raises SourceError."""
    from aclbroker.acl.files.name_lists import NameListError

    try:
        return read(file)
    except NameListError as error:
        raise SourceError(str(error)) from error
    except OSError as error:
        raise SourceError(f"{file}: {error.strerror or error}") from error


def _check_empty(live: Live, acls: Iterable[AclBinding], options: argparse.Namespace) -> None:
    """Raise SourceError for an empty list, which would make all ACLs of its type orphans."""
    from aclbroker.acl.bindings import ResourceType

    types = {acl.resource_type for acl in acls}
    for kind, names, file, noun in (
        (ResourceType.TOPIC, live.topics, options.topics, "topics"),
        (ResourceType.GROUP, live.groups, options.consumer_groups, "groups"),
    ):
        if names is None or names or kind not in types or options.accept_empty_list:
            continue
        where = f"{file}: it names no {noun}"
        if file is None:
            server = f"kafka://{options.bootstrap_server}"
            where = f"{server}: there are no {noun}, or the login may not DESCRIBE them"
        raise SourceError(
            f"{where}, so each ACL on {noun} would be called orphaned. If the cluster has none, "
            "add --accept-empty-list"
        )


def _of_cluster(options: argparse.Namespace) -> tuple[list[str], list[str]]:
    from aclbroker.broker.client.cluster_info import group_names, topic_names
    from aclbroker.broker.client.errors import ClientError
    from aclbroker.broker.client.session import open_session
    from aclbroker.broker.client.settings import read_addresses, read_settings

    try:
        settings = read_settings(options.command_config)
        with open_session(read_addresses(options.bootstrap_server), settings) as session:
            return topic_names(session), group_names(session, settings)
    except ClientError as error:
        raise SourceError(f"kafka://{options.bootstrap_server}: {error}") from error


class Mending(NamedTuple):
    """Command lines, one after the other, or why there are none."""

    lines: Sequence[str] = ()
    why_none: str | None = None


def mending(finding: Finding, server: str) -> Mending:
    """Return how `aclbroker acls` mends what was found; ``server`` are its options, quoted."""
    fix = finding.fix
    if fix is None:
        return Mending(why_none=finding.no_fix)
    try:
        return Mending([each.line for each in steps(fix.add, fix.remove, server)])
    except ValueError as error:
        return Mending(why_none=str(error))


def _rows(found: Sequence[Finding], server: str) -> list[dict[str, Any]]:
    from aclbroker.pipeline.acls.acl_text import acl_text

    rows = []
    for finding in found:
        mended = mending(finding, server)
        rows.append(
            {
                "code": finding.code,
                "severity": finding.severity.name.lower(),
                "acl": acl_text(finding.acl),
                "proof": finding.proof,
                "because": [acl_text(each) for each in finding.because],
                "fix": list(mended.lines),
                "fix_changes_decisions": not finding.is_safe if mended.lines else None,
                "no_fix": mended.why_none,
            }
        )
    return rows


def _lines(row: dict[str, Any]) -> list[str]:
    safely = "" if row["fix_changes_decisions"] else ", which changes no decision"
    lines = [f"{row['severity']}: {row['code']}: {row['acl']}", f"    {row['proof']}"]
    lines += [f"    there is: {each}" for each in row["because"]]
    if row["fix"]:
        lines += [f"    fix{safely}:", *(f"        {line}" for line in row["fix"])]
    else:
        lines.append(f"    no fix by a command: {row['no_fix']}")
    return lines


def _write_sarif(rows: Sequence[dict[str, Any]], place: str, path: Path) -> None:
    """Write a result for each finding; CI systems know one again by its code and ACL."""
    from urllib.parse import quote

    from aclbroker.acl.reasoning.lint.findings import CODES
    from aclbroker.cli.sarif import write_results

    location = {"physicalLocation": {"artifactLocation": {"uri": quote(place, safe="/:")}}}
    results = [
        {
            "ruleId": row["code"],
            "level": row["severity"],
            "message": {"text": f"{row['acl']}: {row['proof']}"},
            "locations": [location],
            "partialFingerprints": {"acl/v1": _fingerprint(row)},
            "properties": {name: row[name] for name in ("acl", "because", "fix", "no_fix")},
        }
        for row in rows
    ]
    try:
        write_results(path, "aclbroker lint", CODES, results)
    except OSError as error:
        raise SourceError(f"{path}: {error.strerror or error}") from error


def _fingerprint(row: dict[str, Any]) -> str:
    import hashlib

    return hashlib.sha256(f"{row['code']} {row['acl']}".encode()).hexdigest()[:16]
