"""Figures of the stores that others share: how long nothing was heard of them, how far behind."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from aclbroker.acl.authorizer import Authorizer
from aclbroker.broker.authorizer.standard import StandardAuthorizer, staleness_of
from aclbroker.broker.observability.metrics import Metrics


async def show_stores(metrics: Metrics, authorizers: Iterable[Authorizer | None]) -> None:
    """Have the figures of the stores of built-in authorizers read where they are known."""
    for authorizer in authorizers:
        if not isinstance(authorizer, StandardAuthorizer):
            continue
        for store, looked_after in staleness_of(authorizer):
            place = (await store.status()).place
            metrics.read("aclbroker_store_silent_seconds", looked_after.silent_s, place)
            metrics.read("aclbroker_store_stale", partial(getattr, looked_after, "is_stale"), place)
            # Where it is not known now, it never will be.
            if looked_after.unread() is not None:
                metrics.read("aclbroker_store_unread_messages", _known(looked_after.unread), place)


def _known(unread: Callable[[], int | None]) -> Callable[[], int]:
    return lambda: unread() or 0
