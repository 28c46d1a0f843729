"""The first ACLs of a store, from a policy file (``aclbroker.acls.file``).

A store is asked once whether it wants them: one that has ACLs at its first start with the setting
does not, and one whose ACLs were all deleted later does not get them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.index import AclIndex
from aclbroker.broker.authorizer.plans import Planned
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.broker.stores.store import Missed, SerialStore

log = get_logger()

SETTING: Final = "aclbroker.acls.file"
KIND: Final = "first ACLs"
ASKED: Final = "asked"


async def seed(
    store: AclStore, index: AclIndex, path: str, limit: int | None, position: int = 0
) -> Sequence[AclBinding]:
    """Add the ACLs of a policy file to an open store and to its index, if it wants them.

    ``position`` is that of the store before the index was filled.
    Return those that were added. Raises `StoreError`, also for a file that cannot be read or holds
    more ACLs than there may be.
    """
    bindings: Sequence[AclBinding] = ()
    if ASKED in await store.load_records(KIND):
        return bindings
    if len(index):
        log.info("ACLs not created from a file: the store has some", file=path)
    else:
        bindings = await asyncio.to_thread(_read, path)
        if limit is not None and len(bindings) > limit:
            raise StoreError(
                f"{SETTING}={path}: it has {len(bindings)} ACLs, and aclbroker.acl.limit allows "
                f"{limit}"
            )
        if not await _add(store, bindings, position):
            log.info("ACLs not created from a file: another broker has done it", file=path)
            bindings = ()
        else:
            for binding in bindings:
                index.add(binding)
            log.info("ACLs created from a file", file=path, count=len(bindings))
    await store.apply_records(KIND, {ASKED: path}, (), Origin.now())
    return bindings


async def _add(store: AclStore, bindings: Sequence[AclBinding], position: int) -> bool:
    """Add the first ACLs, if nobody else has added any; return whether that was so."""
    if not isinstance(store, SerialStore):
        await store.apply(bindings, (), Origin.now())
        return True
    missed = []

    def plan(what: Missed) -> Planned:
        missed.append(what)
        return ((), ()) if what.added or what.removed else (bindings, ())

    await store.transact(position, plan, Origin.now())
    return not missed[-1].added and not missed[-1].removed


def _read(path: str) -> Sequence[AclBinding]:
    # Imported where somebody uses it: other brokers start sooner without YAML.
    from aclbroker.acl.files.policy import PolicyError
    from aclbroker.acl.files.reading import read_acls

    try:
        return read_acls(path).acls
    except PolicyError as error:
        raise StoreError(f"{SETTING}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{SETTING}={path}: cannot be read: {reason}") from None
