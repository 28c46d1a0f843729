"""Finds the ACLs that others cover, and proves by a replay that they can go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.analysis.redundancy import Contradiction, Covered, redundancies
from aclbroker.pipeline.interface.inputs import Inputs
from aclbroker.pipeline.replay.removal import Removal, proven, rules_of

COVERED: Final = "redundant/covered"
CONTRADICTIONS: Final = "redundant/contradictions"
"""The tables that are written."""

_TEXTS: Final = pa.list_(pa.string())
_COVERED: Final = [
    pa.field("covered_by_ids", _TEXTS),
    pa.field("covered_by", _TEXTS),
    pa.field("same", pa.bool_()),
    pa.field("proof", pa.string()),
]
_CONTRADICTIONS: Final = [
    pa.field("denied_by_ids", _TEXTS),
    pa.field("denied_by", _TEXTS),
    pa.field("entire", pa.bool_()),
    pa.field("proof", pa.string()),
]


class Redundancies(NamedTuple):
    """What was found, each with its cluster, and what is left without the covered ACLs.

    ``current`` are the rules that were looked at. ``outputs`` are what was written, with what it
    is.
    """

    current: Mapping[str, Ruleset]
    covered: list[tuple[str, Covered]]
    contradictions: list[tuple[str, Contradiction]]
    removal: Removal
    outputs: dict[str, str]


def find(inputs: Inputs) -> Redundancies:
    """Write and return what was found. Raises InputError if there are no ACLs."""
    current = rules_of(inputs.current, "redundant")
    found = {cluster: redundancies(rules) for cluster, rules in current.items()}
    covering = [(cluster, each) for cluster, every in found.items() for each in every.covered]
    contradicting = [
        (cluster, each) for cluster, every in found.items() for each in every.contradictions
    ]
    going = {cluster: {each.acl for each in every.covered} for cluster, every in found.items()}
    removal = proven(inputs.usage.part(current), current, going)
    _write_tables(inputs, covering, contradicting)
    files = inputs.output.acls(
        "redundant/remaining",
        {cluster: rules.acls for cluster, rules in removal.remaining.items()},
        current={cluster: rules.acls for cluster, rules in inputs.current.items()},
    )
    outputs = {
        COVERED: "every ACL that others cover, with these (Parquet)",
        CONTRADICTIONS: "every ALLOW that DENYs take back in whole or part (Parquet)",
        **files,
    }
    return Redundancies(current, covering, contradicting, removal, outputs)


def _write_tables(
    inputs: Inputs,
    covering: list[tuple[str, Covered]],
    contradicting: list[tuple[str, Contradiction]],
) -> None:
    spark, output = inputs.spark, inputs.output
    rows = ((cluster, each.acl, (*_named(each.by), *each[2:])) for cluster, each in covering)
    output.table(COVERED, acl_table(spark, rows, _COVERED))
    allows = (
        (cluster, each.allow, (*_named(each.denies), *each[2:])) for cluster, each in contradicting
    )
    output.table(CONTRADICTIONS, acl_table(spark, allows, _CONTRADICTIONS))


def _named(acls: Sequence[AclBinding]) -> tuple[list[str], list[str]]:
    return [acl_id(acl) for acl in acls], [acl_text(acl) for acl in acls]
