"""Stories of Produce: what is written, what is refused, and what idempotent producers may do."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories.batches import (
    ATTRIBUTES_AT,
    COUNT_AT,
    LAST_DELTA_AT,
    MAGIC_AT,
    batch,
    changed,
    of_old,
)
from aclbroker.conformance.behaviour.stories.requests import (
    fetched,
    offsets_at,
    read,
    write,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey, init_producer_id

_ONE: Final = batch(b"one")
_TOMORROW_MS: Final = 4_000_000_000_000


def records_are_written(teller: Teller) -> None:
    """Tell what is written, with each version and each number of acknowledgements."""
    for acks in (-1, 1):
        teller.ask(ApiKey.PRODUCE, write(teller, "orders", _ONE, acks=acks), f"acks {acks}")
    teller.ask_each(ApiKey.PRODUCE, write(teller, "orders", batch(b"a", b"b"), _ONE), "2 of 3")
    teller.send(ApiKey.PRODUCE, write(teller, "orders", _ONE, acks=0), "acks 0")
    teller.ask(ApiKey.LIST_OFFSETS, offsets_at(teller, "orders", -1, -1, -1))
    teller.ask(ApiKey.PRODUCE, write(teller, "orders", batch(b"packed", codec=1)), "gzip")
    teller.ask(ApiKey.PRODUCE, write(teller, "orders", batch(None, key=b"k")), "no value")
    teller.ask(ApiKey.FETCH, read(teller, {"orders": [fetched(0), fetched(1)]}))


def records_are_refused(teller: Teller) -> None:
    """Tell what a broker says to batches that are wrong."""
    wrong = {
        "empty": b"",
        "short": _ONE[:20],
        "cut off": _ONE[:-1],
        "two batches": _ONE + _ONE,
        "a wrong checksum": _ONE[:-1] + b"\7",
        "magic 0": of_old(0),
        "magic 1": of_old(1),
        "magic 3": changed(_ONE, MAGIC_AT, b"\3"),
        "a base offset": changed(_ONE, 0, bytes(7) + b"\5"),
        "a marker": changed(_ONE, ATTRIBUTES_AT, b"\0\x20"),
        "a marker in a transaction": changed(_ONE, ATTRIBUTES_AT, b"\0\x30"),
        "more records than told": changed(batch(b"a", b"b"), COUNT_AT, bytes(3) + b"\1"),
        "fewer records than told": changed(batch(b"a", b"b"), COUNT_AT, bytes(3) + b"\3"),
        "counts that agree and lie": changed(
            changed(batch(b"a", b"b"), COUNT_AT, bytes(3) + b"\3"), LAST_DELTA_AT, bytes(3) + b"\2"
        ),
        "no records": changed(_ONE, COUNT_AT, bytes(4)),
        "a negative delta": changed(_ONE, LAST_DELTA_AT, b"\xff\xff\xff\xff"),
        "no sequence": batch(b"a", producer=(5, 0, -1)),
        "tomorrow": batch(b"a", time_ms=_TOMORROW_MS),
        "too large": batch(b"x" * 400),
        "gzip that is none": changed(_ONE, ATTRIBUTES_AT, b"\0\1"),
        "an unknown compression": changed(_ONE, ATTRIBUTES_AT, b"\0\6"),
        "in a transaction without one": batch(b"a", producer=(5, 0, 0), transactional=True),
    }
    for about, records in wrong.items():
        teller.ask(ApiKey.PRODUCE, write(teller, "small", records), about)
    for codec, name in ((2, "snappy"), (3, "lz4"), (4, "zstd")):
        broken = changed(_ONE, ATTRIBUTES_AT, bytes((0, codec)))
        teller.ask(ApiKey.PRODUCE, write(teller, "packed", broken), f"{name} that is none")
    for acks in (2, -2):
        teller.ask(ApiKey.PRODUCE, write(teller, "small", _ONE, acks=acks), f"acks {acks}")
    teller.ask(ApiKey.PRODUCE, write(teller, "small", _ONE, _ONE), "to a partition too many")
    teller.ask(ApiKey.PRODUCE, write(teller, "nowhere", _ONE), "to a topic that is not there")
    negative = write(teller, "small", _ONE)
    negative.topic_data[0].partition_data[0].index = -1
    teller.ask(ApiKey.PRODUCE, negative, "to a partition below 0")
    teller.ask(ApiKey.PRODUCE, write(teller, "keyed", batch(b"a", b"b")), "no key")
    teller.ask(ApiKey.PRODUCE, write(teller, "keyed", batch(b"a", codec=1)), "no key in gzip")
    teller.ask(ApiKey.PRODUCE, write(teller, "keyed", batch(b"a", key=b"k")), "a key")
    teller.send(ApiKey.PRODUCE, write(teller, "small", wrong["cut off"], acks=0), "acks 0")
    teller.ask(ApiKey.LIST_OFFSETS, offsets_at(teller, "small", -1))


def records_have_the_time_of_writing(teller: Teller) -> None:
    """Tell which times records have, by the topic's setting."""
    for topic in ("written", "created"):
        teller.ask(ApiKey.PRODUCE, write(teller, topic, batch(b"a", b"b")), topic)
        teller.ask(ApiKey.PRODUCE, write(teller, topic, batch(b"c", time_ms=-1)), f"{topic} -1")
        old = write(teller, topic, batch(b"d", time_ms=1_000))
        teller.ask(ApiKey.PRODUCE, old, f"{topic}, of old")
        teller.ask(ApiKey.FETCH, read(teller, {topic: [fetched(0)]}), topic)


