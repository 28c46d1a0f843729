"""Decides anew what was asked, with the broker's own authorizer core, under any sets of rules.

Only what differs to an authorizer is decided: each principal, operation and resource once, however
often it was asked. A host counts only if some ACL names it; all others are one to every ACL.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as F

from broker.acl.authorizer import ANY_RESOURCE, Decision, Session
from broker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from broker.acl.decisions import AclAuthorizer
from broker.acl.operations import GRANTED_BY, NAMED_BY
from pipeline.acls.ruleset import Ruleset
from pipeline.hosts import Hosts
from pipeline.spark.workers import uncollected

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import StructField

RuleSets = Mapping[str, Mapping[str, Ruleset]]
"""Sets of rules by a name for each, such as ``current``; each a `Ruleset` by cluster."""

Batches = Iterator[pa.RecordBatch]

QUESTION: Final = (
    *("cluster", "listener", "principal", "other_principals", "host", "operation"),
    *("resource_type", "resource_name"),
)
"""The columns of `asked` that differ from question to question; null is a value."""


def asked(usage: DataFrame, sets: RuleSets) -> DataFrame:
    """Return one row for each question that differs to an authorizer, from the table of usage.

    The columns are those of `QUESTION`, of which ``listener`` is null unless some rules have broker
    users, and ``host`` is a class of `pipeline.hosts`. Of all the events that asked the question
    there are ``events``, ``allowed_events`` (how many of them were allowed), ``loud_events`` (how
    many did not only filter an answer), ``reference_count``, ``first_seen``, ``last_seen``, and
    ``example_host``, one of their hosts; it is null if no ACL means it, as ``host`` is.
    """
    hosts = _hosts(sets)
    # What Spark gathers of texts it does by sorting all rows: a class that is a host needs none.
    example = F.min("example_host") if hosts.has_subnets else F.lit(None).cast("string")
    count = F.col("events")
    found = (
        keyed(usage, sets)
        .groupBy(*QUESTION)
        .agg(
            F.sum(count).alias("events"),
            F.sum(F.when(F.col("allowed"), count).otherwise(0)).alias("allowed_events"),
            F.sum(F.when(F.col("quiet"), 0).otherwise(count)).alias("loud_events"),
            F.sum("reference_count").alias("reference_count"),
            F.min("first_seen").alias("first_seen"),
            F.max("last_seen").alias("last_seen"),
            example.alias("example_host"),
        )
    )
    if hosts.has_subnets:
        return found.withColumn(
            "example_host", F.when(F.col("host").isNotNull(), F.col("example_host"))
        )
    return found.withColumn("example_host", F.col("host"))


def _hosts(sets: RuleSets) -> Hosts:
    return Hosts(ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())


def keyed(usage: DataFrame, sets: RuleSets) -> DataFrame:
    """Return usage with the columns of `QUESTION` as `asked` has them.

    So the usage behind a question can be found. The host itself is in ``example_host``.
    """
    classed = _with_class(usage, _hosts(sets))
    rules = (ruleset for by_cluster in sets.values() for ruleset in by_cluster.values())
    if any(ruleset.broker_users.principals for ruleset in rules):
        return classed
    return classed.withColumn("listener", F.lit(None).cast("string"))


def decided(questions: DataFrame, sets: RuleSets, *, explain: bool = False) -> DataFrame:
    """Return the questions with what each set of rules decides.

    For each name in ``sets`` there are the columns ``NAME_allowed`` (boolean) and ``NAME_rule`` (a
    value of `RuleKind`); both are null if the set has no rules for the cluster. With ``explain``
    also ``NAME_allows`` and ``NAME_denies`` (array<int>): which ACLs allow and deny it, as
    positions in ``Ruleset.acls``, implications included; and where
    ``allow_everyone_if_no_acl_found`` holds, ``NAME_on_resource`` (array<int>, else null): all ACLs
    on the resource, whomever they name, since only without any of them the default applies.
    """
    added = added_fields(sets, explain=explain)
    return in_workers(
        questions, sets, lambda batch, rules: [decide(batch, rules, explain=explain)], added
    )


def in_workers(
    questions: DataFrame, sets: RuleSets, function: WorkerFunction, added: Sequence[StructField]
) -> DataFrame:
    """Return what a function makes of the questions, batch by batch.

    ``function`` is given a batch and the rules for `decide`, and returns batches with the columns
    ``added`` behind those of the questions.
    """
    from pyspark.sql.types import StructType

    context = questions.sparkSession.sparkContext
    shipped = context.broadcast({name: Rules(by_cluster) for name, by_cluster in sets.items()})

    def work(batches: Batches) -> Batches:
        rules = shipped.value
        with uncollected():
            for batch in batches:
                yield from function(batch, rules)

    # Those of one peer one after the other: what it may do is then looked up once.
    ordered = questions.sortWithinPartitions(*_PEER)
    return ordered.mapInArrow(work, StructType([*questions.schema.fields, *added]))


def added_fields(sets: RuleSets, *, explain: bool = False) -> list[StructField]:
    """Return the columns that `decided` adds."""
    return [field for name in sets for field in _fields(name, explain)]


def decide(batch: pa.RecordBatch, sets: ShippedSets, *, explain: bool = False) -> pa.RecordBatch:
    """Return a batch of questions with the columns of `decided`; for use in a worker."""
    asked = _Asked(batch)
    arrays, names = list(batch.columns), list(batch.schema.names)
    for name, rules in sets.items():
        for column, array in rules.answer(asked, explain).items():
            names.append(f"{name}_{column}")
            arrays.append(array)
    return pa.RecordBatch.from_arrays(arrays, names)


_PEER: Final = ("cluster", "listener", "principal", "other_principals", "host")


def _with_class(usage: DataFrame, hosts: Hosts) -> DataFrame:
    """Return usage whose ``host`` is a class; the host itself is ``example_host``."""
    kept = usage.withColumn("example_host", F.col("host"))
    if hosts.has_subnets:
        return kept.withColumn("host", _class_function(hosts)("host"))
    if not hosts.named:
        return kept.withColumn("host", F.lit(None).cast("string"))
    named = usage.sparkSession.createDataFrame([(each,) for each in hosts.named], "host string")
    known = F.broadcast(named.withColumn("is_named", F.lit(True)))
    joined = kept.join(known, "host", "left")
    return joined.withColumn("host", F.when(F.col("is_named"), F.col("host"))).drop("is_named")


def _class_function(hosts: Hosts) -> Callable[[str], Column]:
    def classes(column: pa.Array) -> pa.Array:
        encoded = column.dictionary_encode()
        found = [hosts.class_of(host) for host in encoded.dictionary.to_pylist()]
        return pa.array(found, pa.string()).take(encoded.indices)

    function: Callable[[str], Column] = F.arrow_udf(classes, "string")
    return function


def _fields(name: str, explain: bool) -> list[StructField]:
    from pyspark.sql.types import ArrayType, BooleanType, IntegerType, StringType, StructField

    fields = [
        StructField(f"{name}_allowed", BooleanType()),
        StructField(f"{name}_rule", StringType()),
    ]
    if explain:
        fields += [
            StructField(f"{name}_{which}", ArrayType(IntegerType()))
            for which in ("allows", "denies", "on_resource")
        ]
    return fields


_Action = tuple[str, str]
"""The names of an operation and of a resource type."""


class _Asked:
    """The questions of a batch: by peer and action, the rows that ask them."""

    def __init__(self, batch: pa.RecordBatch) -> None:
        self.size = batch.num_rows
        self.names: Sequence[str | None] = batch.column("resource_name").to_pylist()
        self.peers: dict[tuple[str | None, ...], dict[_Action, list[int]]] = {}
        # To no ACL does a host of no class mean anything: none for all of them keeps the peers few.
        has_class = pc.is_valid(batch.column("host"))
        host = pc.if_else(has_class, batch.column("example_host"), None)
        columns = [batch.column(name).to_pylist() for name in _PEER[:-1]]
        peers = zip(*columns, host.to_pylist(), strict=True)
        actions = zip(
            batch.column("operation").to_pylist(),
            batch.column("resource_type").to_pylist(),
            strict=True,
        )
        for row, (peer, action) in enumerate(zip(peers, actions, strict=True)):
            self.peers.setdefault(peer, {}).setdefault(action, []).append(row)


_NOWHERE: Final = "\ud800"
"""A host that no ACL can name, as it is no text; the empty text is one."""


class Rules:
    """A set of rules; the authorizers are made when a worker first asks, and kept there."""

    def __init__(self, by_cluster: Mapping[str, Ruleset]) -> None:
        self._by_cluster = dict(by_cluster)
        self._deciders: dict[str, _Decider] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"_by_cluster": self._by_cluster, "_deciders": {}}

    def ruleset(self, cluster: str) -> Ruleset | None:
        """Return the rules of a cluster, if the set has any."""
        return self._by_cluster.get(cluster)

    def answer(self, asked: _Asked, explain: bool) -> dict[str, pa.Array]:
        """Return the columns that `decided` adds, without the set's name."""
        allowed: list[bool | None] = [None] * asked.size
        kinds: list[str | None] = [None] * asked.size
        reasons: list[list[Sequence[int] | None]] = [[None] * asked.size for _ in range(3)]
        for (cluster, *peer), actions in asked.peers.items():
            decider = self._decider(str(cluster))
            if decider is None:
                continue
            session = _session(*peer)
            for (operation, resource_type), rows in actions.items():
                action = AclOperation[operation], ResourceType[resource_type]
                names = [asked.names[row] for row in rows]
                found = decider.decisions(session, *action, names)
                for row, name, decision in zip(rows, names, found, strict=True):
                    allowed[row] = decision.allowed
                    kinds[row] = decision.kind.value
                    if explain:
                        why = decider.acls_behind(session, *action, name)
                        for reason, positions in zip(reasons, why, strict=True):
                            reason[row] = positions
        columns = {"allowed": pa.array(allowed, pa.bool_()), "rule": pa.array(kinds, pa.string())}
        if explain:
            for which, reason in zip(("allows", "denies", "on_resource"), reasons, strict=True):
                columns[which] = pa.array(reason, pa.list_(pa.int32()))
        return columns

    def _decider(self, cluster: str) -> _Decider | None:
        if cluster not in self._deciders and cluster in self._by_cluster:
            self._deciders[cluster] = _Decider(self._by_cluster[cluster])
        return self._deciders.get(cluster)


