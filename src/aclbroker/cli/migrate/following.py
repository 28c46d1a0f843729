"""Brings what changes at the source to the target, again and again until it is stopped."""

from __future__ import annotations

import os
import select
import signal
import sys
import time
from collections.abc import Collection, Hashable
from types import FrameType
from typing import Any, Final, Self

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.authorizer.source_guard import SourceGuard, SourceLoss, gone_of
from aclbroker.cli.cluster import failed, told
from aclbroker.cli.migrate.moving import Difference, LostDenies, difference, make
from aclbroker.cli.migrate.places import Contents, Place, PlaceError
from aclbroker.cli.migrate.plan import counted, denies, lost_lines, lost_of
from aclbroker.cli.policy.plan import plan

_SETTLES_WITHIN_S: Final = 10.0
_LOOKS_AGAIN_S: Final = 0.1

EMPTY: Final = (
    "it has no ACLs at all, and the target would lose its own, DENYs too. If that is meant, "
    "--accept-empty-source removes them"
)
"""Why a source that is empty, as a new file is, does not empty the target."""


class Follower:
    """A source, and a target with the ACLs that the source had when it was read last.

    ``lost`` has the ACLs of the source that the target cannot hold, each with the reason. The
    ``guard`` stops removals from the target if the source may have lost its data.
    """

    def __init__(
        self,
        source: Place,
        target: Place,
        *,
        may_lose_denies: bool,
        guard: SourceGuard | None = None,
    ) -> None:
        self.lost: dict[AclBinding, str] = {}
        self._source = source
        self._target = target
        self._may_lose_denies = may_lose_denies
        self._guard = guard or SourceGuard(kept=False)
        self._seen: set[AclBinding] = set()
        # What a round that failed may have added to the target, or removed from it.
        self._unsure: set[AclBinding] = set()
        self._stamp: Hashable | None = None
        self._notes: tuple[str, ...] = ()

    def first(self) -> Contents:
        """Return the contents of the source, which the target is going to have."""
        self._stamp = self._source.stamp()
        contents = self._source.read()
        self._guard.known = self._source.identity()
        self._tell(contents)
        self._seen = set(contents.acls)
        return contents

    def judge(self, left: int, had: int, gone: Collection[AclBinding]) -> None:
        """Raise `PlaceError` if the source may have lost its data.

        ``left`` is the number of its ACLs, ``had`` their former number, and ``gone`` are the ACLs
        to be removed from the target.
        """
        try:
            self._guard.judge(self._source.identity(), left, had, gone_of(gone))
        except SourceLoss as loss:
            raise PlaceError(
                f"{self._source.url}: the source may have lost its data: {loss}. The target stays "
                "as it is. Bring the data back; or, if this is meant, start the command again with "
                f"--prune --accept-loss={loss.token}"
            ) from None

    def settle_loss(self) -> None:
        """Note that the target has the ACLs of the source, which ends a confirmed loss."""
        self._guard.settle()

    def settle(self) -> bool:
        """Wait until a file that is being edited stays as it is; tell whether it has in time."""
        end = time.monotonic() + _SETTLES_WITHIN_S
        while self._source.is_edited and self._source.stamp() is None and not self._is_as_seen():
            if time.monotonic() >= end:
                return False
            time.sleep(_LOOKS_AGAIN_S)
        return True

    def _is_as_seen(self) -> bool:
        try:
            return set(self._source.read().acls) == self._seen
        except PlaceError:
            # It may be half written.
            return False

    def follow(self, interval: float) -> bool:
        """Bring changes over until a signal comes; tell whether the last round could do that.

        ``interval`` is the pause between two looks at the source, in seconds. While a place cannot
        be reached it is tried again. Raises `LostDenies`.
        """
        told(f"Following {self._source.url}; Ctrl-C ends it.")
        sys.stdout.flush()
        trouble = ""
        with _Stop() as stop:
            while not stop.wait(interval):
                try:
                    self.round()
                except PlaceError as error:
                    if str(error) != trouble:
                        failed(*str(error).splitlines(), "it is tried again")
                    trouble = str(error)
                else:
                    if trouble:
                        told("It goes on.")
                    trouble = ""
                sys.stdout.flush()
        return not trouble

    def round(self) -> bool:
        """Look at the source once, and tell whether there was anything to bring over.

        What cannot be brought over now is tried again in the next round. Raises `PlaceError` and
        `LostDenies`.
        """
        stamp = self._source.stamp()
        if stamp is None and self._source.is_edited:
            return False
        is_new = stamp is None or stamp != self._stamp
        if not (is_new or self._unsure or self._guard.is_stopped):
            return False
        contents = self._source.read()
        self._tell(contents)
        now = set(contents.acls)
        changes = now != self._seen or bool(self._unsure)
        if changes or self._guard.is_stopped:
            had = self._seen | self._unsure
            self.judge(len(now), len(had), had - now)
        if changes:
            self._bring(now)
        self._seen, self._stamp = now, stamp
        return changes

    def _bring(self, now: set[AclBinding]) -> None:
        new = (now - self._seen) | (now & self._unsure)
        gone = (self._seen | self._unsure) - now
        lost = lost_of(new, self._target.refusal)
        if denies(lost) and not self._may_lose_denies:
            raise LostDenies(lost)
        unknown = lost_of(gone, self._target.refusal)
        changes = plan(new.difference(lost), gone.difference(unknown), prune=True)
        self._unsure.update(changes.create, changes.remove)
        refused = make(changes, self._target, may_lose_denies=self._may_lose_denies)
        lost |= refused
        added = set(changes.create).difference(refused)
        wrong = difference(self._target, added, changes.remove)
        if wrong:
            raise PlaceError(f"{self._target.url}: {not_equal(wrong)}")
        self._unsure.clear()
        self._guard.took(changes.remove)
        self._guard.settle()
        failed(*lost_lines(lost))
        told(f"{counted(len(added))} added, {len(changes.remove):,} removed.")
        self.lost = {acl: why for acl, why in self.lost.items() if acl in now} | lost

    def _tell(self, contents: Contents) -> None:
        """Tell what is to be said of the source, unless it was said last time."""
        if contents.notes != self._notes:
            failed(*(f"{self._source.url}: {note}" for note in contents.notes))
        self._notes = contents.notes


def not_equal(found: Difference) -> str:
    """Return what a comparison of a target with what it should have found."""
    return (
        f"after the changes {counted(len(found.missing))} are missing there, and "
        f"{counted(len(found.others))} are there that should not be"
    )


class _Stop:
    """Whether SIGINT or SIGTERM came; the second SIGINT ends the process at once."""

    def __enter__(self) -> Self:
        self._read, self._write = os.pipe()
        self._before = {each: signal.getsignal(each) for each in (signal.SIGINT, signal.SIGTERM)}
        for each in self._before:
            signal.signal(each, self._note)
        return self

    def __exit__(self, *_: object) -> None:
        for each, handler in self._before.items():
            signal.signal(each, handler)
        os.close(self._read)
        os.close(self._write)

    def wait(self, seconds: float) -> bool:
        """Wait so long, or until a signal comes; tell whether one came."""
        return bool(select.select([self._read], [], [], seconds)[0])

    def _note(self, number: int, frame: FrameType | None) -> Any:
        if self.wait(0):
            raise KeyboardInterrupt
        os.write(self._write, b"\0")
