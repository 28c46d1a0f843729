"""What is to be changed in a store that others may have changed a moment ago.

It is worked out from an index that has all changes up to a position, and perhaps some later ones,
and made right by what was missed since. That is done in the thread of the store, where nothing may
take long without a line of Python: others could not go on.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from aclbroker.acl.authorizer import AclDeleteResult
from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.acl.index import AclIndex
from aclbroker.broker.stores.store import Missed

Planned = tuple[Collection[AclBinding], Collection[AclBinding]]
"""What is to be added, and what to be removed."""


class Creation(NamedTuple):
    """ACLs that are to be there: those that the index does not have, and those that it has."""

    new: dict[AclBinding, None]
    there: dict[AclBinding, None]

    def plan(self, missed: Missed) -> Planned:
        """Return what must be added; see `Plan`."""
        if not missed.added and not missed.removed:
            return self.new, ()
        added = [binding for binding in self.new if binding not in missed.added]
        added += [binding for binding in self.there if binding in missed.removed]
        return added, ()


class Deletion:
    """What filters match: of an index, ``found`` for each filter and ``gone`` all together."""

    def __init__(
        self,
        filters: Sequence[AclFilter],
        found: Sequence[AclDeleteResult],
        gone: dict[AclBinding, None],
    ) -> None:
        self._filters = filters
        self._found = found
        self._gone = gone
        self.results = found
        """What each filter has deleted, if the plan of last was carried out."""

        self.late: Collection[AclBinding] = ()
        """Those among them that the index did not have."""

    def plan(self, missed: Missed) -> Planned:
        """Return what must be removed; see `Plan`."""
        self.results = self._found
        if not missed.added and not missed.removed:
            return (), self._gone
        late = AclIndex()
        for binding in missed.added:
            late.add(binding)
        removed = dict.fromkeys(each for each in self._gone if each not in missed.removed)
        results = []
        for acl_filter, result in zip(self._filters, self._found, strict=True):
            if not result.error_code:
                found = dict.fromkeys(b for b in result.bindings if b not in missed.removed)
                found.update(dict.fromkeys(late.find(acl_filter)))
                removed.update(found)
                result = result._replace(bindings=list(found))
            results.append(result)
        self.results = results
        self.late = [binding for binding in removed if binding not in self._gone]
        return (), removed