def idempotent_producers(teller: Teller) -> None:
    """Tell what becomes of batches that come twice, too early, or from a producer of old."""
    request = init_producer_id.InitProducerIdRequest(None, 60_000)
    answer = teller.quietly(ApiKey.INIT_PRODUCER_ID, request)
    own = teller.call(answer.producer_id, "producer")
    for number in range(1, 5):
        teller.call(own + number * 1_000_000, f"unknown {number}")
    teller.keep(ApiKey.INIT_PRODUCER_ID, answer)

    def send(about: str, epoch: int, sequence: int, *values: bytes, producer: int = own) -> None:
        made = batch(*(values or (b"a",)), producer=(producer, epoch, sequence))
        teller.ask(ApiKey.PRODUCE, write(teller, "orders", made), about)

    for sequence in range(3):
        send(f"the sequence {sequence}", 0, sequence)
    send("one again", 0, 1)
    send("a gap", 0, 5)
    send("several", 0, 3, b"a", b"b", b"c")
    send("a part of them again", 0, 4, b"b", b"c")
    send("all again", 0, 3, b"a", b"b", b"c")
    for sequence in range(6, 10):
        send(f"the sequence {sequence}", 0, sequence)
    send("what is too long ago", 0, 0)
    send("another epoch with a gap", 1, 4)
    send("another epoch", 1, 0)
    send("an epoch of old", 0, 10)
    send("an unknown producer", 0, 0, producer=own + 1_000_000)
    send("an unknown producer in the middle", 3, 7, producer=own + 2_000_000)
    last = (1 << 31) - 1
    send("the last sequence", 0, last, producer=own + 3_000_000)
    send("and the first again", 0, 0, producer=own + 3_000_000)
    send("an epoch below 0", -1, 0, producer=own + 4_000_000)
    teller.ask(ApiKey.FETCH, read(teller, {"orders": [fetched(0)]}))


def producer_ids(teller: Teller) -> None:
    """Tell who gets a producer id, without a transaction."""
    for producer_id, epoch in ((-1, -1), (7, -1), (-1, 7), (7, 7), (-2, -1)):
        request = init_producer_id.InitProducerIdRequest(None, 60_000, producer_id, epoch)
        for version in teller.versions(ApiKey.INIT_PRODUCER_ID):
            answer = teller.quietly(ApiKey.INIT_PRODUCER_ID, request, version)
            teller.call(answer.producer_id, "a producer")
            about = f"by {producer_id} {epoch}"
            teller.keep(ApiKey.INIT_PRODUCER_ID, answer, about, version)


STORIES: Final = (
    Story(records_are_written, {"orders": TopicWanted(2)}),
    Story(
        records_are_refused,
        {
            "small": TopicWanted(configs={"max.message.bytes": "300"}),
            "keyed": TopicWanted(configs={"cleanup.policy": "compact"}),
            "packed": TopicWanted(),
        },
    ),
    Story(
        records_have_the_time_of_writing,
        {
            "written": TopicWanted(configs={"message.timestamp.type": "LogAppendTime"}),
            "created": TopicWanted(),
        },
    ),
    Story(idempotent_producers, {"orders": TopicWanted()}),
    Story(producer_ids, newest_only=True),
)
