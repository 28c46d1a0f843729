"""What changes are about: one's own, which are known exactly, and others', which have to be read.

What others have changed is read later than they did it, and may have been changed since. So the
changes from the first of others on are told as one: no ALLOW is then seen before a DENY that came
first. Changes of one's own before that are told one by one, as they were made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from aclbroker.acl.bindings import ResourcePattern
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import Origin
from aclbroker.broker.stores.zookeeper.change_nodes import Change
from aclbroker.broker.stores.zookeeper.decoding import decode_change
from aclbroker.broker.stores.zookeeper.layout import NodeAcls, UnreadableNode, invalid_name
from aclbroker.broker.stores.zookeeper.records import RECORD_CHANGES, decode_record_change

log = get_logger()

State = Mapping[ResourcePattern, NodeAcls | UnreadableNode]
Records = Mapping[tuple[str, str], str | None]


class Own(NamedTuple):
    """What a transaction of one's own has left: what patterns have, and the values of records."""

    origin: Origin
    acls: State
    records: Records


class News(NamedTuple):
    """What is to be told: transactions of one's own by zxid, in order, and what to read then.

    ``last`` is the zxid of the last change of others, or behind these; 0 if there is none.
    """

    own: list[tuple[int, Own]]
    patterns: list[ResourcePattern]
    records: list[tuple[str, str]]
    last: int


def sorted_out(changes: Iterable[Change], own: Mapping[int, Own]) -> News:
    """Return what changes are about; those that cannot be read are skipped, as by Kafka."""
    ordered = sorted(changes, key=lambda change: change.zxid)
    exact: list[tuple[int, Own]] = []
    rest: list[Change] = []
    for zxid, together in groupby(ordered, key=lambda change: change.zxid):
        if zxid in own and not rest:
            exact.append((zxid, own[zxid]))
        else:
            rest += together
    patterns: dict[ResourcePattern, None] = {}
    records: dict[tuple[str, str], None] = {}
    for change in rest:
        _add(change, patterns, records)
    return News(exact, list(patterns), list(records), rest[-1].zxid if rest else 0)


def _add(
    change: Change,
    patterns: dict[ResourcePattern, None],
    records: dict[tuple[str, str], None],
) -> None:
    try:
        if change.directory == RECORD_CHANGES:
            kind, names = decode_record_change(change.data)
            records.update(((kind, name), None) for name in names)
        else:
            pattern = decode_change(change.directory, change.data)
            if invalid_name(pattern.name) is None:
                patterns[pattern] = None
    except UnreadableNode as error:
        log.warning(
            "a change in ZooKeeper cannot be read", path=change.directory, reason=str(error)
        )


def newest(changes: Sequence[Change]) -> int:
    """Return when the last of some changes was made, in milliseconds, by ZooKeeper's clock."""
    return max((change.time_ms for change in changes), default=0)
