"""ACLs that others make superfluous, for people to read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.opened import Opened
from aclbroker.pipeline.interface.result import Cell, Figure, JobResult, Table
from aclbroker.pipeline.jobs.redundant.find import CONTRADICTIONS, COVERED, Redundancies


def summary(found: Redundancies, top: int) -> JobResult:
    """Return what was found, with the first ``top`` rows of each table."""
    removal = found.removal
    acls = sum(len(rules.acls) for rules in found.current.values())
    going = acls - sum(len(rules.acls) for rules in removal.remaining.values())
    events = sum(removal.events.values())
    replayed = f"; none of {events:,} events flips" if events else ""
    changed = removal.changed.values()
    closed = next((each for each in changed if each.closed), Opened(()))
    put_back = sum(len(each) for each in removal.put_back.values())
    return JobResult(
        "redundant",
        "ACLs that others make superfluous",
        f"{going:,} of {acls:,} ACLs are covered by others and can be removed together: that opens "
        f"nothing, and {closed.sentence_of_closed()}{replayed}.",
        _figures(acls, found, events),
        _tables(found, several=len(found.current) > 1, top=top),
        warnings=[f"{put_back} covered ACLs stay: a replay without them changed decisions."]
        if put_back
        else [],
        outputs=found.outputs,
        alarms={"opened": sum(each.rights_opened for each in changed)},
    )


def _figures(acls: int, found: Redundancies, events: int) -> list[Figure]:
    entire = sum(each.entire for _, each in found.contradictions)
    return [
        Figure("ACLs", acls),
        Figure("Covered by other ACLs", len(found.covered)),
        Figure(
            "Of these, written twice",
            sum(each.same for _, each in found.covered),
            "the same address or subnet in another form",
        ),
        Figure("ALLOWs that never decide", entire, "DENYs take back all of it"),
        Figure(
            "ALLOWs that are denied in part",
            len(found.contradictions) - entire,
            "operations of theirs, wherever they hold",
        ),
        Figure(
            "Events decided otherwise without the covered ones",
            0 if events else None,
            f"of {events:,} that were replayed" if events else "there is no log to replay",
        ),
    ]


def _tables(found: Redundancies, *, several: bool, top: int) -> list[Table]:
    """Return the findings for people; with ``several`` clusters, each row names its own."""

    def table(
        title: str,
        source: str,
        columns: tuple[str, ...],
        rows: Iterable[tuple[Cell, ...]],
        note: str = "",
    ) -> Table:
        every = list(rows)
        first = 0 if several else 1
        shown = [row[first:] for row in every[:top]]
        return Table(title, ("Cluster", *columns)[first:], shown, len(every), note, source)

    def denied(*, entire: bool) -> Iterator[tuple[Cell, ...]]:
        for cluster, each in found.contradictions:
            if each.entire is entire:
                yield cluster, acl_text(each.allow), _texts(each.denies), each.proof

    return [
        table(
            "Covered ACLs",
            COVERED,
            ("ACL", "Covered by", "Why"),
            (
                (cluster, acl_text(each.acl), _texts(each.by), each.proof)
                for cluster, each in found.covered
            ),
        ),
        table(
            "ALLOWs that never decide",
            CONTRADICTIONS,
            ("ALLOW", "Denied by", "Why"),
            denied(entire=True),
            "They are left as they are: which of the two was meant is for a person to say.",
        ),
        table(
            "ALLOWs that are denied in part",
            CONTRADICTIONS,
            ("ALLOW", "A part is denied by", "What"),
            denied(entire=False),
            "What is denied for some names, hosts or principals alone is an exception, and no "
            "contradiction.",
        ),
    ]


def _texts(acls: Iterable[AclBinding]) -> str:
    return "; ".join(map(acl_text, acls))
