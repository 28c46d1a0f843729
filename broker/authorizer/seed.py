"""The first ACLs of a store, from a policy file (``aclbroker.acls.file``).

A store is asked once whether it wants them: one that has ACLs at its first start with the setting
does not, and one whose ACLs were all deleted later does not get them back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.acl.index import AclIndex
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, StoreError

log = get_logger()

SETTING: Final = "aclbroker.acls.file"
_KIND: Final = "first ACLs"
_ASKED: Final = "asked"


async def seed(
    store: AclStore, index: AclIndex, path: str, limit: int | None
) -> Sequence[AclBinding]:
    """Add the ACLs of a policy file to an open store and to its index, if it wants them.

    Return those that were added. Raises `StoreError`, also for a file that cannot be read or holds
    more ACLs than there may be.
    """
    bindings: Sequence[AclBinding] = ()
    if _ASKED in await store.load_records(_KIND):
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
        await store.apply(bindings, ())
        for binding in bindings:
            index.add(binding)
        log.info("ACLs created from a file", file=path, count=len(bindings))
    await store.apply_records(_KIND, {_ASKED: path}, ())
    return bindings


def _read(path: str) -> Sequence[AclBinding]:
    # Imported where somebody uses it: other brokers start sooner without YAML.
    from aclbroker.broker.policy import PolicyError, read_policy

    try:
        return read_policy(Path(path)).acls
    except PolicyError as error:
        raise StoreError(f"{SETTING}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise StoreError(f"{SETTING}={path}: cannot be read: {reason}") from None
