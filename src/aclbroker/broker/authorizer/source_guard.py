"""Tells a source of ACLs that has lost its data from one whose ACLs were deleted on purpose.

A migration removes ACLs from its target that its source no longer has. It stops before the removal,
and changes nothing, if the source

1. is another source, or an older state of the same source (`SourceIdentity`);
2. has no ACLs, and had some;
3. has lost more than a share of its ACLs within a minute.

A stopped migration goes on when the source has its ACLs again, or when an operator confirms the
loss by its token. The token is made of the lost ACLs, so it confirms this loss alone.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection
from hashlib import blake2b
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.broker.authorizer.migrated import digest_of
from aclbroker.broker.config.access_rules import MAX_LOSS_PERCENT
from aclbroker.broker.stores.identity import SourceIdentity
from aclbroker.turns import in_turns

WITHIN_S: Final = 60.0
"""The seconds within which losses are added up."""

FEW: Final = 2
"""The number of ACLs that may be lost whatever their share, unless none is left."""

_DAY_S: Final = 86_400
_TOKEN_BYTES: Final = 5


class SourceLoss(Exception):
    """A source has lost ACLs, and no operator has confirmed the loss.

    The text describes the loss; ``token`` confirms it.
    """

    def __init__(self, reason: str, token: str) -> None:
        super().__init__(reason)
        self.token = token


class Gone(NamedTuple):
    """The ACLs that a source has lost: their digests, and whether one of them may be a DENY."""

    digests: Collection[str]
    may_deny: bool


def gone_of(acls: Collection[AclBinding]) -> Gone:
    """Return the `Gone` of the ACLs that a source has lost."""
    digests = [digest_of(acl) for acl in in_turns(acls)]
    return Gone(digests, any(acl.permission is not AclPermission.ALLOW for acl in in_turns(acls)))


class SourceGuard:
    """Judges a source before its changes are applied to a target.

    ``known`` is the identity at the last judgement, None for a new source. ``stops`` counts the
    stops that have ended, and ``is_stopped`` says whether one lasts. If the caller keeps these
    three over restarts (``kept``), a token confirms one stop, and the token for another cluster is
    made of the former cluster's id. Otherwise a token is valid for a day.
    """

    def __init__(
        self,
        percent: int = MAX_LOSS_PERCENT,
        confirmed: str = "",
        *,
        kept: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.known: SourceIdentity | None = None
        self.stops = 0
        self.is_stopped = False
        self._kept = kept
        self._percent = percent
        self._confirmed = confirmed
        self._clock = clock
        self._recent: deque[tuple[float, int]] = deque()
        # The digests of a confirmed loss that are still to be removed; None without such a loss.
        self._accepted: set[str] | None = None
        self._is_used = False

    @property
    def is_unused(self) -> bool:
        """Whether the configured token has confirmed no loss yet."""
        return bool(self._confirmed) and not self._is_used

    def judge(self, now: SourceIdentity, left: int, had: int, gone: Gone) -> None:
        """Accept the state of a source, or raise `SourceLoss`.

        ``left`` is the number of its ACLs, ``had`` their number at the last judgement, and ``gone``
        are the ACLs that it has lost since.
        """
        reason = self._reason(now, left, had, gone)
        if reason:
            tokens = self._tokens(now, gone.digests)
            is_over = self._is_used and self._accepted is None
            if is_over or self._confirmed not in tokens:
                self.is_stopped = True
                raise SourceLoss(reason, tokens[0])
            self._accepted, self._is_used = set(gone.digests), True
        elif self.is_stopped:
            self.stops += 1
        self.known = now if self.known is None else self.known.updated(now)
        self.is_stopped = False

    def took(self, acls: Collection[AclBinding]) -> None:
        """Note that judged ACLs were removed from the target.

        A confirmed loss covers each ACL once.
        """
        accepted = self._accepted or set()
        digests = {digest_of(acl) for acl in acls}
        count = len(digests - accepted)
        accepted -= digests
        if count:
            self._recent.append((self._clock(), count))
        elif digests and not accepted:
            self.settle()

    def settle(self) -> None:
        """Note that the target has all changes of the source, which ends a confirmed loss."""
        if self._accepted is not None:
            self._accepted = None
            self.stops += 1
            self._recent.clear()

    def _reason(self, now: SourceIdentity, left: int, had: int, gone: Gone) -> str:
        """Return why a source may have lost its data; "" if it has not."""
        if self.known is not None and (why := self.known.difference(now)):
            return f"it is another source, or an older state of it: {why}"
        accepted = self._accepted or ()
        count = sum(digest not in accepted for digest in in_turns(gone.digests))
        if not count:
            return ""
        if not left:
            return f"it has no ACLs at all, and had {had:,}"
        earlier = self._lost_lately()
        lost, of = earlier + count, earlier + had
        if lost > FEW and lost * 100 > of * self._percent:
            return f"it has lost {lost:,} of its {of:,} ACLs at once, more than {self._percent} %"
        if self.is_stopped and (lost > FEW or gone.may_deny):
            return f"it has lost ACLs, and still lacks {count:,} of its {had:,}"
        return ""

    def _lost_lately(self) -> int:
        now = self._clock()
        while self._recent and self._recent[0][0] < now - WITHIN_S:
            self._recent.popleft()
        return sum(count for _, count in self._recent)

    def _tokens(self, now: SourceIdentity, digests: Collection[str]) -> list[str]:
        """Return the valid tokens for a loss of ACLs, or a change of cluster, the newest first."""
        known = self.known
        if not self._kept:
            today = int(time.time()) // _DAY_S
            return [_token(digests, day) for day in (today, today - 1)]
        if known is not None and known.is_other_cluster(now):
            digests = [known.cluster_id]
        return [_token(digests, self.stops)]


def _token(digests: Collection[str], number: int) -> str:
    # A sum does not depend on the order. Sorting many digests would block the event loop.
    total = sum(int.from_bytes(digest.encode(), "big") for digest in in_turns(digests))
    text = f"{number} {len(digests)} {total:x}"
    return blake2b(text.encode(), digest_size=_TOKEN_BYTES).hexdigest()
