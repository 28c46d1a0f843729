"""Counts what the tables of a log hold: its days, its events by cluster, its quarantined lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.pipeline import schemas
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.ingest.unread import FORMS
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded
from aclbroker.pipeline.usage.table import Tables, Usage

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_MOST_NAMED: Final = 1000
_KEYS: Final = ("cluster", "day", "allowed", "super_user")
_NEEDED: Final = ("cluster", "day", "allowed", "rule", "principal", "other_principals", "events")


class Content(NamedTuple):
    """What a log holds: ``clusters`` has the events of each, ``quarantined`` lines by reason.

    ``super_users`` has the events of each cluster's principals whom the log calls super users, of a
    thousand from each task at most. Of a session with several principals the log does not say which
    one is, and none of them is counted.
    """

    window: Window
    clusters: dict[str, int]
    quarantined: dict[str, int]
    super_users: dict[str, Counter[str]]

    def unlisted(self, listed: Mapping[str, frozenset[str]]) -> Counter[str]:
        """Return the events of those super users whom ``listed``, by cluster, does not name."""
        found: Counter[str] = Counter()
        for cluster, users in self.super_users.items():
            others = users.keys() - listed.get(cluster, frozenset())
            found.update({name: users[name] for name in others})
        return found


def content(usage: Usage, quarantine: DataFrame) -> Content:
    """Count the tables `pipeline.schemas.usage` and ``quarantine``.

    Raises InputError if there are no events.
    """
    from aclbroker.pipeline.frames import functions as F

    rows = usage.map(_counted, _type(), _NEEDED).collect()
    reasons = quarantine.groupBy("reason").agg(F.count("*").alias("lines")).collect()
    quarantined = {row.reason: row.lines for row in sorted(reasons, key=lambda row: -row.lines)}
    if not rows:
        raise InputError("the input holds no events in these days" + _none(quarantined))
    clusters: Counter[str] = Counter()
    super_users: dict[str, Counter[str]] = {}
    for row in rows:
        clusters[row.cluster] += row.events
        if row.super_user is not None:
            super_users.setdefault(row.cluster, Counter())[row.super_user] += row.events
    by_day: Counter[date] = Counter()
    for row in rows:
        by_day[row.day] += row.events
    events = clusters.total()
    allowed = sum(row.events for row in rows if row.allowed)
    window = Window(
        min(by_day),
        max(by_day),
        events,
        allowed,
        events - allowed,
        sum(quarantined.values()),
        dict(sorted(by_day.items())),
    )
    return Content(window, dict(sorted(clusters.items())), quarantined, super_users)


def _none(quarantined: Mapping[str, int]) -> str:
    """Say which lines are no events, and what can be read."""
    if not quarantined:
        return ""
    reason, lines = next(iter(quarantined.items()))
    return f", and {sum(quarantined.values()):,} lines that are none ({lines:,}: {reason}); {FORMS}"


def _type() -> StructType:
    from aclbroker.pipeline.frames.types import StringType, StructField, StructType

    usage = schemas.usage()
    named = [usage[name] for name in ("cluster", "day", "allowed", "events")]
    return StructType([*named[:3], StructField("super_user", StringType()), named[3]])


def _counted(tables: Tables) -> Tables:
    for found in counted(map(_with_super_user, tables), _KEYS, {"events": "sum"}):
        yield _few_named(found)


def _few_named(found: pa.Table) -> pa.Table:
    """Name no more super users than `_MOST_NAMED`: a forged log may hold any number of them."""
    users = found["super_user"].combine_chunks()
    busiest = pc.if_else(users.is_valid(), found["events"].combine_chunks(), -1)
    is_named = np.zeros(len(users), bool)
    is_named[pc.sort_indices(busiest, [("", "descending")])[:_MOST_NAMED]] = True
    named = pc.if_else(pa.array(is_named), users.indices, None)
    column = pa.DictionaryArray.from_arrays(named, users.dictionary)
    return found.set_column(found.column_names.index("super_user"), "super_user", column)


def _with_super_user(table: pa.Table) -> pa.Table:
    table = encoded(table.select(_NEEDED))
    columns = ("rule", "principal", "other_principals", "allowed")
    rule, principal, others, allowed = (table[name].combine_chunks() for name in columns)
    is_rule = pc.equal(rule.dictionary, RuleKind.SUPER_USER.value).take(rule.indices)
    is_super_user = pc.and_(pc.fill_null(is_rule, False), pc.and_(allowed, others.is_null()))
    named = pc.if_else(is_super_user, principal.indices, None)
    users = pa.DictionaryArray.from_arrays(named, principal.dictionary)
    return table.append_column("super_user", users)
