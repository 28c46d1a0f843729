"""What the ACLs of one resource type say to a peer, and the answers that were derived from it.

A decision asks for the bits of a name (`PeerRights.bits`): a few lookups, however many ACLs there
are. What is worked out from them is kept in `PeerRights.answers`, until an ACL of one of the peer's
principals, or of ``User:*``, is added or removed. Then `RightsByPeer` drops the whole object, so
that no answer outlives what it was worked out from. ACLs of other principals drop nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Any, Final

from aclbroker.acl.authorizer import Peer
from aclbroker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL, PatternType
from aclbroker.acl.permissions import Permissions, Principals

_MOST_PEERS: Final = 10_000
_MOST_PRINCIPALS: Final = 500_000
"""How many principals those may have together, counted anew whenever one is found again."""

_MOST_ANSWERS: Final = 100_000
"""How many answers there is room for; one on a name of many characters takes more of it."""
_CHARACTERS: Final = 64
"""How many characters of a name take as much room again: each can be four bytes."""

_FEW: Final = 16
"""Up to so many prefixes, comparing each with the name is faster than a lookup for each length."""

Entry = tuple[PatternType, str, int]
"""A pattern and the bits of `acl.operations` of one principal and host on it."""

_PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)


class PeerRights:
    """The permissions of one peer. ``lengths`` are the lengths that PREFIXED names may have.

    ``remembered`` is to be called for each answer that is put into ``answers``, or below it, with
    the length of the name that it is on.
    """

    __slots__ = ("answers", "lengths", "permissions", "remembered")

    def __init__(
        self,
        permissions: list[Permissions],
        lengths: Sequence[int],
        remembered: Callable[[int], None],
    ) -> None:
        self.permissions = permissions
        self.lengths = lengths
        self.remembered = remembered
        self.answers: dict[Hashable, Any] = {}
        """What callers have worked out from these rights, by what they were asked."""

    def bits(self, name: str) -> int:
        """Return what the ACLs that match a resource say: the bits of `acl.operations`."""
        found = 0
        for permissions in self.permissions:
            if literal := permissions.literal:
                found |= literal.get(name, 0) | literal.get(WILDCARD, 0)
            if permissions.prefixed:
                found |= self._prefixed_bits(permissions.prefixed, name)
        return found

    def _prefixed_bits(self, prefixed: dict[str, int], name: str) -> int:
        found = 0
        if len(prefixed) <= _FEW:
            for prefix, its_bits in prefixed.items():
                if name.startswith(prefix):
                    found |= its_bits
            return found
        size = len(name)
        for length in self.lengths:
            if length > size:
                break
            if bits := prefixed.get(name[:length]):
                found |= bits
        return found

    def bits_of(self, pattern_type: PatternType, name: str) -> int:
        """Return what the ACLs of one pattern say."""
        found = 0
        for permissions in self.permissions:
            found |= permissions.of_type(pattern_type).get(name, 0)
        return found

    def bits_of_prefixes(self, name: str) -> int:
        """Return what the ACLs of PREFIXED patterns say that the name begins with."""
        found = 0
        for permissions in self.permissions:
            if permissions.prefixed:
                found |= self._prefixed_bits(permissions.prefixed, name)
        return found

    def entries(self, bits: int) -> Iterator[Entry]:
        """Return the patterns of all permissions that set any of the bits somewhere.

        A pattern may come twice, with the bits of others. No ACL may change meanwhile.
        """
        for permissions in self._with(bits):
            for pattern_type in _PATTERN_TYPES:
                for name, found in permissions.of_type(pattern_type).items():
                    yield pattern_type, name, found

    def size(self, bits: int) -> int:
        """Return how many `entries` there are."""
        return sum(
            len(permissions.of_type(pattern_type))
            for permissions in self._with(bits)
            for pattern_type in _PATTERN_TYPES
        )

    def copy(self) -> PeerRights:
        """Return these rights as they are now, which change no more and have no answers yet."""
        permissions = [permissions.copy() for permissions in self.permissions]
        return PeerRights(permissions, tuple(self.lengths), self.remembered)

    def _with(self, bits: int) -> list[Permissions]:
        return [permissions for permissions in self.permissions if permissions.ever & bits]


class RightsByPeer(dict[Peer, PeerRights]):
    """The rights of peers for one resource type: found when asked for, and then remembered."""

    def __init__(self, principals: Principals, lengths: Sequence[int]) -> None:
        super().__init__()
        self._principals = principals
        self._lengths = lengths
        # The remembered peers with that principal, some of them twice. No sets: to hash a peer
        # takes as long as it has principals, and would be done for each of these.
        self._peers: dict[str, list[Peer]] = {}
        self._room = _MOST_ANSWERS
        self._room_for_principals = _MOST_PRINCIPALS

    def __missing__(self, peer: Peer) -> PeerRights:
        self._room_for_principals -= len(peer[0])
        if len(self) >= _MOST_PEERS or self._room_for_principals < 0:
            self.forget_all()
        rights = self[peer] = PeerRights(
            self._principals.matching(*peer), self._lengths, self._remembered
        )
        for principal in peer[0]:
            self._peers.setdefault(principal, []).append(peer)
        return rights

    def _remembered(self, size: int) -> None:
        """Count one more answer, on a name so long, and forget all when there are too many."""
        self._room -= 1 + size // _CHARACTERS
        if self._room < 0:
            self.forget_all()

    def changed(self, principal: str) -> None:
        """Forget what depends on a principal, after one of its ACLs was added or removed."""
        if principal == WILDCARD_PRINCIPAL:
            self.forget_all()
            return
        for peer in self._peers.pop(principal, ()):
            if (rights := self.pop(peer, None)) is not None:
                rights.answers.clear()

    def forget_all(self) -> None:
        """Forget the rights of all peers, and so what callers have worked out from them."""
        # Answers keep the rights that keep them: left to the garbage collector, which looks at what
        # is old very rarely, they would stay for hours.
        for rights in self.values():
            rights.answers.clear()
        self.clear()
        self._peers.clear()
        self._room = _MOST_ANSWERS
        self._room_for_principals = _MOST_PRINCIPALS
