"""What the topic says, in memory: ACLs and records."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping
from itertools import chain
from typing import Final

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.kafka.messages import Setting, Whole
from aclbroker.broker.stores.pieces import paced

TURN: Final = 512
"""After so many settings others have their turn."""


class Contents:
    """What the messages up to an ``offset`` say."""

    def __init__(self) -> None:
        self.bindings: dict[AclBinding, None] = {}
        self.records: dict[tuple[str, str], str] = {}
        self.has_format = False
        """Whether the topic tells the version of its messages."""

        self.position = 0
        """Behind the last message that says something."""

        self.offset = 0
        """Up to where all is in here, which may end with marks that say nothing."""

    def put(self, setting: Setting) -> None:
        """Take what a message says."""
        if setting.binding is not None:
            if setting.is_removed:
                self.bindings.pop(setting.binding, None)
            else:
                self.bindings[setting.binding] = None
        elif setting.record is not None:
            if setting.value is None:
                self.records.pop(setting.record, None)
            else:
                self.records[setting.record] = setting.value
        elif setting.version is not None:
            self.has_format = True

    async def take_all(self, news: AsyncIterator[Whole]) -> None:
        """Take transactions, of which nobody is told."""
        async for whole in news:
            self.offset = max(self.offset, whole.position)
            if len(whole):
                self.position = max(self.position, whole.position)
            async for setting in paced(whole.settings, TURN):
                self.put(setting)

    async def differ(
        self,
        added: Collection[AclBinding],
        removed: Collection[AclBinding],
        records: Mapping[tuple[str, str], str | None],
    ) -> bool:
        """Return whether a change would change anything."""
        if any(self.records.get(key) != value for key, value in records.items()):
            return True
        for number, binding in enumerate(chain(added, removed), 1):
            if (binding in self.bindings) == (number > len(added)):
                return True
            if number % TURN == 0:
                await asyncio.sleep(0)
        return False

    async def is_same_as(self, other: Contents) -> bool:
        """Return whether both have the same ACLs and records."""
        if (len(self.bindings), len(self.records)) != (len(other.bindings), len(other.records)):
            return False
        return not await self.differ(other.bindings, (), other.records)