ShippedSets = Mapping[str, Rules]
"""Sets of rules by name, as they are in a worker."""

WorkerFunction = Callable[[pa.RecordBatch, ShippedSets], Iterable[pa.RecordBatch]]


def _session(
    listener: str | None, principal: str | None, others: str | None, host: str | None
) -> Session:
    further = () if others is None else json.loads(others)
    address = _NOWHERE if host is None else host
    return Session((principal or "", *further), address, listener or "")


class _Decider:
    """The authorizer of one cluster, and where its ACLs stand in `Ruleset.acls`."""

    def __init__(self, ruleset: Ruleset) -> None:
        self.authorizer: AclAuthorizer = ruleset.authorizer()
        self._acls = ruleset.acls
        self._positions: dict[AclBinding, int] | None = None

    def decisions(
        self,
        session: Session,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Sequence[str | None],
    ) -> list[Decision]:
        """Return the decision for each name."""
        found = self.authorizer.authorize(session, operation, resource_type, names)
        if ANY_RESOURCE in names and resource_type is ResourceType.TOPIC:
            any_topic = self._on_any_topic(session, operation)
            found = [
                any_topic if name == ANY_RESOURCE else decision
                for name, decision in zip(names, found, strict=True)
            ]
        return found

    def _on_any_topic(self, session: Session, operation: AclOperation) -> Decision:
        return self.authorizer.authorize_by_resource_type(session, operation, ResourceType.TOPIC)

    def acls_behind(
        self,
        session: Session,
        operation: AclOperation,
        resource_type: ResourceType,
        name: str | None,
    ) -> tuple[list[int], list[int], list[int] | None]:
        """Return the positions of the ACLs that allow, that deny, and that are on the resource."""
        if self._positions is None:
            self._positions = {acl: position for position, acl in enumerate(self._acls)}
        is_open = self.authorizer.allow_everyone_if_no_acl_found
        if name is None:
            return [], [], [] if is_open else None
        if name == ANY_RESOURCE and resource_type is ResourceType.TOPIC:
            # Other ACLs may say the same: this is one that suffices.
            decision = self._on_any_topic(session, operation)
            acl = decision.rule.binding
            behind = [] if acl is None else [self._positions[acl]]
            allowed, denied = (behind, []) if decision.allowed else ([], behind)
            return allowed, denied, [] if is_open else None
        index = self.authorizer.index
        allows: list[int] = []
        denies: list[int] = []
        # A session may have one principal twice, and its ACLs come as often.
        for acl in dict.fromkeys(index.bindings_for(session.peer, resource_type, name)):
            sources = GRANTED_BY if acl.permission is AclPermission.ALLOW else NAMED_BY
            if sources[operation] >> acl.operation & 1:
                found = allows if acl.permission is AclPermission.ALLOW else denies
                found.append(self._positions[acl])
        on_resource = None
        if is_open:
            matching = index.find(AclFilter(resource_type, name, PatternType.MATCH))
            on_resource = [self._positions[acl] for acl in matching]
        return allows, denies, on_resource
