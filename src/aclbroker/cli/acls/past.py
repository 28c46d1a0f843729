"""`aclbroker acls --store URL [--at POSITION|TIME]`: the ACLs of a store's file, of now or before.

It is read while a broker may use it; no cluster is asked.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from aclbroker.broker.acl.bindings import AclBinding, AclFilter
from aclbroker.cli.acls.options import Options
from aclbroker.cli.rules_source import SourceError


def stored(options: Options) -> PastSource:
    """Return where the options say that ACLs are read; raises ValueError."""
    from aclbroker.broker.stores import StoreError
    from aclbroker.broker.stores.reading import read_acls_at
    from aclbroker.broker.stores.times import written_time
    from aclbroker.cli.store_source import moment, store_file

    at = options.one("at")
    try:
        position, time_ms = (None, 2**62) if at is None else moment(at)
        found = read_acls_at(store_file(options.one("store")), position=position, time_ms=time_ms)
    except (SourceError, StoreError) as error:
        raise ValueError(str(error)) from None
    asked = "" if time_ms is None or at is None else f", as at {written_time(time_ms)}"
    sys.stderr.write(f"aclbroker: position {found.position}{asked}\n")
    return PastSource(found.acls)


class PastSource:
    """ACLs that are asked for by filters, as a cluster is."""

    def __init__(self, acls: Sequence[AclBinding]) -> None:
        self._acls = acls

    def find(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return the ACLs that a filter selects."""
        return filter(acl_filter.matches, self._acls)
