"""Opens a store, and waits for one that others share while it is out of reach."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Callable
from typing import Final

from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.store import AclStore, StoreUnavailable

log = get_logger()

_RETRY_S: Final = 2.0
_SOON_S: Final = 1.0
"""How long a store within reach may take until somebody is told that it is waited for."""

_COLLECTED_S: Final = 60.0
"""How often garbage is looked for: while things are loaded Python does not, and each attempt to
reach a store may leave an error that refers to itself."""

NOT_READ: Final = "the ACL store has not been read yet"
"""Why a store is waited for that may be within reach."""

Waits = Callable[[str], None]
"""Is told why a store is waited for, perhaps more than once."""


def nobody(_reason: str) -> None:
    """Take no notice of what is waited for."""


async def opened(store: AclStore, waits: Waits = nobody) -> None:
    """Open a store; one that others share is waited for while it is out of reach.

    Raises `StoreError`.
    """
    if not store.is_shared:
        await store.open()
        return
    is_told = False
    while True:
        try:
            await _open(store, waits)
        except StoreUnavailable as error:
            waits(str(error))
            if not is_told:
                log.error("ACL store is out of reach; trying again", reason=str(error))
            is_told = True
            await asyncio.sleep(_RETRY_S)
        else:
            return


async def _open(store: AclStore, waits: Waits) -> None:
    loop = asyncio.get_running_loop()
    began = loop.time()
    opening = asyncio.create_task(store.open())
    try:
        while not (await asyncio.wait([opening], timeout=_SOON_S))[0]:
            waits(NOT_READ)
            if not gc.isenabled() and loop.time() > began + _COLLECTED_S:
                began = loop.time()
                gc.collect()
    finally:
        if not opening.done():
            opening.cancel()
            await asyncio.wait([opening])
    opening.result()
