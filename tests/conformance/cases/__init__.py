"""The requests: hand-picked ones by what is odd about them, and drawn ones, all plain data."""

from __future__ import annotations

from tests.conformance.cases import cluster, connections, creations, drawn, filters, rights
from tests.conformance.cases.scenario import Scenario, Step

SCENARIOS = (
    *creations.creations(),
    *creations.creation_batches(),
    *creations.refused_whole(),
    *creations.too_long_for_version_1(),
    *filters.filtered(),
    *filters.oldest(),
    *rights.rights(),
    *connections.malformed(),
    *connections.sessions(),
    *cluster.cluster(),
    *drawn.drawn(),
    *drawn.drawn_rights(),
)
"""All cases, in the order in which they are played."""

__all__ = ["SCENARIOS", "Scenario", "Step"]
