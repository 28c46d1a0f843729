"""What makes a recommendation doubtful: one warning for all clusters; tables have the details."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from aclbroker.acl.bindings import WILDCARD_PRINCIPAL, AclBinding, AclPermission
from aclbroker.pipeline.acls.ruleset import Change
from aclbroker.pipeline.interface.coverage import coverage_warnings
from aclbroker.pipeline.interface.inputs import Inputs, Window
from aclbroker.pipeline.interface.left_out import left_out_lines
from aclbroker.pipeline.interface.wording import clusters_in_short
from aclbroker.pipeline.jobs.recommend.find import Recommendation
from aclbroker.pipeline.jobs.recommend.replayed import ReplayCounts
from aclbroker.pipeline.replay.drift import Drift, drift_warnings
from aclbroker.pipeline.report.words import counted


class PrincipalAcls(NamedTuple):
    """How many ACLs name a principal of a cluster, ``before`` and as recommended.

    ``allows`` of those before are ALLOWs, and ``allows_kept`` of these are recommended. ``is_seen``
    tells whether the log has anything of the principal.
    """

    cluster: str
    principal: str
    before: int
    after: int
    allows: int
    allows_kept: int
    is_seen: bool

    @property
    def is_silent(self) -> bool:
        """Whether it loses ALLOWs because the log does not know it."""
        return not self.is_seen and self.allows_kept < self.allows


def principals_of(
    cluster: str, changes: Iterable[tuple[AclBinding, Change]], seen: Collection[str]
) -> list[PrincipalAcls]:
    """Return all principals that ACLs of a cluster name, in their order.

    ``changes``: every ACL of now and every recommended one. ``seen`` are the principals of its log,
    and super users, who need no ACL. Everybody counts as seen.
    """
    counts: dict[str, list[int]] = {}
    for acl, change in changes:
        was, stays = change != "added", change == "kept"
        is_allow = acl.permission is AclPermission.ALLOW
        here = counts.setdefault(acl.principal, [0, 0, 0, 0])
        for at, count in enumerate(
            (was, change != "removed", was and is_allow, stays and is_allow)
        ):
            here[at] += count
    known = {*seen, WILDCARD_PRINCIPAL}
    return [
        PrincipalAcls(cluster, who, before, after, allows, allows_kept, who in known)
        for who, (before, after, allows, allows_kept) in sorted(counts.items())
    ]


def warnings(
    inputs: Inputs, found: Recommendation, principals: Sequence[PrincipalAcls]
) -> list[str]:
    """Return all that is doubtful; where nothing is, nothing."""
    counts = found.proof.counts
    told = {name: rules for name, rules in inputs.current.items() if name in counts}
    drift = [Drift(), *(counts[name].drift for name in told)]
    left_out = (f"{each[0].upper()}{each[1:]}" for each in left_out_lines(found.left_out))
    return [
        *left_out,
        *coverage_warnings(
            inputs,
            found.rules,
            "Unlogged use is not granted.",
        ),
        *about_flips(counts),
        *about_quarantine(inputs.window, found.doubted_allows),
        *about_silent(principals, inputs.window),
        *drift_warnings(
            Drift(*map(sum, zip(*drift, strict=True))),
            inputs.usage,
            told,
        ),
        *about_clusters(counts, [name for name in inputs.current if name not in found.left_out]),
    ]


def about_quarantine(window: Window, doubted: int) -> Iterator[str]:
    """Yield a warning about quarantined lines, and the ALLOWs that stay because of them."""
    if window.quarantined:
        yield (
            f"{counted(window.quarantined, 'line')} of the log cannot be read reliably. "
            f"{counted(doubted, 'ALLOW')} that they may have used stay as they are, with all DENYs"
            if doubted
            else f"{counted(window.quarantined, 'line')} of the log cannot be read reliably; no "
            "ALLOW can have been used by them"
        )


def about_flips(counts: Mapping[str, ReplayCounts]) -> Iterator[str]:
    """Warn of questions that would be decided otherwise."""
    flips = sum(each.flips for each in counts.values())
    if flips:
        yield (
            f"{counted(flips, 'question')} would be decided otherwise than now, and no ACL can be "
            "recommended that mends it: see recommend/flips"
        )


def about_silent(principals: Sequence[PrincipalAcls], window: Window) -> Iterator[str]:
    """Warn of principals that lose ALLOWs because the log does not know them."""
    silent = [each for each in principals if each.is_silent]
    if silent:
        partly = sum(each.allows_kept > 0 for each in silent)
        loss = "all their ALLOWs"
        if partly:
            loss += f"; {partly:,} of them only some, since others keep resources closed"
        yield (
            f"{counted(len(silent), 'principal')} with ALLOWs asked for nothing from "
            f"{window.first_day} to {window.last_day}, and would lose {loss}. Who works more "
            "seldom than that is not known"
        )


def about_clusters(counts: Mapping[str, ReplayCounts], known: Collection[str]) -> Iterator[str]:
    """Warn of clusters whose ACLs are not known, and of those that there is nothing to say of."""
    unknown = [cluster for cluster in counts if cluster not in known]
    if unknown:
        mixed = sum(counts[cluster].mixed_events for cluster in unknown)
        yield (
            f"the ACLs of {clusters_in_short(unknown)} are not given: what the log says was "
            f"allowed is taken for used ({mixed:,} events are of questions that it answers both "
            "ways), no DENY is kept, and what the recommended set opens is not known"
        )
    missing = sorted(set(known) - set(counts))
    if missing:
        yield (f"no recommendation for {clusters_in_short(missing)}: the log has no event there")
