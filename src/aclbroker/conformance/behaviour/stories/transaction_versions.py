"""Stories of transactions at each version of their requests, and of what brokers ask each other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from aclbroker.conformance.behaviour.stories.requests import fetched, read
from aclbroker.conformance.behaviour.stories.transaction_requests import Writer
from aclbroker.conformance.behaviour.story import Story, Teller, TopicWanted
from aclbroker.protocol.messages import ApiKey, describe_producers, offset_fetch
from aclbroker.protocol.messages import add_partitions_to_txn as ap
from aclbroker.protocol.messages import write_txn_markers as wtm

_TOPICS: Final = {"orders": TopicWanted(2), "payments": TopicWanted(1)}
_OF_FIRST: Final = {
    ApiKey.PRODUCE: 11,
    ApiKey.ADD_PARTITIONS_TO_TXN: 3,
    ApiKey.ADD_OFFSETS_TO_TXN: 3,
    ApiKey.END_TXN: 4,
    ApiKey.TXN_OFFSET_COMMIT: 4,
}
"""The last versions with which partitions and groups are added first (KIP-890)."""

_COMMITTED: Final = 1


def _committed(teller: Teller, about: str) -> None:
    topic = offset_fetch.OffsetFetchRequestTopics(teller.name("orders"), partition_indexes=[0])
    group = offset_fetch.OffsetFetchRequestGroup(teller.group_id, None, -1, [topic])
    request = offset_fetch.OffsetFetchRequest(groups=[group])
    teller.ask(ApiKey.OFFSET_FETCH, request, about, 9)


def _seen(teller: Teller, about: str) -> None:
    request = read(teller, {"orders": [fetched(0)]}, isolation_level=_COMMITTED)
    teller.ask(ApiKey.FETCH, request, about)
    topics = [describe_producers.TopicRequest(teller.name("orders"), [0])]
    described = describe_producers.DescribeProducersRequest(topics)
    teller.ask(ApiKey.DESCRIBE_PRODUCERS, described, about)


def transactions_end_at_each_version(teller: Teller) -> None:
    """Tell how transactions end, at each version of EndTxn and of AddPartitionsToTxn."""
    writer = Writer(teller)
    writer.begin()
    for version in teller.versions(ApiKey.ADD_PARTITIONS_TO_TXN):
        about = f"added at {version}"
        writer.add({"orders": [0]}, about, version=version)
        writer.add({"orders": [0, 1]}, f"{about}, again", version=version)
        writer.write("orders", b"a", about=about, version=_OF_FIRST[ApiKey.PRODUCE])
        writer.end(about, commits=bool(version % 2), version=_OF_FIRST[ApiKey.END_TXN])
    for version in teller.versions(ApiKey.END_TXN):
        about = f"ended at {version}"
        if version <= _OF_FIRST[ApiKey.END_TXN]:
            writer.add({"orders": [0]}, about, version=_OF_FIRST[ApiKey.ADD_PARTITIONS_TO_TXN])
            writer.write("orders", b"b", about=about, version=_OF_FIRST[ApiKey.PRODUCE])
        else:
            writer.write("orders", b"b", about=about)
        writer.end(about, commits=bool(version % 2), version=version)
        writer.end(f"{about}, again", commits=bool(version % 2), version=version)
        writer.describe(about)
    _seen(teller, "at the end")


def offsets_are_committed_at_each_version(teller: Teller) -> None:
    """Tell how offsets are committed in transactions, at each version of TxnOffsetCommit."""
    writer = Writer(teller)
    writer.begin()
    for version in teller.versions(ApiKey.TXN_OFFSET_COMMIT):
        about = f"committed at {version}"
        is_first = version <= _OF_FIRST[ApiKey.TXN_OFFSET_COMMIT]
        if is_first:
            writer.add_group(teller.group_id, about, version=_OF_FIRST[ApiKey.ADD_OFFSETS_TO_TXN])
        writer.commit_offsets(teller.group_id, 10 + version, about, version=version)
        strange = {"topics": ("orders", "nowhere")}
        writer.commit_offsets(teller.group_id, 10, f"{about}, others", version=version, **strange)
        writer.commit_offsets(teller.group_id, 20 + version, f"{about}, again", version=version)
        writer.end(about, commits=True, version=_OF_FIRST[ApiKey.END_TXN] if is_first else None)
        _committed(teller, about)


def others_are_refused_at_each_version(teller: Teller) -> None:
    """Tell what is said to a producer that was fenced, and to a stranger, at each version."""
    writer, other = Writer(teller), Writer(teller, "nobody")
    writer.begin()
    writer.add({"orders": [0]}, version=_OF_FIRST[ApiKey.ADD_PARTITIONS_TO_TXN])
    writer.add_group(teller.group_id, version=_OF_FIRST[ApiKey.ADD_OFFSETS_TO_TXN])
    strangers: dict[str, tuple[Writer, dict[str, Any]]] = {
        "fenced": (writer, {"producer_epoch": writer.epoch - 1}),
        "an epoch to come": (writer, {"producer_epoch": writer.epoch + 1}),
        "another producer": (writer, {"producer_id": writer.producer_id + 7_000_000}),
        "nobody": (other, {"producer_id": 1, "producer_epoch": 0}),
    }
    for about, (who, changes) in strangers.items():
        who.end(about, commits=True, each=True, **changes)
        who.add({"orders": [0]}, about, each=True, **changes)
        who.add_group(teller.group_id, about, each=True, **changes)
        who.commit_offsets(teller.group_id, 1, about, each=True, **changes)
    writer.describe("it goes on")
    writer.end(commits=False, version=_OF_FIRST[ApiKey.END_TXN])


def brokers_add_partitions_and_ask_for_them(teller: Teller) -> None:
    """Tell what brokers are told that add partitions to transactions, or verify them."""
    writer = Writer(teller)
    writer.begin()
    writer.add({"orders": [0]}, version=_OF_FIRST[ApiKey.ADD_PARTITIONS_TO_TXN])

    def ask(about: str, topics: dict[str, Sequence[int]], *, verify: bool, **changes: Any) -> None:
        entries = [
            ap.AddPartitionsToTxnTopic(teller.name(name), each) for name, each in topics.items()
        ]
        wanted = ap.AddPartitionsToTxnTransaction(
            writer.transactional_id, writer.producer_id, writer.epoch, verify, entries
        )
        for name, value in changes.items():
            setattr(wanted, name, value)
        request = ap.AddPartitionsToTxnRequest(transactions=[wanted])
        for version in (4, 5):
            told = f"{about}, {'verified' if verify else 'added'}"
            teller.ask(ApiKey.ADD_PARTITIONS_TO_TXN, request, told, version)

    for verify in (True, False):
        ask("one that is in", {"orders": [0]}, verify=verify)
        ask("one that is not there", {"orders": [0, 9]}, verify=verify)
        ask("fenced", {"orders": [0]}, verify=verify, producer_epoch=writer.epoch - 1)
        ask("another producer", {"orders": [0]}, verify=verify, producer_id=7_000_000)
        ask("nobody", {"orders": [0]}, verify=verify, transactional_id=teller.name("nobody"))
        ask("one that is not in", {"orders": [1]}, verify=verify)
        ask("one of two", {"orders": [0], "payments": [0]}, verify=verify)
    writer.describe("it goes on")
    writer.end(commits=False, version=_OF_FIRST[ApiKey.END_TXN])


def brokers_write_markers(teller: Teller) -> None:
    """Tell which markers end a transaction in a partition, and which are refused."""
    writer = Writer(teller)
    for about in ("first", "again"):
        writer.begin(about)

    def mark(
        about: str, *topics: tuple[str, Sequence[int]], version: int = 1, **changes: Any
    ) -> None:
        entries = [wtm.WritableTxnMarkerTopic(teller.name(name), each) for name, each in topics]
        marker = wtm.WritableTxnMarker(writer.producer_id, writer.epoch, False, entries, 0)
        for name, value in changes.items():
            setattr(marker, name, value)
        request = wtm.WriteTxnMarkersRequest([marker])
        teller.ask(ApiKey.WRITE_TXN_MARKERS, request, f"{about} at {version}", version)

    here = "orders", [0]
    for version in (1, 2):
        writer.write("orders", b"a", about=f"before {version}")
        mark("one that is not there", ("orders", [9]), ("nowhere", [0]), version=version)
        mark("an old epoch", here, version=version, producer_epoch=writer.epoch - 1)
        mark("an older coordinator", here, version=version, coordinator_epoch=-1)
        _seen(teller, f"it goes on at {version}")
        mark("aborted", here, version=version)
        _seen(teller, f"aborted at {version}")
        mark("again", here, version=version)
        mark("committed then", here, version=version, transaction_result=True)
        mark("an older coordinator now", here, version=version, coordinator_epoch=-1)
        mark("an epoch to come", here, version=version, producer_epoch=writer.epoch + 1)
        mark("no topic", version=version)
        mark("no partition", ("orders", []), version=version)
        _seen(teller, f"at the end of {version}")
        writer.end(f"{version}", commits=False)
    # The markers of the second version of transactions have an epoch that nobody wrote with.
    for epoch in (writer.epoch - 1, writer.epoch, writer.epoch + 1):
        writer.write("orders", b"b", about="of the second version")
        about = f"{epoch - writer.epoch} epochs later"
        mark(about, here, version=2, producer_epoch=epoch, transaction_version=2)
        _seen(teller, about)
    none = wtm.WriteTxnMarkersRequest([])
    teller.ask(ApiKey.WRITE_TXN_MARKERS, none, "none")


STORIES: Final = (
    Story(transactions_end_at_each_version, _TOPICS, newest_only=True),
    Story(offsets_are_committed_at_each_version, _TOPICS, newest_only=True),
    Story(others_are_refused_at_each_version, _TOPICS, newest_only=True),
    Story(brokers_add_partitions_and_ask_for_them, _TOPICS, newest_only=True, on_cluster=True),
    Story(brokers_write_markers, _TOPICS, newest_only=True, on_cluster=True),
)
