"""Reading a topic in which compaction has left parts of very many transactions."""

import asyncio
from types import SimpleNamespace
from typing import Any, NamedTuple

from aclbroker.broker.stores.kafka.connection import Place, place_of
from aclbroker.broker.stores.kafka.contents import Contents
from aclbroker.broker.stores.kafka.messages import Assembly, key_of
from aclbroker.broker.stores.kafka.reader import Reader
from tests.acl.examples import allow

MANY = 10_000
PLACE: Place = place_of("kafka://kafka-1:9092/acls", None)


class Record(NamedTuple):
    offset: int
    key: bytes
    value: bytes
    headers: tuple[tuple[str, bytes], ...]


class Consumer:
    """What of aiokafka's a reader uses, over a list of records."""

    def __init__(self, records, end):
        self.records = records
        self.end = end
        self.read = 0
        self._fetcher = SimpleNamespace(error_future=asyncio.get_running_loop().create_future())

    async def getmany(self, partition, *, timeout_ms, max_records):
        found = self.records[self.read : self.read + max_records]
        self.read += len(found)
        return {partition: found} if found else {}

    async def position(self, partition):
        return self.records[self.read].offset if self.read < len(self.records) else self.end

    async def end_offsets(self, partitions):
        return dict.fromkeys(partitions, self.end)

    def highwater(self, partition):
        return self.end

    def last_poll_timestamp(self, partition):
        return self.read


async def test_the_work_grows_with_the_messages_alone(monkeypatch):
    """Of each transaction one of two messages is left."""
    unfinished: Any = Assembly.unfinished
    looked_at = 0

    def counted(assembly):
        nonlocal looked_at
        found = unfinished.fget(assembly)
        looked_at += len(found)
        return found

    monkeypatch.setattr(Assembly, "unfinished", property(counted))
    acls = [allow(name=f"topic-{number}") for number in range(MANY)]
    records = [
        Record(3 * number, key_of(acl), b"{}", (("transaction", f"{number} 2".encode()),))
        for number, acl in enumerate(acls)
    ]
    reader = Reader(PLACE)
    reader._consumer = Consumer(records, 3 * MANY)
    contents = Contents()
    await contents.take_all(reader.everything())
    assert contents.bindings.keys() == set(acls)
    assert looked_at < 2 * MANY
