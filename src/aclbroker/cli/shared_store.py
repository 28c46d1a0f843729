"""`aclbroker store check|backup|restore` for stores that brokers share: topics, and ZooKeeper.

A restore is a change like others, which brokers follow while it is made: they need not be stopped.
"""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from aclbroker.acl.bindings import AclBinding, invalid_reason
from aclbroker.broker.credentials.credentials import load_credentials
from aclbroker.broker.observability.logs import log_of_its_own
from aclbroker.broker.server import topic_ids
from aclbroker.broker.stores import (
    AclStore,
    Origin,
    StoreError,
    StoreMissing,
    StoreUnavailable,
    open_store,
)
from aclbroker.broker.stores.archive import read_archive, write_archive
from aclbroker.broker.stores.memory import MemoryStore
from aclbroker.broker.stores.store import LimitedStore
from aclbroker.broker.stores.survey import Survey
from aclbroker.broker.stores.survey_reader import survey
from aclbroker.cli.cluster import failed, told
from aclbroker.cli.migrate.plan import SHOWN, Move, counted, denies, lost_lines, move, steps
from aclbroker.cli.migrate.progress import Progress

_ANSWERS_WITHIN_S: Final = 30.0
_ACLS_AT_ONCE: Final = 5000
_RECORDS_AT_ONCE: Final = 500
_WHO: Final = "Command:restore"
"""Who changes a store here: no user of the broker, nor the broker itself."""

Record = tuple[str, str]


def check(url: str, properties: Mapping[str, str]) -> int:
    """Read all, and tell what is damaged; return the exit status. Raises `StoreError`."""
    found = asyncio.run(_surveyed(url, properties))
    told(f"{url}: {found.described}")
    if found.problems:
        told("It is damaged:", *found.problems)
        return 1
    told("It is whole.")
    unusable = asyncio.run(_unusable(found))
    told(*unusable)
    return 1 if unusable else 0


async def _unusable(found: Survey) -> list[str]:
    """Return why no broker would start with these records."""
    kept = MemoryStore()
    for (kind, name), (value, _) in found.records.items():
        await kept.apply_records(kind, {name: value}, (), Origin.now(_WHO))
    topics = await kept.load_records(topic_ids.KIND)
    problems = []
    for load in (load_credentials(kept, None, 1), topic_ids.load_topic_ids(kept, topics)):
        try:
            await load
        except StoreError as error:
            problems.append(str(error))
    return problems


def backup(url: str, properties: Mapping[str, str], target: Path) -> int:
    """Copy all to a new file, as of one position; return the exit status. Raises `StoreError`."""
    found = asyncio.run(_surveyed(url, properties))
    write_archive(found, target)
    told(f"{target}: {found.described}")
    return 0


def restore(
    url: str, properties: Mapping[str, str], source: Path, *, is_sure: bool, may_lose_denies: bool
) -> int:
    """Have a store have what a backup has, and nothing else; return the exit status.

    Raises `StoreError`.
    """
    wanted = read_archive(source)
    return asyncio.run(_Restore(url, properties, wanted, may_lose_denies).run(is_sure=is_sure))


def accept(url: str, properties: Mapping[str, str], *, is_sure: bool) -> int:
    """Confirm the use of a topic although its beginning was deleted; return the exit status.

    Raises `StoreError`.
    """
    if not url.startswith("kafka://"):
        return failed(f"{url}: only a topic can be accepted; see aclbroker store check")
    # Imported where it is asked for: aiokafka's client takes time to load.
    from aclbroker.broker.stores.kafka.confirming import confirm_beginning
    from aclbroker.broker.stores.kafka.connection import SETTING, place_of

    place = place_of(url, properties.get(SETTING) or None)
    found = asyncio.run(confirm_beginning(place, is_sure=is_sure))
    told(f"{url}: it begins at offset {found.offset} and has {found.acls:,} ACLs")
    if not found.problem:
        told("There is nothing to confirm.")
        return 0
    told(found.problem)
    if not is_sure:
        return failed("nothing was confirmed; --yes confirms it")
    told("It is confirmed. Brokers that run read the topic anew and drop the ACLs it lost.")
    return 0


