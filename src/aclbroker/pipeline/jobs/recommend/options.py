"""The options of the job `recommend`."""

from __future__ import annotations

from dataclasses import dataclass

from aclbroker.pipeline.analysis.prefixes import PrefixOptions


@dataclass(frozen=True, slots=True)
class RecommendOptions:
    """The options of the job.

    - ``prefixes``: recommend PREFIXED ACLs in place of several names, which may open other names; a
      ``maximum_price`` above 0 does so, too
    - ``minimum_names``, ``minimum_length``, ``maximum_price``, ``any_prefix``: the limits of such
      prefixes, see `pipeline.analysis.prefixes.PrefixOptions`
    - ``hosts``: name the hosts of principals that came from at most ``most_hosts`` hosts
    - ``max_drift``: leave out a cluster if more than this percentage of its events was decided
      otherwise than its rules decide
    - ``min_coverage``: leave out a cluster if less than this percentage of its logged hours has
      allowed events
    - ``max_quarantined``: leave out a cluster if more than this percentage of its log's lines is in
      quarantine
    - ``top``: the number of rows in the tables of the report

    Raises ValueError for a number below what is sensible.
    """

    prefixes: bool = False
    minimum_names: int = 3
    minimum_length: int = 4
    maximum_price: int = 0
    any_prefix: bool = False
    hosts: bool = False
    most_hosts: int = 3
    max_drift: float = 1.0
    min_coverage: float = 100.0
    max_quarantined: float = 10.0
    top: int = 20

    def __post_init__(self) -> None:
        self.of_prefixes()
        if self.most_hosts < 1:
            raise ValueError(f"most_hosts must be at least 1, not {self.most_hosts}")

    def of_prefixes(self) -> PrefixOptions | None:
        """Return the options of prefixes; None if there are to be none."""
        found = PrefixOptions(
            self.minimum_names, self.minimum_length, self.maximum_price, self.any_prefix
        )
        return found if self.prefixes or self.maximum_price else None
