"""Lists that many messages share are encoded as any other, and no more than once a version."""

from __future__ import annotations

import pytest

from aclbroker.protocol.compile import encode
from aclbroker.protocol.compile.shared import SharedList
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.metadata import (
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)

VERSIONS = APIS[ApiKey.METADATA].versions
BROKERS = [MetadataResponseBroker(1, "localhost", 9092)]
PARTITIONS = [MetadataResponsePartition(0, number, 1, 0, [1], [1]) for number in range(300)]


def answer(
    brokers: list[MetadataResponseBroker], *topics: MetadataResponseTopic
) -> MetadataResponse:
    return MetadataResponse(brokers=brokers, cluster_id="cluster", topics=topics)


def topic(partitions: list[MetadataResponsePartition]) -> MetadataResponseTopic:
    return MetadataResponseTopic(0, "orders", partitions=partitions)


@pytest.mark.parametrize("entries", [PARTITIONS, PARTITIONS[:1], []], ids=["many", "one", "none"])
def test_a_shared_list_is_encoded_as_a_list_in_every_version(
    entries: list[MetadataResponsePartition],
) -> None:
    shared, brokers = SharedList(entries), SharedList(BROKERS)
    # The second time round the bytes are those of the first.
    for version in [*VERSIONS, *VERSIONS]:
        plain = encode(answer(BROKERS, topic(entries), topic([])), version)
        assert encode(answer(brokers, topic(shared), topic([])), version) == plain


def test_its_entries_are_encoded_once_a_version() -> None:
    entry = MetadataResponsePartition(0, 7, 1, 0, [1], [1])
    shared = SharedList([entry])
    before = {version: encode(answer([], topic(shared)), version) for version in VERSIONS}
    entry.partition_index = 8
    after = {version: encode(answer([], topic(shared)), version) for version in VERSIONS}
    assert after == before
    assert shared == [entry]