async def _surveyed(url: str, properties: Mapping[str, str]) -> Survey:
    # Logs go to standard error: standard output has the answer.
    log_of_its_own(sys.stderr, "warning", "console")
    try:
        async with asyncio.timeout(_ANSWERS_WITHIN_S):
            return await survey(url, properties)
    except TimeoutError:
        raise StoreUnavailable(f"{url} did not answer within {_ANSWERS_WITHIN_S:g} s") from None


@dataclass
class _Restore:
    """One restore: what is wanted, and what was done of it so far."""

    url: str
    properties: Mapping[str, str]
    wanted: Survey
    may_lose_denies: bool
    done: Counter[str] = field(default_factory=Counter)
    refused: dict[Record, str] = field(default_factory=dict)

    async def run(self, *, is_sure: bool) -> int:
        """Plan, change and compare; return the exit status."""
        there = await self._there()
        store = await self._opened(makes=False)
        try:
            planned = self._planned(there, store)
            put, gone = _records(self.wanted, there)
            told(f"{self.url}: {there.described}", f"{self.wanted.place}: {self.wanted.described}")
            told(*planned.lines(prune=True, shows_all=False), *_record_lines(put, gone))
            if denies(planned.lost) and not self.may_lose_denies:
                return self._too_much_lost(planned)
            if planned.lost:
                failed(f"{counted(len(planned.lost))} cannot be kept there:")
                failed(*lost_lines(planned.lost))
            if not planned.changes and not put and not gone:
                told(f"{_as_far(is_all=not planned.lost)}: nothing to change.")
                return 1 if planned.lost else 0
            if not is_sure:
                return failed("nothing was changed; with --yes these changes are made")
            if store is None:
                store = await self._opened(makes=True)
            return await self._changed(_given(store), planned, put, gone)
        finally:
            if store is not None:
                await store.close()

    async def _there(self) -> Survey:
        try:
            return await _surveyed(self.url, self.properties)
        except StoreMissing:
            return Survey(self.url, "", 0, {}, {})

    async def _opened(self, *, makes: bool) -> AclStore | None:
        """Return the open store, None if there is none and it is not to be made."""
        # A restore repairs a topic that has lost messages.
        store = open_store(self.url, self.properties, makes=makes, accepts_loss=True)
        try:
            async with asyncio.timeout(_ANSWERS_WITHIN_S):
                await store.open()
        except StoreMissing:
            return None
        return store

    def _planned(self, there: Survey, store: AclStore | None) -> Move:
        limits = store or open_store(self.url, self.properties)

        def refusal(acl: AclBinding) -> str | None:
            own = limits.refusal(acl) if isinstance(limits, LimitedStore) else None
            return invalid_reason(acl) or own

        return move(list(self.wanted.acls), list(there.acls), refusal, prune=True)

    def _too_much_lost(self, planned: Move) -> int:
        return failed(
            *lost_lines(planned.lost),
            f"DENYs that cannot be kept there: {len(denies(planned.lost)):,}. Without them it "
            "would allow more than the backup. Nothing was changed; --accept-lost-denies restores "
            "the others",
        )

    async def _changed(
        self, store: AclStore, planned: Move, put: Mapping[Record, str], gone: list[Record]
    ) -> int:
        """Make the changes, those that take rights away before those that give some; compare."""
        try:
            await self._change(store, planned, put, gone)
        except StoreError as error:
            done = ", ".join(f"{count:,} {what}" for what, count in self.done.items()) or "nothing"
            return failed(str(error), f"Done before that: {done}. Restore again to do the rest")
        for (kind, name), why in self.refused.items():
            failed(f"! record {name!r} of the kind {kind!r}: {why}")
        there = await self._there()
        wanted = set(self.wanted.acls) - set(planned.lost)
        kept = {acl for acl in planned.stays if acl in there.acls}
        differ = set(there.acls) - kept != wanted or self._records_differ(there)
        if differ:
            return failed("it differs from the backup: others change it; restore again")
        is_all = not planned.lost and not self.refused
        told(f"{self.url}: {there.described}", f"{_as_far(is_all=is_all)}.")
        return 0 if is_all else 1

    async def _change(
        self, store: AclStore, planned: Move, put: Mapping[Record, str], gone: list[Record]
    ) -> None:
        changes = planned.changes
        progress = Progress(len(changes.create) + len(changes.remove) + len(put) + len(gone))
        try:
            for kind, names in _by_kind(gone):
                await store.apply_records(kind, {}, names, Origin.now(_WHO))
                self._note("records removed", len(names), progress)
            for step in steps(changes, _ACLS_AT_ONCE):
                await store.apply(step.added, step.removed, Origin.now(_WHO))
                self._note("ACLs added", len(step.added), progress)
                self._note("ACLs removed", len(step.removed), progress)
            for kind, names in _by_kind(put):
                await self._put(store, kind, {name: put[kind, name] for name in names}, progress)
        finally:
            progress.end()

    async def _put(
        self, store: AclStore, kind: str, values: Mapping[str, str], progress: Progress
    ) -> None:
        """Put records of a kind: all at once, or, if some are refused, the others."""
        try:
            await store.apply_records(kind, values, (), Origin.now(_WHO))
        except StoreUnavailable:
            raise
        except StoreError as error:
            if len(values) == 1:
                self.refused[kind, next(iter(values))] = str(error)
                return
            for name, value in values.items():
                await self._put(store, kind, {name: value}, progress)
        else:
            self._note("records put", len(values), progress)

    def _note(self, what: str, count: int, progress: Progress) -> None:
        if count:
            self.done[what] += count
            progress.add(count)

    def _records_differ(self, there: Survey) -> bool:
        put, gone = _records(self.wanted, there)
        return bool(gone) or put.keys() != self.refused.keys()


