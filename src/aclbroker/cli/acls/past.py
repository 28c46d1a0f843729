"""`aclbroker acls --store URL [--at POSITION|TIME]`: the ACLs of a store, of now or before.

It is read while brokers may use it; none of them is asked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.cli.acls.options import Options
from aclbroker.cli.rules_source import SourceError
from aclbroker.terminal import complain


def stored(options: Options) -> PastSource:
    """Return where the options say that ACLs are read; raises ValueError."""
    from aclbroker.broker.stores.times import written_time
    from aclbroker.cli.store_source import moment, past_of

    at = options.one("at")
    try:
        position, time_ms = (None, 2**62) if at is None else moment(at)
        past = past_of(options.one("store"), command_config=options.one("command-config"))
        found = past.acls_at(position, time_ms)
    except SourceError as error:
        raise ValueError(str(error)) from None
    asked = "" if time_ms is None or at is None else f", as at {written_time(time_ms)}"
    complain(f"aclbroker: position {found.position}{asked}")
    return PastSource(found.acls)


class PastSource:
    """ACLs that are asked for by filters, as a cluster is."""

    behind_entries = ""

    def __init__(self, acls: Sequence[AclBinding]) -> None:
        self._acls = acls

    def find(self, acl_filter: AclFilter) -> Iterable[AclBinding]:
        """Return the ACLs that a filter selects."""
        return filter(acl_filter.matches, self._acls)
