"""Stories of where topics and coordinators are, and of who would move or elect them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from aclbroker.conformance.behaviour.stories.requests import fill
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import alter_partition_reassignments as apr
from aclbroker.protocol.messages import describe_log_dirs as dld
from aclbroker.protocol.messages import describe_topic_partitions as dtp
from aclbroker.protocol.messages import elect_leaders as el
from aclbroker.protocol.messages import find_coordinator as fc
from aclbroker.protocol.messages import list_partition_reassignments as lpr
from aclbroker.protocol.messages import metadata as m
from aclbroker.protocol.primitives import ZERO_UUID

_TOPICS: Final = {"orders": TopicWanted(3), "payments": TopicWanted(1)}
_GROUPS, _TRANSACTIONS, _SHARES, _UNKNOWN = 0, 1, 2, 9
_NO_ID: Final = b"an id of no topic"[:16]
_AN_ID: Final = "AAAAAAAAAAAAAAAAAAAAAg"
"""An id of a topic as text."""

_NO_NODE: Final = 77
_TIMEOUT_MS: Final = 10_000


def _nodes(teller: Teller) -> list[int]:
    answer = teller.admin(ApiKey.METADATA, m.MetadataRequest([]), 12)
    return [each.node_id for each in answer.brokers]


def topics_are_described(teller: Teller) -> None:
    """Tell what is said of topics that are there, and of others."""
    name, ids = teller.name, teller.ids

    def ask(about: str, *topics: m.MetadataRequestTopic, within: str, operations: bool) -> None:
        request = m.MetadataRequest(topics, False, operations, operations)
        teller.ask_each(ApiKey.METADATA, request, about, within)

    def named(*names: str) -> list[m.MetadataRequestTopic]:
        return [m.MetadataRequestTopic(name=each) for each in names]

    def known_by(*given: bytes) -> list[m.MetadataRequestTopic]:
        return [m.MetadataRequestTopic(each, None) for each in given]

    orders, payments, nowhere = name("orders"), name("payments"), name("nowhere")
    for about, topics in {
        "two": named(orders, payments),
        "one that is not there": named(orders, nowhere),
        "one twice": named(orders, orders),
        "a bad name": named(name("a b")),
        "no name": named(""),
    }.items():
        ask(about, *topics, within="0+", operations=False)
    ask("none", within="1+", operations=False)
    ask("operations", *named(orders, nowhere), within="8+", operations=True)
    for about, topics in {
        "by id": known_by(ids["orders"]),
        "by an id of none": known_by(_NO_ID, ids["payments"]),
        "by an id twice": known_by(ids["orders"], ids["orders"]),
        "by the zero id": known_by(ZERO_UUID),
        "by both": [m.MetadataRequestTopic(ids["orders"], payments)],
        "some by id and some by name": [*known_by(ids["orders"]), *named(payments)],
    }.items():
        ask(about, *topics, within="10+", operations=False)


def partitions_are_described(teller: Teller) -> None:
    """Tell which partitions an answer has room for, and where the next one begins."""
    orders, payments = teller.name("orders"), teller.name("payments")

    def ask(about: str, *names: str, limit: int = 2000, cursor: Any = None) -> None:
        request = dtp.DescribeTopicPartitionsRequest(
            [dtp.TopicRequest(each) for each in names], limit, cursor
        )
        teller.ask(ApiKey.DESCRIBE_TOPIC_PARTITIONS, request, about)

    ask("two", payments, orders)
    ask("one that is not there", teller.name("nowhere"), orders)
    ask("one twice", orders, orders)
    ask("a bad name", teller.name("a b"))
    ask("no name", "")
    for limit in (-1, 0, 1, 3, 4):
        ask(f"at most {limit}", orders, payments, limit=limit)
    for index in (0, 2, 3, 9, -1):
        cursor = dtp.Cursor(orders, index)
        ask(f"from {index} on", orders, payments, cursor=cursor)
        ask(f"2 from {index} on", orders, payments, limit=2, cursor=cursor)
    ask("from the second on", orders, payments, cursor=dtp.Cursor(payments, 0))
    ask("from one that was not asked for", orders, cursor=dtp.Cursor(payments, 0))
    ask("from one that is not there", payments, cursor=dtp.Cursor(teller.name("nowhere"), 0))


def coordinators_are_found(teller: Teller) -> None:
    """Tell which coordinators there are, and for whom."""
    kinds = {"group": _GROUPS, "transaction": _TRANSACTIONS, "share": _SHARES, "9": _UNKNOWN}
    for about, kind in kinds.items():
        for key in (teller.group_id, ""):
            told = f"{about}{'' if key else ' of nobody'}"
            one = fc.FindCoordinatorRequest(key, kind)
            teller.ask_each(ApiKey.FIND_COORDINATOR, one, told, "1-3" if kind else "0-3")
            several = fc.FindCoordinatorRequest(key_type=kind, coordinator_keys=[key, "another"])
            teller.ask_each(ApiKey.FIND_COORDINATOR, several, f"{told} and another", "4+")
    in_share = [f"{teller.group_id}:{_AN_ID}:{index}" for index in ("0", "7", "-1", "x", "")]
    in_share += [f":{_AN_ID}:0", f" :{_AN_ID}:0", f"a:b:{_AN_ID}:0", "g:x:0", "g::0", f"g:{_AN_ID}"]
    for key in in_share:
        request = fc.FindCoordinatorRequest(key_type=_SHARES, coordinator_keys=[key])
        teller.ask(
            ApiKey.FIND_COORDINATOR, request, f"share {key.removeprefix(teller.name(''))}", 6
        )
    twice = [teller.group_id, teller.group_id]
    for about, keys in {"twice": twice, "of none": []}.items():
        request = fc.FindCoordinatorRequest(key_type=_GROUPS, coordinator_keys=keys)
        teller.ask_each(ApiKey.FIND_COORDINATOR, request, about, "4+")


def partitions_are_led_by_whom_they_prefer(teller: Teller) -> None:
    """Tell what an election of a leader brings where there is one node."""
    for kind in (0, 1):
        topics = [
            el.TopicPartitions(teller.name("orders"), [0, 2, 9]),
            el.TopicPartitions(teller.name("nowhere"), [0]),
        ]
        request = el.ElectLeadersRequest(kind, topics, _TIMEOUT_MS)
        teller.ask_each(ApiKey.ELECT_LEADERS, request, f"kind {kind}", "1+" if kind else "0+")
    none = el.ElectLeadersRequest(0, [], _TIMEOUT_MS)
    teller.ask_each(ApiKey.ELECT_LEADERS, none, "of none")


def the_sizes_of_partitions_are_told(teller: Teller) -> None:
    """Tell what is said of the place that partitions take."""
    fill(teller, "orders")
    known = dld.DescribableLogDirTopic(teller.name("orders"), [0, 1, 9])
    unknown = dld.DescribableLogDirTopic(teller.name("nowhere"), [0])
    for about, topics in {
        "some": [known, unknown],
        "others": [unknown],
        "no partition": [dld.DescribableLogDirTopic(teller.name("orders"), [])],
        "none": [],
    }.items():
        request = dld.DescribeLogDirsRequest(topics)
        teller.ask_each(ApiKey.DESCRIBE_LOG_DIRS, request, about)


def partitions_stay_where_they_are(teller: Teller) -> None:
    """Tell where partitions cannot be moved, and which moves go on."""
    here = _nodes(teller)
    moves: Mapping[str, Mapping[str, Sequence[tuple[int, Sequence[int] | None]]]] = {
        "where it is": {"orders": [(0, here)]},
        "that is not there": {"orders": [(9, here)], "nowhere": [(0, here)]},
        "that is not moved, to stay": {"orders": [(0, None)]},
        "to a node that is not there": {"orders": [(0, [_NO_NODE])]},
        "to two nodes of which one is there": {"orders": [(0, [*here, _NO_NODE])]},
        "to no node": {"orders": [(0, [])]},
        "to a node twice": {"orders": [(0, [*here, *here])]},
        "to a node below 0": {"orders": [(0, [-1])]},
        "one of two": {"orders": [(0, here), (1, [_NO_NODE])]},
        "none": {},
        "no partition": {"orders": []},
    }
    for about, topics in moves.items():
        entries = [
            apr.ReassignableTopic(
                teller.name(name), [apr.ReassignablePartition(*each) for each in partitions]
            )
            for name, partitions in topics.items()
        ]
        request = apr.AlterPartitionReassignmentsRequest(_TIMEOUT_MS, True, entries)
        teller.ask_each(ApiKey.ALTER_PARTITION_REASSIGNMENTS, request, about)
    for about, places in {
        "some": [("orders", [0, 9]), ("nowhere", [0])],
        "none": [],
    }.items():
        asked = [lpr.ListPartitionReassignmentsTopics(teller.name(n), each) for n, each in places]
        listed = lpr.ListPartitionReassignmentsRequest(_TIMEOUT_MS, asked)
        teller.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, listed, about)
    every = lpr.ListPartitionReassignmentsRequest(_TIMEOUT_MS, None)
    teller.ask(ApiKey.LIST_PARTITION_REASSIGNMENTS, every, "all")


STORIES: Final = (
    Story(topics_are_described, _TOPICS, newest_only=True),
    Story(partitions_are_described, _TOPICS, newest_only=True),
    Story(coordinators_are_found, newest_only=True, on_cluster=True),
    Story(partitions_are_led_by_whom_they_prefer, _TOPICS, newest_only=True, on_cluster=True),
    Story(the_sizes_of_partitions_are_told, _TOPICS, newest_only=True, on_cluster=True),
    Story(partitions_stay_where_they_are, _TOPICS, newest_only=True, on_cluster=True),
)
