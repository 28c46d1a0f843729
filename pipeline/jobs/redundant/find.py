"""Finds the ACLs that others cover, and proves by a replay that they can go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import pyarrow as pa

from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.analysis.coverage import Contradiction, Covered, contradictions, covered
from aclbroker.pipeline.interface.inputs import Inputs
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
    covering = [(cluster, each) for cluster, rules in current.items() for each in covered(rules)]
    contradicting = [
        (cluster, each) for cluster, rules in current.items() for each in contradictions(rules)
    ]
    going = {cluster: {each.acl for of, each in covering if of == cluster} for cluster in current}
    removal = proven(inputs.usage.part(current), current, going)
    _write_tables(inputs, covering, contradicting)
    files = inputs.output.acls(
        "redundant/remaining",
        {cluster: rules.acls for cluster, rules in removal.remaining.items()},
        current={cluster: rules.acls for cluster, rules in inputs.current.items()},
    )
    outputs = {
        "redundant/covered": "every ACL that another one covers, with that one (Parquet)",
        "redundant/contradictions": "every ALLOW that DENYs take back in whole or part (Parquet)",
        **files,
    }
    return Redundancies(current, covering, contradicting, removal, outputs)


def _write_tables(
    inputs: Inputs,
    covering: list[tuple[str, Covered]],
    contradicting: list[tuple[str, Contradiction]],
) -> None:
    spark, output = inputs.spark, inputs.output
    rows = (
        (cluster, each.acl, (acl_id(each.by), acl_text(each.by), each.same))
        for cluster, each in covering
    )
    output.table("redundant/covered", acl_table(spark, rows, _COVERED))
    allows = (
        (cluster, each.allow, ([acl_text(deny) for deny in each.denies], each.entire))
        for cluster, each in contradicting
    )
    output.table("redundant/contradictions", acl_table(spark, allows, _CONTRADICTIONS))
