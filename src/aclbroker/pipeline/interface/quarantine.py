"""The lines in quarantine, for jobs that propose ACLs: an ALLOW that they may have used stays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.analysis.doubted import doubted
from aclbroker.pipeline.usage.doubt import Doubt

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Quarantine:
    """The table `pipeline.schemas.quarantine`, read when a job first needs it.

    ``lines`` may be None for an empty table. ``clusters`` are the clusters of the log. A line with
    another cluster name may belong to any of them.
    """

    def __init__(self, lines: DataFrame | None = None, clusters: Sequence[str] = ()) -> None:
        self._lines = lines
        self._clusters = frozenset(clusters)

    @cached_property
    def _doubts(self) -> Mapping[str, set[Doubt]]:
        from aclbroker.pipeline.ingest.doubts import doubts

        return {} if self._lines is None else doubts(self._lines)

    @cached_property
    def _counts(self) -> Mapping[str, int]:
        from aclbroker.pipeline.ingest.doubts import lines_by_cluster

        return {} if self._lines is None else lines_by_cluster(self._lines)

    def doubted(self, cluster: str, acls: Sequence[AclBinding]) -> set[int]:
        """Return the positions of a cluster's ALLOWs that quarantined lines may have used."""
        found = [
            each
            for name, some in self._doubts.items()
            if self._is_of(name, cluster)
            for each in some
        ]
        return doubted(acls, found)

    def too_much(self, events: Mapping[str, int], most: float) -> dict[str, str]:
        """Return the clusters with more than ``most`` percent of lines in quarantine, and why.

        ``events`` has the number of events by cluster.
        """
        found = {}
        for cluster, count in events.items():
            lines = sum(n for name, n in self._counts.items() if self._is_of(name, cluster))
            if lines * 100 > most * (lines + count):
                found[cluster] = (
                    f"{lines:,} lines of its log are in quarantine, beside {count:,} events: more "
                    f"than {most:g} of 100. A client may have forged lines, or the log is damaged; "
                    "look at them, or accept more with --max-quarantined"
                )
        return found

    def _is_of(self, name: str, cluster: str) -> bool:
        return name == cluster or name not in self._clusters
