"""Stories of transactions that go well: what is seen while they are under way, and afterwards."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.conformance.behaviour.stories.batches import now_ms
from aclbroker.conformance.behaviour.stories.requests import fetched, fill, offsets_at, read
from aclbroker.conformance.behaviour.stories.transaction_requests import Writer
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import (
    ApiKey,
    describe_producers,
    describe_transactions,
    list_transactions,
    offset_fetch,
)

_TOPICS: Final = {"orders": TopicWanted(2), "payments": TopicWanted(1)}
_COMMITTED: Final = 1


def _seen(teller: Teller, about: str) -> None:
    for isolation in (0, _COMMITTED):
        request = read(teller, {"orders": [fetched(0)]}, isolation_level=isolation)
        teller.ask(ApiKey.FETCH, request, f"{about}, isolation {isolation}")
        listed = offsets_at(teller, "orders", -1, isolation=isolation)
        teller.ask(ApiKey.LIST_OFFSETS, listed, f"{about}, isolation {isolation}")


def _producers(teller: Teller, about: str) -> None:
    topics = [
        describe_producers.TopicRequest(teller.name("orders"), [0, 1, 9]),
        describe_producers.TopicRequest(teller.name("nowhere"), [0]),
    ]
    request = describe_producers.DescribeProducersRequest(topics)
    teller.ask(ApiKey.DESCRIBE_PRODUCERS, request, about)


def _offsets(teller: Teller, about: str) -> None:
    for stable in (False, True):
        if teller.is_oldest:
            topic = offset_fetch.OffsetFetchRequestTopic(teller.name("orders"), [0])
            request = offset_fetch.OffsetFetchRequest(teller.group_id, [topic])
        else:
            several = offset_fetch.OffsetFetchRequestTopics(
                teller.name("orders"), teller.ids["orders"], [0]
            )
            group = offset_fetch.OffsetFetchRequestGroup(teller.group_id, None, -1, [several])
            request = offset_fetch.OffsetFetchRequest(groups=[group], require_stable=stable)
        teller.ask(ApiKey.OFFSET_FETCH, request, f"{about}, stable {stable}")


def a_transaction_is_committed_and_one_aborted(teller: Teller) -> None:
    """Tell what readers and others see of transactions under way, committed and aborted."""
    fill(teller, "orders", time_ms=now_ms())
    writer = Writer(teller)
    writer.begin("the first")
    writer.describe("none yet")
    for commits, about in ((True, "committed"), (False, "aborted")):
        if teller.is_oldest:
            writer.add({"orders": [0], "payments": [0]}, about)
        writer.write("orders", b"a", b"b", about=about)
        writer.write("orders", b"c", about=about)
        writer.write("payments", b"d", about=about)
        writer.describe(f"to be {about}")
        _producers(teller, f"to be {about}")
        _seen(teller, f"to be {about}")
        writer.end(about, commits=commits)
        writer.describe(about)
        _producers(teller, about)
        _seen(teller, about)
    for offset in (5, 6, 7, 8, 9, 10, 11, 12, 13):
        request = read(teller, {"orders": [fetched(0, offset)]}, isolation_level=_COMMITTED)
        teller.ask(ApiKey.FETCH, request, f"from {offset}")
    writer.begin("again")
    writer.describe("again")


def two_transactions_overlap(teller: Teller) -> None:
    """Tell how far readers of what is committed see while one of two transactions goes on."""
    first, second = Writer(teller, "first"), Writer(teller, "second")
    for each in (first, second):
        each.begin()
        if teller.is_oldest:
            each.add({"orders": [0]})
    first.write("orders", b"first")
    second.write("orders", b"second")
    fill(teller, "orders", time_ms=now_ms())
    second.end("the second", commits=False)
    _seen(teller, "the first goes on")
    first.end("the first", commits=True)
    _seen(teller, "both are over")


def offsets_are_committed_in_a_transaction(teller: Teller) -> None:
    """Tell who sees offsets that are committed in a transaction, and when."""
    writer = Writer(teller)
    writer.begin()
    for commits, about in ((False, "aborted"), (True, "committed")):
        if teller.is_oldest:
            writer.add_group(teller.group_id, about)
        writer.commit_offsets(teller.group_id, 7, about)
        writer.describe(f"to be {about}")
        _offsets(teller, f"to be {about}")
        writer.end(about, commits=commits)
        _offsets(teller, about)


def transactions_are_listed(teller: Teller) -> None:
    """Tell which transactions filters leave."""
    writer, idle = Writer(teller, "writer"), Writer(teller, "idle")
    for each in (writer, idle):
        each.begin()
    writer.add({"orders": [0]})
    filters: list[dict[str, Any]] = [
        {"state_filters": ["Ongoing"]},
        {"state_filters": ["Empty", "Ongoing"]},
        {"state_filters": ["Gone", "Ongoing"]},
        {"state_filters": ["Gone"]},
        {"state_filters": ["CompleteAbort"]},
        {"producer_id_filters": [writer.producer_id]},
        {"producer_id_filters": [writer.producer_id + 5_000_000]},
        {"duration_filter": 0},
        {"duration_filter": 60_000},
        {"transactional_id_pattern": ".*writer"},
        {"transactional_id_pattern": "writer"},
        {"transactional_id_pattern": ""},
        {"transactional_id_pattern": "("},
    ]
    for given in filters:
        [(key, value)] = given.items()
        about = key if key == "producer_id_filters" else f"{key} {value}"
        request = list_transactions.ListTransactionsRequest(**given)
        teller.ask(ApiKey.LIST_TRANSACTIONS, request, about)
    ids = [teller.name("writer"), teller.name("nobody"), "", teller.name("idle")]
    several = describe_transactions.DescribeTransactionsRequest(ids)
    teller.ask(ApiKey.DESCRIBE_TRANSACTIONS, several, "several")
    writer.end(commits=False)


STORIES: Final = (
    Story(a_transaction_is_committed_and_one_aborted, _TOPICS),
    Story(two_transactions_overlap, _TOPICS),
    Story(offsets_are_committed_in_a_transaction, _TOPICS),
    Story(transactions_are_listed, _TOPICS),
)
