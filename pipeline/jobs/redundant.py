"""Which ACLs others make superfluous, whatever is asked, and which contradict one another.

What is covered follows from the ACLs alone (`pipeline.analysis.coverage`), so no log is needed; if
there is one, the proposal is replayed as well. Contradictions are told, and left as they are: which
of the two sides was meant is for a person to say.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.analysis.coverage import Contradiction, Covered, contradictions, covered
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.interface.result import Cell, Figure, Result, Table
from aclbroker.pipeline.replay.removal import Removal, proven, rules_of

_COVERED: Final = [
    pa.field("covered_by_id", pa.string()),
    pa.field("covered_by", pa.string()),
    pa.field("same", pa.bool_()),
]
_CONTRADICTIONS: Final = [
    pa.field("denied_by", pa.list_(pa.string())),
    pa.field("entire", pa.bool_()),
]


@dataclass(frozen=True, slots=True)
class RedundantOptions:
    """``top``: how many rows the tables of the summary show."""

    top: int = 20


class _Found(NamedTuple):
    """What was found, each with its cluster."""

    covered: list[tuple[str, Covered]]
    contradictions: list[tuple[str, Contradiction]]


def run(inputs: Inputs, options: RedundantOptions | None = None) -> Result:
    """Return the ACLs that can go for others, and the ALLOWs that DENYs take back.

    Writes both as tables, the ACLs without the covered ones, and the commands that remove these.
    Raises InputError if there are no ACLs.
    """
    options = options or RedundantOptions()
    current = rules_of(inputs.current, "redundant")
    found = _find(current)
    going = {
        cluster: {each.acl for of, each in found.covered if of == cluster} for cluster in current
    }
    removal = proven(inputs.usage.part(current), current, going)
    outputs = _write(inputs, found, removal)
    return _result(current, found, removal, outputs, options.top)


def _find(current: Mapping[str, Ruleset]) -> _Found:
    return _Found(
        [(cluster, each) for cluster, rules in current.items() for each in covered(rules)],
        [(cluster, each) for cluster, rules in current.items() for each in contradictions(rules)],
    )


def _write(inputs: Inputs, found: _Found, removal: Removal) -> dict[str, str]:
    spark, output = inputs.spark, inputs.output
    rows = (
        (cluster, each.acl, (acl_id(each.by), acl_text(each.by), each.same))
        for cluster, each in found.covered
    )
    output.table("redundant/covered", acl_table(spark, rows, _COVERED))
    allows = (
        (cluster, each.allow, ([acl_text(deny) for deny in each.denies], each.entire))
        for cluster, each in found.contradictions
    )
    output.table("redundant/contradictions", acl_table(spark, allows, _CONTRADICTIONS))
    files = output.acls(
        "redundant/remaining",
        {cluster: rules.acls for cluster, rules in removal.remaining.items()},
        current={cluster: rules.acls for cluster, rules in inputs.current.items()},
    )
    return {
        "redundant/covered": "every ACL that another one covers, with that one (Parquet)",
        "redundant/contradictions": "every ALLOW that DENYs take back in whole or part (Parquet)",
        **files,
    }


def _result(
    current: Mapping[str, Ruleset],
    found: _Found,
    removal: Removal,
    outputs: dict[str, str],
    top: int,
) -> Result:
    acls = sum(len(rules.acls) for rules in current.values())
    going = acls - sum(len(rules.acls) for rules in removal.remaining.values())
    events = sum(removal.events.values())
    replayed = f"; none of {events:,} events would have been decided otherwise" if events else ""
    put_back = sum(len(each) for each in removal.put_back.values())
    return Result(
        "redundant",
        "ACLs that others make superfluous",
        f"{going:,} of {acls:,} ACLs are covered by others and can be removed together{replayed}.",
        _figures(acls, found, events),
        _tables(found, several=len(current) > 1, top=top),
        warnings=[f"{put_back} covered ACLs stay: a replay without them changed decisions."]
        if put_back
        else [],
        outputs=outputs,
    )


def _figures(acls: int, found: _Found, events: int) -> list[Figure]:
    entire = sum(each.entire for _, each in found.contradictions)
    return [
        Figure("ACLs", acls),
        Figure("Covered by another ACL", len(found.covered)),
        Figure(
            "Of these, written twice",
            sum(each.same for _, each in found.covered),
            "the same address or subnet in another form",
        ),
        Figure("ALLOWs that never decide", entire, "DENYs take back all of it"),
        Figure("ALLOWs that are denied in part", len(found.contradictions) - entire),
        Figure(
            "Events decided otherwise without the covered ones",
            0 if events else None,
            f"of {events:,} that were replayed" if events else "there is no log to replay",
        ),
    ]


def _tables(found: _Found, *, several: bool, top: int) -> list[Table]:
    """Return the findings for people; with ``several`` clusters, each row names its own."""

    def table(
        title: str, columns: tuple[str, ...], rows: Iterable[tuple[Cell, ...]], note: str = ""
    ) -> Table:
        every = list(rows)
        first = 0 if several else 1
        shown = [row[first:] for row in every[:top]]
        return Table(title, ("Cluster", *columns)[first:], shown, len(every), note)

    def denied(*, entire: bool) -> Iterator[tuple[Cell, ...]]:
        for cluster, each in found.contradictions:
            if each.entire is entire:
                yield cluster, acl_text(each.allow), "; ".join(map(acl_text, each.denies))

    return [
        table(
            "Covered ACLs",
            ("ACL", "Covered by"),
            ((cluster, acl_text(each.acl), acl_text(each.by)) for cluster, each in found.covered),
        ),
        table(
            "ALLOWs that never decide",
            ("ALLOW", "Denied by"),
            denied(entire=True),
            "They are left as they are: which of the two was meant is for a person to say.",
        ),
        table(
            "ALLOWs that are denied in part",
            ("ALLOW", "A part is denied by"),
            denied(entire=False),
            "Often meant so, as an exception; one of the DENYs is named.",
        ),
    ]
