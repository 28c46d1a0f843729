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

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.broker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    ResourceType,
)
from aclbroker.broker.reasoning.hosts import HostCut
from aclbroker.pipeline.acls.by_principal import packed_acls
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.least_privilege import Principals, SessionUse, as_java
from aclbroker.pipeline.analysis.opened import AskedQuestion, ChangedRights, changed_rights
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence
from aclbroker.pipeline.interface.opened_rights import RIGHTS_IN_PARTS
from aclbroker.pipeline.jobs.recommend import pieces
from aclbroker.pipeline.jobs.recommend.pieces import Piece, piece, rows_of
from aclbroker.pipeline.jobs.recommend.prefix_rows import PREFIX_COLUMNS, prefix_rows
from aclbroker.pipeline.jobs.recommend.replayed import counts_of, flips_of, session_of
from aclbroker.pipeline.replay.deciding import Rules, ShippedSets, decide
from aclbroker.pipeline.usage.grouping import encoded, numbered, values

if TYPE_CHECKING:
    from pyspark import Broadcast

SESSION: Final = ("principal", "other_principals")
"""The columns that tell a session's principals, beside the cluster."""

UNMET_COLUMNS: Final = pa.schema(
    [
        ("principals", pa.list_(pa.string())),
        *((name, pa.string()) for name in ("host", "operation", "resource_type", "resource_name")),
        ("reason", pa.string()),
    ]
)

_CURRENT: Final = "current"


@dataclass
class Known:
    """What tasks know beside the rules, by cluster.

    ``prefixes``: which PREFIXED ACLs there may be; None for none. ``names``: the resources that
    exist, where there may be prefixes. ``hosts``: the hosts of those principals whose grants are to
    name them.
    """

    prefixes: PrefixOptions | None
    names: Mapping[str, Mapping[ResourceType, Collection[str]]]
    hosts: Mapping[str, Mapping[str, Collection[str]]]
    _clusters: dict[str, ClusterRules] = field(default_factory=dict)

    def cluster(self, name: str, ruleset: Ruleset) -> ClusterRules:
        """Return the ACLs of a cluster by whom they name, made once in a worker."""
        found = self._clusters.get(name)
        if found is None:
            further = {
                as_java(each) for of in self.hosts.get(name, {}).values() for each in of if each
            }
            found = self._clusters[name] = ClusterRules(ruleset, further)
        return found


def denies_of(ruleset: Ruleset) -> list[AclBinding]:
    """Return the DENYs, by whose places tasks tell which are kept."""
    return [acl for acl in ruleset.acls if acl.permission is AclPermission.DENY]


class ClusterRules:
    """The current rules of a cluster, as parts of it need them."""

    def __init__(self, ruleset: Ruleset, hosts: Collection[str]) -> None:
        self.ruleset = ruleset
        self.denies = denies_of(ruleset)
        self._allows: dict[str, list[AclBinding]] = {}
        for acl in ruleset.acls:
            if acl.permission is AclPermission.ALLOW:
                self._allows.setdefault(acl.principal, []).append(acl)
        self.cut = HostCut({*hosts, *(acl.host for acl in ruleset.acls)}, ruleset.cidr)

    @property
    def is_whole(self) -> bool:
        """Whether all of the cluster is one part."""
        return self.ruleset.allow_everyone_if_no_acl_found

    def before(self, principals: Collection[str]) -> Ruleset:
        """Return all rules that can decide about some principals, with every DENY."""
        if self.is_whole:
            return self.ruleset
        allows = (self._allows.get(each, ()) for each in {*principals, WILDCARD_PRINCIPAL})
        return self.ruleset.with_acls([*self.denies, *(acl for each in allows for acl in each)])

    def of(self, rules: Ruleset, principals: Collection[str]) -> Ruleset:
        """Return rules with the ACLs alone that name some principals, or everybody."""
        if self.is_whole:
            return rules
        named = {*principals, WILDCARD_PRINCIPAL}
        return rules.with_acls(acl for acl in rules.acls if acl.principal in named)


def rights_of_silent(
    cluster: ClusterRules, denies: Collection[AclBinding], seen: Collection[str]
) -> Iterator[ChangedRights]:
    """Yield what changes for those who asked for nothing, and for everybody without ACLs.

    ``denies`` are kept; ``seen`` are the principals of parts. There are none of them where all of a
    cluster is one part.
    """
    if cluster.is_whole:
        return iter(())
    now = cluster.ruleset
    silent = {acl.principal for acl in now.acls}.difference(seen)
    before, after = (cluster.of(each, silent) for each in (now, now.with_acls(denies)))
    return changed_rights(before, after, cut=cluster.cut)


def recommended(
    known: Broadcast[Known], batch: pa.RecordBatch, sets: ShippedSets
) -> Iterator[pa.RecordBatch]:
    """Yield the pieces of a batch of questions that has companies as a whole."""
    table = with_now(decide(batch, {_CURRENT: sets[_CURRENT]}))
    for cluster in pc.unique(table["cluster"]).to_pylist():
        part = _Part(cluster, table.filter(pc.equal(table["cluster"], cluster)), known.value)
        yield pieces.batch_of(part.pieces(sets[_CURRENT].ruleset(cluster)))


def with_now(decided: pa.RecordBatch) -> pa.Table:
    """Return decided questions with ``wanted`` and ``exempt``.

    Wanted is what the current rules allow, or the log where they are not known; exempt are the
    questions of super users, and of broker users on their listener.
    """
    table = pa.Table.from_batches([decided])
    wanted = pc.coalesce(table["current_allowed"], pc.greater(table["allowed_events"], 0))
    exempt = pc.equal(table["current_rule"], RuleKind.SUPER_USER.value)
    return table.append_column("wanted", wanted).append_column(
        "exempt", pc.fill_null(exempt, False)
    )


