"""Stories of transactions that go wrong: fenced producers, and requests out of order."""

from __future__ import annotations

from typing import Any, Final

from aclbroker.conformance.behaviour.stories.transaction_requests import Writer
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted

_TOPICS: Final = {"orders": TopicWanted(1)}


def producers_are_fenced(teller: Teller) -> None:
    """Tell what is said to a producer after another one with its transactional id."""
    old = Writer(teller)
    old.begin("the old one")
    if teller.is_oldest:
        old.add({"orders": [0]}, "the old one")
    old.write("orders", b"a", about="the old one")
    new = Writer(teller)
    new.begin("while a transaction goes on")
    old.wait()
    new.begin("the new one")
    old.write("orders", b"b", about="fenced")
    old.add({"orders": [0]}, "fenced")
    old.add_group(teller.group_id, "fenced")
    old.commit_offsets(teller.group_id, 1, "fenced")
    old.end("fenced", commits=True)
    old.begin("fenced", producer_id=old.producer_id, producer_epoch=old.epoch)
    new.add({"orders": [0]}, "the new one")
    new.write("orders", b"c", about="the new one")
    new.end("the new one", commits=True)


def requests_out_of_order(teller: Teller) -> None:
    """Tell what is said to those who end what has not begun, or are somebody else."""
    writer = Writer(teller)
    unknown = {"producer_id": 1, "producer_epoch": 0}
    strangers: dict[str, dict[str, Any]] = {
        "before it begins": unknown,
        "of nobody": {"transactional_id": "", **unknown},
    }
    for about, changes in strangers.items():
        writer.end(about, commits=True, **changes)
        writer.add({"orders": [0]}, about, **changes)
        writer.add_group(teller.group_id, about, **changes)
        writer.commit_offsets(teller.group_id, 1, about, **changes)
    for timeout in (0, -1, 900_001):
        writer.begin(f"a timeout of {timeout}", transaction_timeout_ms=timeout)
    writer.begin("an empty id", transactional_id="")
    if not teller.is_oldest:
        writer.begin("an id that is not known", producer_id=1, producer_epoch=0)
        writer.begin("half an id", producer_id=-1, producer_epoch=5)
        writer.begin("the other half", producer_id=5, producer_epoch=-1)
    writer.begin()
    writer.end("nothing committed", commits=True)
    writer.end("nothing aborted", commits=False)
    writer.add({"orders": [0, 9], "nowhere": [0]}, "what is not there")
    writer.add({}, "nothing")
    writer.add({"orders": [0]}, "another producer", producer_id=writer.producer_id + 7_000_000)
    writer.add({"orders": [0]}, "an epoch to come", producer_epoch=writer.epoch + 1)
    writer.end("another producer", commits=True, producer_id=writer.producer_id + 7_000_000)
    writer.end("an epoch to come", commits=True, producer_epoch=writer.epoch + 1)
    writer.add({"orders": [0]}, "one")
    writer.write("orders", b"a", about="another transactional id", transactional_id="somebody")
    writer.write("orders", b"a", about="none", transactional_id=None)
    writer.write("orders", b"a", about="a gap", sequence=4)
    writer.write("orders", b"a", about="an epoch to come", epoch=writer.epoch + 1)
    writer.write("orders", b"a", about="one")
    writer.end("committed", commits=True)
    writer.end("committed again", commits=True)
    writer.end("aborted then", commits=False)


def what_was_not_added(teller: Teller) -> None:
    """Tell what is said to a batch for a partition that was not added, and to offsets likewise."""
    writer = Writer(teller)
    writer.begin()
    writer.write("orders", b"a", about="not added")
    writer.commit_offsets(teller.group_id, 1, "not added")
    writer.wait()
    writer.describe("not added")


def offsets_of_wrong_members(teller: Teller) -> None:
    """Tell which members may commit offsets in a transaction."""
    writer = Writer(teller)
    writer.begin()
    writer.add_group("", "no group")
    writer.add_group(teller.group_id, "a group")
    strangers: dict[str, dict[str, Any]] = {
        "an unknown member": {"member_id": "nobody", "generation_id": 3},
        "a generation alone": {"generation_id": 3},
        "an unknown instance": {"group_instance_id": "nobody", "member_id": "a"},
    }
    for about, changes in strangers.items():
        writer.commit_offsets(teller.group_id, 1, about, **changes)
    writer.commit_offsets("", 1, "no group")
    writer.commit_offsets(teller.group_id, 1, "an unknown topic", ("orders", "nowhere"))
    writer.commit_offsets(teller.group_id, 1, "no topic", ())
    writer.commit_offsets(teller.group_id, -2, "below 0")
    writer.end(commits=True)


STORIES: Final = (
    Story(producers_are_fenced, _TOPICS),
    Story(requests_out_of_order, _TOPICS),
    Story(what_was_not_added, _TOPICS),
    Story(offsets_of_wrong_members, _TOPICS),
)