def _given(store: AclStore | None) -> AclStore:
    if store is None:
        raise StoreMissing("the store was made, and is gone again")
    return store


def _records(wanted: Survey, there: Survey) -> tuple[dict[Record, str], list[Record]]:
    """Return which records are to be put, with their values, and which to be removed."""
    put = {
        key: value
        for key, (value, _) in sorted(wanted.records.items())
        if key not in there.records or there.records[key].value != value
    }
    return put, sorted(there.records.keys() - wanted.records.keys())


def _record_lines(put: Mapping[Record, str], gone: list[Record]) -> list[str]:
    """Return what is told of records: never a value, which may be a secret."""
    lines = []
    for sign, what, keys in (("+", "put", list(put)), ("-", "remove", gone)):
        if keys:
            lines.append(f"records to {what}: {len(keys):,}")
            lines += [f"{sign} {kind} {name}" for kind, name in keys[:SHOWN]]
            if len(keys) > SHOWN:
                lines.append(f"{sign} and {len(keys) - SHOWN:,} more")
    return lines


def _by_kind(keys: Mapping[Record, str] | list[Record]) -> list[tuple[str, list[str]]]:
    """Return the names of each kind, in lists of some hundred."""
    kinds: dict[str, list[str]] = {}
    for kind, name in keys:
        kinds.setdefault(kind, []).append(name)
    return [
        (kind, names[begin : begin + _RECORDS_AT_ONCE])
        for kind, names in kinds.items()
        for begin in range(0, len(names), _RECORDS_AT_ONCE)
    ]


def _as_far(*, is_all: bool) -> str:
    if is_all:
        return "It has all of the backup, and nothing else"
    return "It has all of the backup that it can; what it has not, or keeps, is told above"
