"""What the current rules decide on everything that was asked, and which ACLs are behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id
from aclbroker.pipeline.replay import replay
from aclbroker.pipeline.replay.deciding import ShippedSets, decide
from aclbroker.pipeline.usage.table import Batches, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_SET: Final = "current"
_IDS: Final = {"allow_ids": f"{_SET}_allows", "deny_ids": f"{_SET}_denies"}


def decisions(usage: Usage, current: Mapping[str, Ruleset]) -> DataFrame:
    """Return what is decided on each question about the clusters whose rules are known.

    The columns are those of `pipeline.replay.questions.gathered`, ``allowed``, ``rule`` (a value of
    `RuleKind`), and ``allow_ids`` and ``deny_ids`` (array<string>): the ACLs that allow and that
    deny it, implications included, each as `acl_id`.
    """
    from aclbroker.pipeline.frames.types import ArrayType, BooleanType, StringType, StructField

    added = [
        StructField("allowed", BooleanType()),
        StructField("rule", StringType()),
        *(StructField(name, ArrayType(StringType())) for name in _IDS),
    ]
    return replay.replayed_by(usage.part(current), {_SET: current}, _Namer(), added)


class _Namer:
    """Decides batches of questions, and names ACLs by their ids."""

    def __init__(self) -> None:
        self._ids: dict[str, dict[int, str]] = {}

    def __call__(self, batch: pa.RecordBatch, sets: ShippedSets) -> Batches:
        decided = decide(batch, sets, explain=True)
        clusters = decided.column("cluster").to_pylist()
        found = batch
        for name in ("allowed", "rule"):
            found = found.append_column(name, decided.column(f"{_SET}_{name}"))
        for name, positions in _IDS.items():
            ids = [
                self._named(cluster, of_question, sets)
                for cluster, of_question in zip(
                    clusters, decided.column(positions).to_pylist(), strict=True
                )
            ]
            found = found.append_column(name, pa.array(ids, pa.list_(pa.string())))
        yield found

    def _named(self, cluster: str, positions: Sequence[int], sets: ShippedSets) -> list[str]:
        known = self._ids.setdefault(cluster, {})
        for position in positions:
            if position not in known:
                ruleset = sets[_SET].ruleset(cluster)
                assert ruleset is not None  # noqa: S101 - it has just decided
                known[position] = acl_id(ruleset.acls[position])
        return [known[position] for position in positions]
