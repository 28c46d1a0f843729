"""The past of a topic: the changes that it still has, and which ACLs there were at a position."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.advice import refuse_damaged
from aclbroker.broker.stores.kafka.completeness import Said, Written, horizon
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.messages import Setting, transaction_id
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.topic import prepare
from aclbroker.broker.stores.reading import History, PastAcls, PastChange
from aclbroker.broker.stores.store import StoreError, StoreUnavailable
from aclbroker.broker.stores.times import written_time

_ATTEMPTS: Final = 5


class Entry(NamedTuple):
    """A committed message, and the position of its transaction: behind the last message of that.

    Of transactions of which compaction has removed the last one it is behind the last that is left.
    """

    position: int
    offset: int
    key: bytes
    setting: Setting
    kafka_ms: int
    """When it was written, by Kafka or by the client, as the topic's settings are."""

    @property
    def time_ms(self) -> int:
        """When it was asked for, or written if that is not known."""
        origin = self.setting.origin
        return self.kafka_ms if origin is None else origin.time_ms


class Past(NamedTuple):
    """What a topic still has, in the order in which it became visible."""

    place: Place
    cluster_id: str
    begin: int
    """The first offset of the topic: if it is not 0, somebody has deleted what was before."""

    entries: Sequence[Entry]
    horizon: int
    """From this position on it is known which ACLs there were."""

    end: int
    """Up to this position."""

    def history(self) -> History:
        """Return the changes of ACLs."""
        changes = []
        newest: dict[AclBinding, int] = {}
        for each in self.entries:
            binding, setting = each.setting.binding, each.setting
            # A message of a transaction that ended later may be older: it has no effect.
            if binding is None or newest.get(binding, -1) > each.offset:
                continue
            newest[binding] = each.offset
            changes.append(PastChange(each.position, binding, setting.is_removed, setting.origin))
        # Decisions name positions behind marks, too.
        return History(changes, self.horizon, self._left_out(), self.end, self.cluster_id)

    def acls_at(self, position: int | None, time_ms: int | None) -> PastAcls:
        """Return the ACLs as they were at a position, or at a time in milliseconds since the epoch.

        Raises `StoreError` for what is not known exactly, or was not yet.
        """
        if position is None:
            asked = f"at {written_time(time_ms or 0)}"
            until = [each.position for each in self.entries if each.time_ms <= (time_ms or 0)]
            position = max(until, default=0)
            if position == self._last(self.end):
                # There is nothing behind it, but marks of transactions.
                position = self.end
        else:
            asked = f"at position {position}"
        if position > self.end:
            raise StoreError(
                f"{self.place}: it has come to position {self.end}, and not yet to {position}"
            )
        if position < self.horizon:
            raise StoreError(f"{self.place}: {self._why_not(asked)}")
        last = self._last(position)
        return PastAcls(_acls(self.entries, position), last, self.cluster_id)

    def _last(self, position: int) -> int:
        """Return the position of the last change up to one."""
        return max((each.position for each in self.entries if each.position <= position), default=0)

    def _why_not(self, asked: str) -> str:
        if self.begin:
            why = f"the messages before offset {self.begin} were deleted from the topic"
        else:
            why = "compaction has removed earlier changes"
        return (
            f"which ACLs there were {asked} cannot be known exactly, since {why}; it can from "
            f"position {self.horizon}{self._when(self.horizon)} on"
        )

    def _left_out(self) -> str:
        if not self.horizon:
            return ""
        if self.begin:
            return f"changes before offset {self.begin} are missing: somebody deleted them"
        return (
            "changes may be missing that were made before position "
            f"{self.horizon}{self._when(self.horizon)}: the topic is compacted, and has lost some "
            "that later changes of the same ACL replaced"
        )

    def _when(self, position: int) -> str:
        times = [each.time_ms for each in self.entries if each.position <= position]
        return f" ({written_time(times[-1])})" if times else ""


async def read_past(place: Place) -> Past:
    """Return what a topic has now. Raises `StoreError`, `StoreMissing` without a topic."""
    topic = await asyncio.to_thread(prepare, place, makes=False, warns=False)
    for _ in range(_ATTEMPTS):
        before = await _written(place)
        reader = Reader(place)
        await reader.open()
        try:
            end = await reader.end()
            entries = await _entries(reader, end)
            begin = reader.begin
        finally:
            await reader.close()
        after = await _written(place)
        if _is_unchanged(before, after, end):
            refuse_damaged(str(place), _problems(reader.unreadable), "read")
            entries = _placed(entries, after)
            said = [_said(each, after) for each in entries]
            known = end if begin else horizon(said, after, end)
            # A transaction that goes on behind the end is visible later, as a whole.
            visible = [each for each in entries if each.position <= end]
            visible.sort(key=lambda each: each[:2])
            return Past(place, topic.id, begin, visible, known, end)
    raise StoreUnavailable(f"{place}: it is being compacted; try again")


def _problems(unreadable: Mapping[bytes, str]) -> list[str]:
    return [f"the message at {reason}" for reason in unreadable.values()]


async def _written(place: Place) -> Written:
    """Return which messages there are, with those that are not committed."""
    reader = Reader(place, committed=False)
    await reader.open()
    try:
        found = Written(reader.begin)
        async for each in reader.messages():
            found.add(each.offset, transaction_id(each.headers))
    finally:
        await reader.close()
    return found


async def _entries(reader: Reader, end: int) -> list[Entry]:
    """Return the messages before an end that are committed and can be read."""
    found: list[Entry] = []
    async for each in reader.messages():
        if each.offset >= end:
            break
        setting = reader.setting_of(each)
        if setting is not None:
            found.append(Entry(each.offset + 1, each.offset, each.key, setting, each.timestamp))
    return found


def _is_unchanged(before: Written, after: Written, end: int) -> bool:
    """Tell whether compaction has left alone what was read in between."""
    end = min(before.end, end)
    return before.begin == after.begin and before.up_to(end) == after.up_to(end)


def _placed(entries: Iterable[Entry], written: Written) -> list[Entry]:
    """Return the same with the positions of their transactions."""
    return [
        each
        if each.setting.transaction is None
        else each._replace(position=written.last[each.setting.transaction.id] + 1)
        for each in entries
    ]


def _said(entry: Entry, written: Written) -> Said:
    setting, transaction = entry.setting, entry.setting.transaction
    is_of_part = transaction is not None and written.sizes[transaction.id] < transaction.size
    return Said(entry.offset, entry.position, entry.key, setting.is_removed, is_of_part)


def _acls(entries: Iterable[Entry], position: int) -> list[AclBinding]:
    """Return the ACLs that there are with all that became visible up to a position.

    Of two messages about one of them the one with the higher offset counts.
    """
    newest: dict[AclBinding, Entry] = {}
    for each in entries:
        binding = each.setting.binding
        if binding is None or each.position > position:
            continue
        known = newest.get(binding)
        if known is None or known.offset < each.offset:
            newest[binding] = each
    return [binding for binding, each in newest.items() if not each.setting.is_removed]
