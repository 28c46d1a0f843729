"""Stories of ListOffsets, OffsetForLeaderEpoch and DeleteRecords."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories.batches import TIME_MS, batch
from aclbroker.conformance.behaviour.stories.requests import (
    fetched,
    fill,
    offsets_at,
    offsets_of,
    read,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import (
    ApiKey,
    delete_records,
    list_offsets,
    offset_for_leader_epoch,
)

_SPECIAL: Final = range(-1, -8, -1)
_UNEVEN: Final = (
    batch(b"a", b"b", time_ms=TIME_MS),
    batch(b"c", time_ms=TIME_MS + 500),
    batch(b"d", b"e", time_ms=TIME_MS + 100),
    batch(b"f", b"g", b"h", time_ms=TIME_MS + 498, codec=1),
)


def offsets_are_listed(teller: Teller) -> None:
    """Tell where each time is, and each number that stands for one."""
    fill(teller, "orders", *_UNEVEN)
    for timestamp in _SPECIAL:
        request = offsets_at(teller, "orders", timestamp, timestamp)
        teller.ask_each(ApiKey.LIST_OFFSETS, request, f"at {timestamp}")
        committed = offsets_at(teller, "orders", timestamp, isolation=1)
        teller.ask(ApiKey.LIST_OFFSETS, committed, f"at {timestamp}, committed")
    for later in (-1, 0, 1, 2, 100, 101, 102, 499, 500, 501):
        request = offsets_at(teller, "orders", TIME_MS + later, TIME_MS + later)
        teller.ask(ApiKey.LIST_OFFSETS, request, f"{later} ms later")
    teller.ask(ApiKey.LIST_OFFSETS, offsets_at(teller, "orders", 0), "at 0")
    for epoch in (0, 1, 7):
        request = offsets_at(teller, "orders", -1, epoch=epoch)
        teller.ask(ApiKey.LIST_OFFSETS, request, f"the epoch {epoch}")
    one = list_offsets.ListOffsetsPartition(0, -1, -1, 1)
    twice = offsets_of(teller, {"orders": [one, one]})
    teller.ask(ApiKey.LIST_OFFSETS, twice, "a partition twice")
    absent = list_offsets.ListOffsetsPartition(9, -1, -1, 1)
    missing = offsets_of(teller, {"orders": [absent, one], "nowhere": [one]})
    teller.ask_each(ApiKey.LIST_OFFSETS, missing, "what is not there")


def ends_of_leader_epochs(teller: Teller) -> None:
    """Tell where leader epochs end."""
    fill(teller, "orders")
    for current in (-1, 0, 1):
        for epoch in (-1, 0, 1, 7):
            entries = [
                offset_for_leader_epoch.OffsetForLeaderPartition(index, current, epoch)
                for index in (0, 1, 9)
            ]
            topics = [
                offset_for_leader_epoch.OffsetForLeaderTopic(teller.name(name), entries)
                for name in ("orders", "nowhere")
            ]
            request = offset_for_leader_epoch.OffsetForLeaderEpochRequest(-1, topics)
            about = f"of {epoch}, by {current}"
            teller.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, request, about)


def records_are_deleted(teller: Teller) -> None:
    """Tell what remains, and what cannot be deleted."""
    for topic in ("orders", "keyed", "both"):
        fill(teller, topic, *(batch(b"a", key=b"k"), batch(b"b", b"c", key=b"l")))

    def delete(topic: str, index: int, offset: int) -> None:
        entry = delete_records.DeleteRecordsPartition(index, offset)
        wanted = delete_records.DeleteRecordsTopic(teller.name(topic), [entry])
        request = delete_records.DeleteRecordsRequest([wanted], 10_000)
        teller.ask(ApiKey.DELETE_RECORDS, request, f"of {topic} {index} before {offset}")

    def look(about: str) -> None:
        for offset in (0, 1, 2):
            fetch = read(teller, {"orders": [fetched(0, offset)]})
            teller.ask(ApiKey.FETCH, fetch, f"{about} from {offset}")
        for timestamp in (-1, -2, -3, TIME_MS):
            request = offsets_at(teller, "orders", timestamp, timestamp)
            teller.ask(ApiKey.LIST_OFFSETS, request, f"{about} at {timestamp}")

    for topic, index, offset in (
        ("orders", 0, -2),
        ("orders", 0, 4),
        ("orders", 0, 0),
        ("orders", 9, 0),
        ("nowhere", 0, 0),
        ("keyed", 0, 1),
        ("both", 0, 1),
        ("orders", 1, -1),
        ("orders", 0, 2),
    ):
        delete(topic, index, offset)
    look("within a batch")
    delete("orders", 0, 1)
    delete("orders", 0, -1)
    look("all")
    delete("orders", 0, -1)


STORIES: Final = (
    Story(offsets_are_listed, {"orders": TopicWanted(2)}),
    Story(ends_of_leader_epochs, {"orders": TopicWanted(2)}),
    Story(
        records_are_deleted,
        {
            "orders": TopicWanted(2),
            "keyed": TopicWanted(configs={"cleanup.policy": "compact"}),
            "both": TopicWanted(configs={"cleanup.policy": "compact,delete"}),
        },
    ),
)