def uses_of(table: pa.Table) -> list[SessionUse]:
    """Return what was used of a cluster's questions, by session, host, operation and type."""
    is_used = pc.and_(table["wanted"], pc.invert(table["exempt"]))
    used = table.filter(pc.and_(is_used, pc.is_valid(table["resource_name"])))
    columns = encoded(used.select([*_USE, "resource_name", "example_host"]))
    numbers = numbered(columns, _USE)
    order = np.argsort(numbers, kind="stable")
    bounds = [*np.flatnonzero(np.diff(numbers[order], prepend=-1)).tolist(), len(order)]
    in_order = columns.take(pa.array(order))
    names, examples = values(in_order["resource_name"]), values(in_order["example_host"])
    firsts = in_order.select(_USE).take(pa.array(bounds[:-1], pa.int64())).to_pylist()
    return [
        SessionUse(
            session_of(row),
            # The class of a host may be a subnet; the host itself is what ACLs are held against.
            None if row["host"] is None else min(filter(None, examples[first:end])),
            AclOperation[row["operation"]],
            ResourceType[row["resource_type"]],
            # Listeners may be told apart, and then a name occurs for each.
            [each for each in dict.fromkeys(names[first:end]) if each is not None],
        )
        for row, (first, end) in zip(firsts, pairwise(bounds), strict=True)
    ]


_USE: Final = (*SESSION, "host", "operation", "resource_type")


class _Decided(NamedTuple):
    """What is recommended for a part, and all that was considered for it."""

    draft: Draft
    forbidden: Collection[AclBinding]
    rules: Ruleset


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

    def pieces(self, ruleset: Ruleset | None) -> Iterator[Piece]:
        """Yield all that is found; ``ruleset`` are the current rules, None if not known."""
        cluster = None if ruleset is None else self._known.cluster(self._cluster, ruleset)
        before = None if cluster is None else cluster.before(self._principals)
        found = self._found(before)
        replayed = self._replayed(cluster, found.rules)
        yield self._piece(pieces.SESSIONS, self._session_rows)
        yield self._piece(pieces.COUNTS, counts_of(replayed))
        yield from self._acls(cluster, found.rules)
        unmet = [
            (each.principals, each.host, each.operation.name, each.resource_type.name, *each[4:])
            for each in found.draft.grants.unmet
        ]
        if unmet:
            yield self._piece(pieces.UNMET, rows_of(UNMET_COLUMNS, unmet))
        flips = flips_of(replayed)
        if flips.num_rows:
            yield self._piece(pieces.FLIPS, flips)
        opened: list[ChangedRights] = []
        if cluster is not None and before is not None:
            yield from self._rights(cluster, before, found.rules, flips, opened)
        if self._known.prefixes is not None:
            price = self._known.prefixes.maximum_price
            rows = prefix_rows(found.draft.considered, found.rules, found.forbidden, price, opened)
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
        return _Decided(draft, forbidden, draft.rules(forbidden))

    def _newly_allowing(self, rules: Ruleset) -> set[AclBinding]:
        """Return the ACLs of some rules that would allow what was asked and is denied now."""
        is_denied = pc.invert(self._questions["wanted"])
        denied = self._questions.filter(
            pc.and_(is_denied, pc.is_valid(self._questions["resource_name"]))
        )
        answered = self._answered(denied, rules, explain=True)
        allowed = answered.filter(answered["recommended_allowed"])
        places = pc.unique(pc.list_flatten(allowed["recommended_allows"])).to_pylist()
        return {rules.acls[place] for place in places}

    def _answered(self, questions: pa.Table, rules: Ruleset, *, explain: bool = False) -> pa.Table:
        sets = {"recommended": Rules({self._cluster: rules})}
        (batch,) = questions.combine_chunks().to_batches() or [_empty(questions)]
        return pa.Table.from_batches([decide(batch, sets, explain=explain)])

    def _replayed(self, cluster: ClusterRules | None, rules: Ruleset) -> pa.Table:
        """Return the questions with what is decided about them under what is recommended."""
        most = rules
        if cluster is not None and not cluster.is_whole:
            most = rules.with_acls([*rules.acls, *cluster.denies])
        wanted = self._questions["wanted"]
        return pa.concat_tables(
            [
                self._answered(self._questions.filter(wanted), most),
                self._answered(self._questions.filter(pc.invert(wanted)), rules),
            ]
        )

    def _acls(self, cluster: ClusterRules | None, rules: Ruleset) -> Iterator[Piece]:
        allows = [acl for acl in rules.acls if acl.permission is AclPermission.ALLOW]
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
        """Yield what changes for the part's principals, and for everybody without ACLs."""
        changes = changed_rights(
            cluster.of(before, self._principals),
            cluster.of(after, self._principals),
            self._sessions,
            _asked(flips),
            cluster.cut,
        )

        def rows() -> Iterator[Sequence[Any]]:
            for each in changes:
                if each.is_opened:
                    opened.append(each)
                yield each.texts()

        for some in in_tables(RIGHTS_IN_PARTS, rows()):
            yield self._piece(pieces.RIGHTS, some)


_AT_ONCE: Final = 20_000


def in_tables(schema: pa.Schema, rows: Iterable[Sequence[Any]]) -> Iterator[pa.Table]:
    """Yield rows as tables of some at a time."""
    some: list[Sequence[Any]] = []
    for row in rows:
        some.append(row)
        if len(some) == _AT_ONCE:
            yield rows_of(schema, some)
            some = []
    if some:
        yield rows_of(schema, some)


def _empty(table: pa.Table) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], table.schema)


def _asked(flips: pa.Table) -> list[AskedQuestion]:
    named = flips.filter(pc.is_valid(flips["resource_name"]))
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
