"""What is recommended for some companies of a log, found and proven in a task.

A company are principals that come together in sessions (`pipeline.analysis.companies`): what is
recommended for one has nothing to do with the others. What they have in common are DENYs. A task
has all of the cluster, and tells which of them hold for something that it grants; those that do so
for no task's grants can go. So it proves its own part under whichever of these DENYs will be there:
what was used is allowed with all of them, and what was denied is denied with those alone that it
needs itself. Nor do its grants open anything with these alone.

Where resources without any ACL are open to everyone, all of a cluster is one part: which ACL closes
a name depends on all others.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.pipeline.acls.by_principal import packed_acls
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import Principals, Unmet
from aclbroker.pipeline.analysis.opened import (
    AskedQuestion,
    ChangedRights,
    RightsTexts,
    changed_rights,
)
from aclbroker.pipeline.analysis.prefixes import Candidate
from aclbroker.pipeline.analysis.proof import other_readings, with_subnets
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence
from aclbroker.pipeline.interface.opened_rights import RIGHTS_IN_PARTS
from aclbroker.pipeline.jobs.recommend import pieces
from aclbroker.pipeline.jobs.recommend.known import ClusterRules, Known
from aclbroker.pipeline.jobs.recommend.pieces import Piece, in_batches, piece, rows_of
from aclbroker.pipeline.jobs.recommend.prefix_rows import PREFIX_COLUMNS, prefix_rows
from aclbroker.pipeline.jobs.recommend.replayed import (
    CURRENT,
    RECOMMENDED,
    SESSION,
    answered,
    counts_of,
    flips_of,
    session_of,
    uses_of,
    with_now,
)
from aclbroker.pipeline.replay.deciding import Rules, ShippedSets
from aclbroker.pipeline.spark.workers import uncollected
from aclbroker.pipeline.usage.table import Batches

if TYPE_CHECKING:
    from pyspark import Broadcast

UNMET_COLUMNS: Final = pa.schema(
    [
        ("principals", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("host", "operation", "resource_type", "resource_name")),
        ("reason", pa.string()),
    ]
)


def rights_of_silent(
    cluster: ClusterRules | None, kept: Collection[AclBinding], seen: Collection[str]
) -> Iterator[ChangedRights]:
    """Yield the changed rights of principals without events, and of principals without ACLs.

    ``kept`` are the DENYs and ALLOWs that stay, and ``seen`` the principals of the parts. The
    result is empty if all of the cluster is one part, or if its rules are unknown.
    """
    if cluster is None or cluster.is_whole:
        return iter(())
    now = cluster.ruleset
    silent = {acl.principal for acl in now.acls}.difference(seen)
    before, after = (cluster.of(each, silent) for each in (now, now.with_acls(kept)))
    return changed_rights(before, after, cut=cluster.cut)


def recommended(known: Broadcast[Known], batches: Batches) -> Batches:
    """Yield the pieces of batches of questions, each of which has companies as a whole."""
    with uncollected():
        for batch in batches:
            asked = pa.Table.from_batches([batch])
            table = with_now(answered(asked, {CURRENT: known.value.current}))
            for cluster, of_cluster in _by_cluster(table):
                yield pieces.batch_of(_Part(cluster, of_cluster, known.value).pieces())


def _by_cluster(table: pa.Table) -> Iterator[tuple[str, pa.Table]]:
    clusters = pc.unique(table["cluster"]).to_pylist()
    for cluster in clusters:
        # A large company is mostly alone, and another copy of it is to be saved.
        is_all = len(clusters) == 1
        yield cluster, table if is_all else table.filter(pc.equal(table["cluster"], cluster))


class _Decided(NamedTuple):
    """What is recommended for a part, and what else was found on the way."""

    rules: Ruleset
    unmet: Sequence[Unmet]
    considered: Sequence[Candidate]
    forbidden: Collection[AclBinding]


class _Part:
    """Questions of one cluster that are of some of its companies."""

    def __init__(self, cluster: str, questions: pa.Table, known: Known) -> None:
        self._cluster = cluster
        self._questions = questions
        self._known = known
        distinct = questions.select(SESSION).group_by(list(SESSION), use_threads=False)
        self._session_rows = distinct.aggregate([])
        self._sessions: list[Principals] = [
            session_of(row) for row in self._session_rows.to_pylist()
        ]
        self._principals = {each for session in self._sessions for each in session}

    def pieces(self) -> Iterator[Piece]:
        """Yield all that is found."""
        cluster = self._known.cluster(self._cluster)
        before = None if cluster is None else cluster.before(self._principals)
        found = self._found(before)
        counts, flips = self._replayed(cluster, found.rules)
        yield self._piece(pieces.SESSIONS, self._session_rows)
        yield self._piece(pieces.COUNTS, counts)
        yield from self._acls(cluster, found.rules)
        unmet = [
            (each.principals, each.host, each.operation.name, each.resource_type.name, *each[4:])
            for each in found.unmet
        ]
        if unmet:
            yield self._piece(pieces.UNMET, rows_of(UNMET_COLUMNS, unmet))
        if flips.num_rows:
            yield self._piece(pieces.FLIPS, flips)
        opened: list[ChangedRights] = []
        if cluster is not None and before is not None:
            yield from self._rights(cluster, before, found.rules, flips, opened)
        if self._known.prefixes is not None:
            price = self._known.prefixes.maximum_price
            rows = prefix_rows(found.considered, found.rules, found.forbidden, price, opened)
            yield self._piece(pieces.PREFIXES, rows_of(PREFIX_COLUMNS, rows))

    def _piece(self, kind: str, table: pa.Table) -> Piece:
        return piece(kind, self._cluster, table)

    def _found(self, before: Ruleset | None) -> _Decided:
        evidence = Evidence(
            uses_of(self._questions),
            self._sessions,
            self._known.names.get(self._cluster, {}),
            self._known.hosts.get(self._cluster, {}),
        )
        draft = Draft(evidence, before, self._known.prefixes)
        forbidden = self._newly_allowing(draft.widest()) if draft.affordable else ()
        rules = self._with_doubted(draft.rules(forbidden), before)
        # What was used, and the grants for it, take as much memory as the rules.
        return _Decided(rules, draft.grants.unmet, draft.considered, forbidden)

    def _with_doubted(self, rules: Ruleset, before: Ruleset | None) -> Ruleset:
        """Return rules with the ALLOWs that quarantined lines may have used, and all DENYs."""
        doubted = self._known.doubted.get(self._cluster)
        if not doubted or before is None:
            return rules
        kept = [
            acl for acl in before.acls if acl in doubted or acl.permission is AclPermission.DENY
        ]
        return rules.with_acls(dict.fromkeys([*rules.acls, *kept]))

    def _newly_allowing(self, rules: Ruleset) -> set[AclBinding]:
        """Return the ACLs of some rules that would allow what was asked and is denied now."""
        is_denied = pc.invert(self._questions["wanted"])
        denied = self._questions.filter(
            pc.and_(is_denied, pc.is_valid(self._questions["resource_name"]))
        )
        found = answered(denied, self._sets(rules), explain=True)
        allowed = found.filter(found["recommended_allowed"])
        places = pc.unique(pc.list_flatten(allowed["recommended_allows"])).to_pylist()
        return {rules.acls[place] for place in places}

    def _sets(self, rules: Ruleset) -> ShippedSets:
        return {RECOMMENDED: Rules({self._cluster: rules})}

    def _replayed(
        self, cluster: ClusterRules | None, rules: Ruleset
    ) -> tuple[pa.RecordBatch, pa.Table]:
        """Return the counts of a replay under what is recommended, and the flips."""
        most = rules
        if cluster is not None and not cluster.is_whole:
            most = rules.with_acls([*rules.acls, *cluster.denies])
        wanted = self._questions["wanted"]
        replayed = pa.concat_tables(
            [
                answered(self._questions.filter(wanted), self._sets(most)),
                answered(self._questions.filter(pc.invert(wanted)), self._sets(rules)),
            ]
        )
        return counts_of(replayed), flips_of(replayed)

    def _acls(self, cluster: ClusterRules | None, rules: Ruleset) -> Iterator[Piece]:
        is_whole = cluster is None or cluster.is_whole
        allows = [
            acl
            for acl in rules.acls
            if acl.permission is AclPermission.ALLOW
            # ALLOWs to User:* are not of a part, unless it is the only one (`doubted_of_silent`).
            and (is_whole or acl.principal != WILDCARD_PRINCIPAL)
        ]
        allows.sort(key=lambda acl: acl.principal)
        for principal, theirs in groupby(allows, key=lambda acl: acl.principal):
            packed = packed_acls(sorted(theirs))
            yield Piece(pieces.ALLOWS, self._cluster, principal, packed)
        kept = set(rules.acls)
        denies = () if cluster is None else cluster.denies
        places = [place for place, acl in enumerate(denies) if acl in kept]
        if places:
            yield self._piece(pieces.DENIES, pa.table({"place": pa.array(places, pa.int64())}))

    def _rights(
        self,
        cluster: ClusterRules,
        before: Ruleset,
        after: Ruleset,
        flips: pa.Table,
        opened: list[ChangedRights],
    ) -> Iterator[Piece]:
        """Yield what changes for the part's principals, and for everybody without ACLs.

        What hosts are is taken as given; what would open if they were read otherwise is told, too.
        """
        old, new = (cluster.of(each, self._principals) for each in (before, after))
        asked = _asked(flips)

        def rows() -> Iterator[RightsTexts]:
            for each in changed_rights(old, new, self._sessions, asked, cluster.cut):
                if each.is_opened:
                    opened.append(each)
                yield each.texts()
            told = {each.texts() for each in opened}
            for read in other_readings(before):
                cut = cluster.cut_by_subnets if read is with_subnets else cluster.cut
                found = changed_rights(read(old), read(new), self._sessions, asked, cut)
                more = [each.texts() for each in found if each.is_opened]
                yield from (each for each in more if not any(each.is_within(one) for one in told))
                told.update(more)

        for some in in_batches(RIGHTS_IN_PARTS, rows()):
            yield self._piece(pieces.RIGHTS, some)


def _asked(flips: pa.Table) -> list[AskedQuestion]:
    # What was asked of any topic is no request of a region.
    is_one = pc.and_(
        pc.is_valid(flips["resource_name"]), pc.not_equal(flips["resource_name"], ANY_RESOURCE)
    )
    named = flips.filter(pc.fill_null(is_one, False))
    return [
        AskedQuestion(
            session_of(row),
            row["example_host"],
            AclOperation[row["operation"]],
            ResourceType[row["resource_type"]],
            row["resource_name"],
        )
        for row in named.to_pylist()
    ]
