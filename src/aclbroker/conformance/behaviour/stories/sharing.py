"""Stories of the records of share groups (KIP-932): who has which, and what becomes of them."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories.batches import batch
from aclbroker.conformance.behaviour.stories.requests import fill
from aclbroker.conformance.behaviour.stories.share_requests import (
    Session,
    acknowledge,
    beat,
    configured,
    fetch,
    joined,
)
from aclbroker.conformance.behaviour.stories.transaction_requests import Writer
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages import share_fetch as m

_ONE: Final = {"orders": TopicWanted(1)}
_TWO: Final = {"orders": TopicWanted(2)}
_ACCEPT: Final = 1
_RELEASE: Final = 2
_REJECT: Final = 3
_RENEW: Final = 4


def _begun(teller: Teller, *records: bytes, **configs: str) -> Session:
    """Let a member of a group that begins at the beginning join; returns its session."""
    fill(teller, "orders", *records)
    configured(teller, auto_offset_reset="earliest", **configs)
    joined(teller, "m1")
    return Session(teller, "m1")


def _pairs(count: int) -> list[bytes]:
    """Return batches of two records each."""
    return [batch(b"a%d" % n, b"b%d" % n) for n in range(count)]


def records_are_shared(teller: Teller) -> None:
    """Tell what a member gets, and what becomes of what it says of it."""
    session = _begun(teller, *_pairs(3))
    session.fetch("one at most", max_records=1, batch_size=1)
    session.fetch("three at most", max_records=3, batch_size=3)
    session.fetch("the rest")
    session.say("accepted", (0, 0, [_ACCEPT]))
    session.say("accepted again", (0, 0, [_ACCEPT]))
    session.say("released", (1, 2, [_RELEASE]))
    session.fetch("what was released", [])
    session.say("each its own", (1, 2, [_REJECT, _ACCEPT]))
    session.fetch("and accepted", [(3, 3, [_ACCEPT])])
    session.fetch("of older clients", [(4, 4, [_ACCEPT])], version=1)
    session.say("of older clients", (5, 5, [0]), version=1)
    fill(teller, "orders", *_pairs(1))
    session.fetch("new ones", max_wait_ms=10_000)
    session.say("released", (6, 7, [_RELEASE]))
    session.fetch("nothing is wanted", max_records=0)
    session.fetch("again")
    request = acknowledge(teller, "m1", -1, (6, 6, [_ACCEPT]))
    teller.ask(ApiKey.SHARE_ACKNOWLEDGE, request, "and the end", 2)
    teller.ask(ApiKey.SHARE_ACKNOWLEDGE, request, "after the end", 2)


def records_are_acquired_in_batches(teller: Teller) -> None:
    """Tell which records are acquired together, in both modes, with limits."""
    session = _begun(teller, *_pairs(24))
    for mode in (0, 1):
        for most, size in ((1, 1), (3, 1), (5, 2), (7, 3)):
            about = f"mode {mode}, {most} at most, batches of {size}"
            session.fetch(about, max_records=most, batch_size=size, share_acquire_mode=mode)
            session.fetch(
                f"{about} again", max_records=most, batch_size=size, share_acquire_mode=mode
            )
    for most in (1, 100, 200):
        session.fetch(f"{most} bytes at most", max_bytes=most)
    session.say("released", (0, 2, [_RELEASE]))
    session.fetch("what was released, two at most", max_records=2, share_acquire_mode=1)
    session.fetch("and the rest of it", max_records=2, share_acquire_mode=1)


def what_is_said_of_records_is_refused(teller: Teller) -> None:
    """Tell what may not be said of records."""
    session = _begun(teller, *_pairs(2))
    session.fetch("all")
    session.say("behind the end", (9, 9, [_ACCEPT]))
    session.say("beyond the end", (2, 9, [_ACCEPT]))
    session.say("from behind", (3, 2, [_ACCEPT]))
    session.say("too little", (0, 2, [_ACCEPT, _ACCEPT]))
    session.say("nothing", (0, 2, []))
    session.say("twice", (0, 1, [_ACCEPT]), (1, 2, [_ACCEPT]))
    session.say("out of order", (2, 2, [_ACCEPT]), (0, 0, [_ACCEPT]))
    session.say("something else", (0, 0, [9]))
    session.say("something negative", (0, 0, [-1]))
    session.say("renewed, in a request that does not", (0, 0, [_RENEW]))
    session.say("renewed by older clients", (0, 0, [_RENEW]), version=1)
    session.renew("renewed", (0, 3, [_RENEW]))
    session.renew("renewed and accepted", (0, 1, [_RENEW, _ACCEPT]))
    session.say("accepted, with others that are", (1, 2, [_ACCEPT]))
    session.say("of no partition", (0, 0, [_ACCEPT]), partition=7)
    session.say("of nothing")
    session.fetch("wrong in a fetch", [(0, 0, [9])])
    session.fetch("not there in a fetch", [(9, 9, [_ACCEPT])])
    session.fetch("renewed with records", [(0, 0, [_RENEW])], is_renew_ack=True)
    stranger = acknowledge(teller, "m2", 1, (0, 0, [_ACCEPT]))
    teller.ask(ApiKey.SHARE_ACKNOWLEDGE, stranger, "by who has no session", 2)
    second = Session(teller, "m2")
    second.fetch("of another member", max_wait_ms=1)
    second.say("of another member", (0, 0, [_ACCEPT]))


def share_sessions(teller: Teller) -> None:
    """Tell how sessions of share fetches begin, go on and end."""
    session = _begun(teller, *_pairs(1))

    def ask(about: str, epoch: int, member_id: str = "m1", **changes: object) -> None:
        request = fetch(teller, member_id, epoch, **changes)  # type: ignore[arg-type]
        teller.ask(ApiKey.SHARE_FETCH, request, about, 2)

    def say(about: str, epoch: int) -> None:
        request = acknowledge(teller, "m1", epoch, (0, 0, [_ACCEPT]))
        teller.ask(ApiKey.SHARE_ACKNOWLEDGE, request, about, 2)

    ask("before there is one", 3)
    ask("the end before there is one", -1)
    ask("that begins with what is said", 0, said=[(0, 0, [_ACCEPT])])
    say("that begins with what is said", 0)
    session.fetch("a new one")
    ask("the same epoch", 0, max_wait_ms=1)
    ask("an epoch to come", 7)
    say("an epoch to come", 7)
    ask("the next", 1)
    unknown = m.FetchTopic(teller.ids["orders"], [m.FetchPartition(7)])
    ask("what is not there", 2, topics=[unknown])
    ask("errors are told again", 3)
    forgotten = [m.ForgottenTopic(teller.ids["orders"], [0, 7])]
    ask("without any", 4, forgotten_topics_data=forgotten)
    ask("of nothing", 5)
    say("the next", 6)
    again = m.FetchTopic(teller.ids["orders"], [m.FetchPartition(0)])
    ask("with one again", 7, topics=[again])
    ask("and nothing new", 8)
    ask("the end", -1)
    ask("after the end", 9)
    ask("a new one of nothing", 0, topics=[])
    ask("and its end", -1)


def records_are_delivered_again(teller: Teller) -> None:
    """Tell how often records are delivered, and how many together."""
    session = _begun(teller, *_pairs(4))
    session.fetch("the first time")
    session.say("released", (0, 7, [_RELEASE]))
    session.fetch("the second time")
    session.say("some released", (3, 5, [_RELEASE]))
    session.fetch("the third time, some")
    session.say("all released", (0, 7, [_RELEASE]))
    session.fetch("fewer together")
    session.fetch("and others")
    session.say("all released", (0, 7, [_RELEASE]))
    session.fetch("fewer still")
    for number in range(8):
        session.fetch(f"one by one {number}")


def records_are_given_up(teller: Teller) -> None:
    """Tell what becomes of records that were delivered often enough."""
    session = _begun(teller, *_pairs(2), delivery_count_limit="2")
    session.fetch("the first time")
    session.say("some accepted, others released", (0, 3, [_ACCEPT, _RELEASE, _RELEASE, _REJECT]))
    session.fetch("the second time")
    session.say("released again", (1, 2, [_RELEASE]))
    session.fetch("given up")
    fill(teller, "orders", *_pairs(1))
    session.fetch("others", max_wait_ms=10_000)


def aborted_records_are_not_shared(teller: Teller) -> None:
    """Tell what who reads only what is committed gets of transactions."""
    session = _begun(teller, *_pairs(1), isolation_level="read_committed")
    writer = Writer(teller)
    writer.begin("a writer")
    session.fetch("what is in no transaction")
    for commits in (False, True):
        writer.write("orders", b"one", b"two")
        session.fetch("of a transaction that is under way")
        writer.end(commits=commits)
        session.fetch(f"of one that ended, {commits}", max_wait_ms=500)


def groups_begin_where_they_are_told(teller: Teller) -> None:
    """Tell where groups begin to read by default, and that the two partitions are apart."""
    fill(teller, "orders", *_pairs(2))
    joined(teller, "m1")
    session = Session(teller, "m1")
    session.fetch("at the end", max_wait_ms=500)
    fill(teller, "orders", *_pairs(1))
    session.fetch("what came then", max_wait_ms=10_000)
    teller.ask(ApiKey.SHARE_GROUP_HEARTBEAT, beat(teller, "m1", -1), version=1)
    session.fetch("after it has left")


STORIES: Final = (
    Story(records_are_shared, _ONE, newest_only=True),
    Story(records_are_acquired_in_batches, _ONE, newest_only=True),
    Story(what_is_said_of_records_is_refused, _ONE, newest_only=True),
    Story(share_sessions, _ONE, newest_only=True),
    Story(records_are_delivered_again, _ONE, newest_only=True),
    Story(records_are_given_up, _ONE, newest_only=True),
    Story(aborted_records_are_not_shared, _ONE, newest_only=True),
    Story(groups_begin_where_they_are_told, _TWO, newest_only=True),
)
