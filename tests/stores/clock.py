"""A clock that is set to another time while a store is used."""

import time
from functools import partial

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores import AclStore, Origin
from aclbroker.broker.stores.store import DistantStore
from tests.acl.examples import allow
from tests.stores.following import Followed, loaded

JUMPS_H = (-1, -24 * 365, 26, 0)
"""By how many hours the clock is wrong, one after the other."""


def has(followed: Followed, acl: AclBinding) -> bool:
    return acl in followed.acls


async def check_clock(store: AclStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Change a store while the clock jumps; close it, and look what is there."""
    right, right_ns = time.time, time.time_ns
    await store.open()
    acls = [allow(f"User:{hours}") for hours in JUMPS_H]
    async with Followed(store) as followed:
        last = await store.position()
        for hours, acl in zip(JUMPS_H, acls, strict=True):
            wrong_s = hours * 3600
            monkeypatch.setattr(time, "time", lambda wrong_s=wrong_s: right() + wrong_s)
            monkeypatch.setattr(
                time, "time_ns", lambda wrong_s=wrong_s: right_ns() + wrong_s * 10**9
            )
            position = await store.apply([acl], [], Origin.now())
            assert position > last
            last = position
            await store.apply_records("drill", {str(hours): "1"}, [], Origin.now())
            await followed.until(partial(has, followed, acl))
            # Decisions end when a store has been silent for long: that is no matter of this clock.
            assert not isinstance(store, DistantStore) or store.silent_s < 60
        assert not followed.resets
    await store.close()
    await store.open()
    assert await loaded(store) == sorted(acls)
    assert sorted(await store.load_records("drill")) == sorted(map(str, JUMPS_H))
    await store.close()
