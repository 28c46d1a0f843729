"""Which ACLs of a cluster were copied to the centralised ones: records beside these.

By them a restart can tell what came to the cluster since, and must be copied, from what was copied
and then deleted centrally, which must not come back; and what is gone from the cluster, and must
go, from what was created centrally. An ACL is a digest of 96 bits, in one of 256 records by its
first byte, so that a change writes some kilobytes, however many ACLs there are.

These are written now and then. So that nothing is forgotten if the process ends before, what is
about to be changed is written down first, in a record of its own, which is removed once the others
are written. Of what is in such a record at a start, that is taken for copied which is there.
"""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Collection, Iterable
from hashlib import blake2b
from typing import Final
from uuid import uuid4

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore, Origin
from aclbroker.turns import in_turns, pause

KIND: Final = "migrated ACLs"
_BYTES: Final = 12
_SIZE: Final = 2 * _BYTES
_PREFIX: Final = 2
"""How many of the characters of a digest name its record."""

_BEGUN: Final = "begun-"
"""How the names of the records begin of what is about to be changed."""

_NONE: Final = frozenset[str]()


class MigratedAcls:
    """What is known to be copied of the ACLs of the cluster with an id."""

    def __init__(self, store: AclStore, cluster_id: str) -> None:
        self._store = store
        self._cluster_id = cluster_id
        self._buckets: defaultdict[str, set[str]] = defaultdict(set)
        self._unsaved: set[str] = set()
        # Changes that were begun, of which it is not known whether they were made.
        self._begun: set[str] = set()
        self._begun_names: set[str] = set()
        self.clusters: set[str] = set()
        """The ids of all clusters whose ACLs were copied."""

        self._process = uuid4().hex
        self._records_made = 0

    async def load(self) -> None:
        """Read the records. Raises `StoreError`."""
        for name, text in (await self._store.load_records(KIND)).items():
            cluster_id, _, bucket = name.rpartition("/")
            self.clusters.add(cluster_id)
            # A part at a time, so that others have their turns.
            await asyncio.sleep(0)
            if cluster_id == self._cluster_id:
                digests = {text[at : at + _SIZE] for at in range(0, len(text), _SIZE)}
                if bucket.startswith(_BEGUN):
                    self._begun |= digests
                    self._begun_names.add(name)
                else:
                    self._buckets[bucket] = digests

    def may_have(self, acl: AclBinding) -> bool:
        """Return whether an ACL was copied, or may have been."""
        digest = digest_of(acl)
        return digest in self._begun or self._is_copied(digest)

    @property
    def count(self) -> int:
        """The number of ACLs that were copied, or may have been, without a record of removal."""
        unsure = sum(not self._is_copied(digest) for digest in self._begun)
        return unsure + sum(map(len, self._buckets.values()))

    def lost(self, own: Collection[AclBinding]) -> list[str]:
        """Return the digests of the ACLs that it `may_have` and that the cluster has lost.

        ``own`` are all ACLs of the cluster.
        """
        there = {digest_of(acl) for acl in in_turns(own)}
        known = [self._begun, *self._buckets.values()]
        lost = {digest for digests in known for digest in in_turns(digests) if digest not in there}
        return list(lost)

    def is_due(self, acl: AclBinding, *, is_there: bool) -> bool:
        """Return whether an ACL is to be created centrally as it ``is_there`` in the cluster, or
        else to be deleted. Where it may have been done it is done again.
        """
        digest = digest_of(acl)
        return digest in self._begun or self._is_copied(digest) is not is_there

    def _is_copied(self, digest: str) -> bool:
        return digest in self._buckets.get(digest[:_PREFIX], _NONE)

    async def begin(self, acls: Iterable[AclBinding]) -> None:
        """Write down that ACLs are about to be created or deleted centrally. Raises `StoreError`.

        Until it is noted that they were, or in another process, it is not known which were.
        """
        digests = {digest_of(acl) for acl in acls}
        if digests <= self._begun:
            return
        # If that fails nothing is begun, and the next record may take its place.
        name = f"{self._cluster_id}/{_BEGUN}{self._process}-{self._records_made}"
        self._begun_names.add(name)
        text = "".join(sorted(digests))
        await self._store.apply_records(KIND, {name: text}, (), Origin.now())
        self._records_made += 1
        self._begun |= digests

    def note(self, copied: Iterable[AclBinding], gone: Iterable[AclBinding]) -> None:
        """Note that ACLs were copied, and that others are neither here nor there any more."""
        for acls, is_copied in ((copied, True), (gone, False)):
            for acl in acls:
                digest = digest_of(acl)
                self._note(digest, is_copied)
                self._begun.discard(digest)

    def _note(self, digest: str, is_copied: bool) -> None:
        digests = self._buckets[digest[:_PREFIX]]
        (digests.add if is_copied else digests.discard)(digest)
        self._unsaved.add(digest[:_PREFIX])

    def settle(self, own: Collection[AclBinding], central: Collection[AclBinding]) -> None:
        """Take those for copied that are ``central``, of what was begun, and forget what is neither
        here nor there any more.

        ``own`` are all ACLs of the cluster, ``central`` those centralised ones that it `may_have`.
        """
        kept = {digest_of(acl) for acl in in_turns(central)}
        for digest in in_turns(self._begun):
            self._note(digest, digest in kept)
        self._begun.clear()
        kept.update(digest_of(acl) for acl in in_turns(own))
        for name, digests in self._buckets.items():
            pause()
            if not digests <= kept:
                digests &= kept
                self._unsaved.add(name)

    async def save(self) -> None:
        """Write what was noted. Raises `StoreError`; then it is to be written still."""
        if self._unsaved:
            await self._save_buckets()
        # Not in one with the others: a store may make several transactions of it.
        if self._begun_names and not self._begun:
            names = set(self._begun_names)
            await self._store.apply_records(KIND, {}, names, Origin.now())
            self._begun_names -= names

    async def _save_buckets(self) -> None:
        names = set(self._unsaved)
        put, removed = dict[str, str](), []
        for name in names:
            # A sort of some hundred texts at a time, so that others have their turns.
            await asyncio.sleep(0)
            if digests := self._buckets[name]:
                put[f"{self._cluster_id}/{name}"] = "".join(sorted(digests))
            else:
                removed.append(f"{self._cluster_id}/{name}")
        await self._store.apply_records(KIND, put, removed, Origin.now())
        self._unsaved -= names


def digest_of(acl: AclBinding) -> str:
    """Return what stands for an ACL in a record."""
    text = json.dumps([each if isinstance(each, str) else int(each) for each in acl])
    return blake2b(text.encode(), digest_size=_BYTES).hexdigest()
