"""Stories of Fetch: offsets, limits of bytes, sessions and leader epochs."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.conformance.behaviour.stories.batches import batch
from aclbroker.conformance.behaviour.stories.requests import (
    fetched,
    fill,
    id_of,
    read,
    write,
)
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey, fetch

_TWO: Final = {"orders": TopicWanted(2)}


def records_are_read(teller: Teller) -> None:
    """Tell what is read at any offset, of what is there and of what is not."""
    fill(teller, "orders")
    for offset in (0, 1, 2, 4):
        request = read(teller, {"orders": [fetched(0, offset)]})
        teller.ask_each(ApiKey.FETCH, request, f"from {offset}")
    for offset in (5, -1, 1 << 40):
        request = read(teller, {"orders": [fetched(0, offset), fetched(1, 0)]})
        teller.ask(ApiKey.FETCH, request, f"from {offset}")
    missing = {"orders": [fetched(0), fetched(2), fetched(-1)], "nowhere": [fetched(0)]}
    teller.ask_each(ApiKey.FETCH, read(teller, missing), "what is not there")
    twice = {"orders": [fetched(0), fetched(0, 3)]}
    teller.ask(ApiKey.FETCH, read(teller, twice), "a partition twice")
    teller.ask(ApiKey.FETCH, read(teller, {}), "nothing")
    teller.ask(ApiKey.FETCH, read(teller, {"orders": []}), "a topic without partitions")


def few_bytes_are_read(teller: Teller) -> None:
    """Tell how many batches fit into limits."""
    fill(teller, "orders")
    teller.admin(ApiKey.PRODUCE, write(teller, "orders", batch(b"5"), batch(b"other")), 12)
    size = len(batch(b"one"))
    for most in (-1, 0, 1, size, size + 30, 3 * size, 1 << 30):
        request = read(teller, {"orders": [fetched(0, 0, most), fetched(1, 0, most)]})
        teller.ask(ApiKey.FETCH, request, f"{most} bytes of a partition")
        both = {"orders": [fetched(0), fetched(1)]}
        request = read(teller, both, max_bytes=most)
        teller.ask(ApiKey.FETCH, request, f"{most} bytes in all")
    middle = read(teller, {"orders": [fetched(0, 2, 1), fetched(1, 0, 1)]})
    teller.ask(ApiKey.FETCH, middle, "from within a batch")
    more = read(teller, {"orders": [fetched(0)]}, min_bytes=1 << 20, max_wait_ms=1)
    teller.ask(ApiKey.FETCH, more, "more than there is")
    empty = read(teller, {"orders": [fetched(0, 5)]}, max_wait_ms=1)
    teller.ask(ApiKey.FETCH, empty, "at the end")


def sessions_of_fetches(teller: Teller) -> None:
    """Tell what a session (KIP-227) remembers, and how it ends."""
    if teller.is_oldest:
        return
    fill(teller, "orders")
    both = {"orders": [fetched(0), fetched(1)]}
    own = teller.ask(ApiKey.FETCH, read(teller, both, (0, 0)), "a new one").session_id

    def go_on(about: str, epoch: int, topics: Any = None, **more: Any) -> None:
        request = read(teller, topics or {}, (own, epoch), **more)
        teller.ask(ApiKey.FETCH, request, about)

    go_on("the same again", 1)
    go_on("the same epoch", 1)
    go_on("an epoch to come", 9)
    go_on("from further on", 2, {"orders": [fetched(0, 4)]})
    go_on("nothing is new", 3)
    fill(teller, "orders", batch(b"five"))
    go_on("one more record", 4)
    go_on("what is not there", 5, {"orders": [fetched(7)], "nowhere": [fetched(0)]})
    go_on("errors are told again", 6)
    forgotten = [fetch.ForgottenTopic(teller.name("orders"), id_of(teller, "orders"), [0, 7])]
    go_on("without some", 7, forgotten_topics_data=forgotten)
    fill(teller, "orders", batch(b"six"))
    go_on("of what is forgotten", 8)
    teller.ask(ApiKey.FETCH, read(teller, both, (own, -1)), "and its end")
    go_on("after its end", 9)
    teller.ask(ApiKey.FETCH, read(teller, both, (own + 1, 5)), "one that is not there")
    teller.ask(ApiKey.FETCH, read(teller, both, (own + 1, 0)), "a new one instead")
    teller.ask(ApiKey.FETCH, read(teller, both, (0, 5)), "none, with an epoch")
    teller.ask(ApiKey.FETCH, read(teller, {}, (0, 0)), "a new one of nothing")


def leader_epochs(teller: Teller) -> None:
    """Tell what is read by who knows another leader epoch (KIP-320, KIP-595)."""
    fill(teller, "orders")
    for epoch in (-2, -1, 0, 1):
        request = read(teller, {"orders": [fetched(0, epoch=epoch)]})
        teller.ask(ApiKey.FETCH, request, f"the epoch {epoch}")
    for last in (0, 1, 5):
        for offset in (0, 2, 4, 5):
            request = read(teller, {"orders": [fetched(0, offset, last_epoch=last)]})
            teller.ask(ApiKey.FETCH, request, f"from {offset}, read in epoch {last}")


STORIES: Final = (
    Story(records_are_read, _TWO),
    Story(few_bytes_are_read, _TWO),
    Story(sessions_of_fetches, _TWO),
    Story(leader_epochs, _TWO),
)
