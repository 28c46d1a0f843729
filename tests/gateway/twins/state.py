"""Reads the whole state of both clusters, past the gateway, as a super user."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.protocol.messages import ApiKey as Key
from aclbroker.protocol.messages import consumer_group_describe as cgd
from aclbroker.protocol.messages import describe_configs as dc
from aclbroker.protocol.messages import describe_groups as dg
from aclbroker.protocol.messages import describe_producers as dp
from aclbroker.protocol.messages import describe_share_group_offsets as dso
from aclbroker.protocol.messages import describe_topic_partitions as dtp
from aclbroker.protocol.messages import describe_transactions as dt
from aclbroker.protocol.messages import fetch as f
from aclbroker.protocol.messages import list_groups as lgr
from aclbroker.protocol.messages import list_offsets as lo
from aclbroker.protocol.messages import list_transactions as lt
from aclbroker.protocol.messages import offset_fetch as of
from aclbroker.protocol.messages import share_group_describe as sgd
from tests.gateway.twins.sides import NODES, SUPER, Place, Twins

_TOPIC: Final = 2
_EARLIEST, _LATEST = -2, -1


def compare_state(twins: Twins) -> None:
    """Compare topics, configurations, records, groups, offsets and transactions."""
    described = _ask(
        twins, 1, Key.DESCRIBE_TOPIC_PARTITIONS, 0, dtp.DescribeTopicPartitionsRequest()
    )
    names = [topic.name for topic in described.topics]
    resources = [dc.DescribeConfigsResource(_TOPIC, name, None) for name in names]
    _ask(twins, 1, Key.DESCRIBE_CONFIGS, 4, dc.DescribeConfigsRequest(resources, True))
    # The topics of coordinators have many partitions, which stay empty in a cluster in memory.
    for topic in (topic for topic in described.topics if not topic.is_internal):
        for partition in topic.partitions:
            for request in _of_partition(topic.name, partition.partition_index):
                _ask(twins, partition.leader_id, *request)
    for node in NODES:
        _compare_groups(twins, node)
        listed = _ask(twins, node, Key.LIST_TRANSACTIONS, 1, lt.ListTransactionsRequest())
        ids = [each.transactional_id for each in listed.transaction_states]
        _ask(twins, node, Key.DESCRIBE_TRANSACTIONS, 0, dt.DescribeTransactionsRequest(ids))


def _of_partition(name: str, index: int) -> list[tuple[Key, int, Any]]:
    """Return the requests about a partition: its ends, its records and its producers."""
    ends = [
        lo.ListOffsetsRequest(
            -1,
            topics=[lo.ListOffsetsTopic(name, [lo.ListOffsetsPartition(index, timestamp=time)])],
        )
        for time in (_EARLIEST, _LATEST)
    ]
    return [
        *((Key.LIST_OFFSETS, 7, each) for each in ends),
        *((Key.FETCH, 12, _records(name, index, level)) for level in (0, 1)),
        (
            Key.DESCRIBE_PRODUCERS,
            0,
            dp.DescribeProducersRequest([dp.TopicRequest(name, [index])]),
        ),
    ]


def _records(name: str, index: int, isolation_level: int) -> Any:
    part = f.FetchPartition(index, partition_max_bytes=1 << 24)
    return f.FetchRequest(
        isolation_level=isolation_level, topics=[f.FetchTopic(name, partitions=[part])]
    )


def _compare_groups(twins: Twins, node: int) -> None:
    """Compare the groups of a node."""
    groups = _ask(twins, node, Key.LIST_GROUPS, 5, lgr.ListGroupsRequest()).groups
    ids = [each.group_id for each in groups]
    _ask(twins, node, Key.DESCRIBE_GROUPS, 6, dg.DescribeGroupsRequest(ids))
    _ask(twins, node, Key.CONSUMER_GROUP_DESCRIBE, 1, cgd.ConsumerGroupDescribeRequest(ids))
    _ask(twins, node, Key.SHARE_GROUP_DESCRIBE, 1, sgd.ShareGroupDescribeRequest(ids))
    offsets = [of.OffsetFetchRequestGroup(each, None, -1, None) for each in ids]
    _ask(twins, node, Key.OFFSET_FETCH, 9, of.OffsetFetchRequest(groups=offsets))
    shares = [dso.DescribeShareGroupOffsetsRequestGroup(each, None) for each in ids]
    request = dso.DescribeShareGroupOffsetsRequest(shares)
    _ask(twins, node, Key.DESCRIBE_SHARE_GROUP_OFFSETS, 1, request)


def _ask(twins: Twins, node: int, key: Key, version: int, message: Any) -> Any:
    return twins.ask(Place(SUPER, node, direct=True), key, version, message)
