"""The answer to a ShareFetch, as far as there is something to tell."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.backends.memory.share.leaders import Leaders
from aclbroker.broker.backends.memory.share.reading import Taken
from aclbroker.broker.backends.memory.share.said import Outcome, partition_at
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.share import ShareSession
from aclbroker.broker.memory.share.partitions import Place
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.share_fetch import (
    AcquiredRecords,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from aclbroker.protocol.pieces import Pieces
from aclbroker.turns import in_turns

_COPIED: Final = 16_384


class Answer:
    """The answer, by partition; those that the gate has refused it answers itself."""

    def __init__(
        self, backend: MemoryBackend, rights: RequestRights, session: ShareSession, *, is_new: bool
    ) -> None:
        self.session = session
        self.entries: dict[Place, PartitionData] = {}
        self.is_new = is_new
        self._backend = backend
        self._leaders = Leaders(backend, rights)

    def entry(self, place: Place) -> PartitionData:
        """Return the entry of a partition, which is new if there was none."""
        if place not in self.entries:
            self.entries[place] = PartitionData(place[1], records=b"")
        return self.entries[place]

    def refuse(self, place: Place, code: int, message: str | None = None) -> None:
        """Tell that nothing can be read of a partition, and why."""
        entry = self.entry(place)
        entry.error_code, entry.error_message = code, message
        if code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
            self._tell_leader(place, entry)

    def add(self, place: Place, found: Taken) -> None:
        """Add what was acquired of a partition, maybe nothing."""
        entry = self.entry(place)
        records: Any = Pieces(found.parts) if found.size > _COPIED else b"".join(found.parts)
        entry.records = records
        entry.acquired_records = [AcquiredRecords(*each) for each in in_turns(found.acquired)]

    def add_outcomes(self, outcomes: Mapping[Place, Outcome]) -> None:
        """Leave out what there is nothing to tell of, and add what became of what was said."""
        told = self.session.partitions
        for place, entry in in_turns(list(self.entries.items())):
            has_news = bool(entry.error_code or entry.acquired_records)
            if not self.is_new and not has_news and not told.get(place):
                del self.entries[place]
            if place in told:
                # That an error is over is told, too.
                told[place] = bool(entry.error_code)
        for place, outcome in in_turns(list(outcomes.items())):
            entry = self.entry(place)
            entry.acknowledge_error_code = outcome.code
            entry.acknowledge_error_message = outcome.message
            if outcome.code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
                self._tell_leader(place, entry)

    def response(self) -> ShareFetchResponse:
        """Return the answer."""
        topics: dict[bytes, ShareFetchableTopicResponse] = {}
        for (topic_id, _), entry in in_turns(list(self.entries.items())):
            topic = topics.setdefault(topic_id, ShareFetchableTopicResponse(topic_id, []))
            topic.partitions.append(entry)  # type: ignore[attr-defined] # made as a list above
        settings = self._backend.cluster.share_partitions.settings(self.session.key.group_id)
        return ShareFetchResponse(
            acquisition_lock_timeout_ms=settings.lock_ms,
            responses=list(topics.values()),
            node_endpoints=[NodeEndpoint(*node) for node in self._leaders.nodes()],
        )

    def _tell_leader(self, place: Place, entry: PartitionData) -> None:
        partition = partition_at(self._backend, place)
        if partition is not None:
            entry.current_leader = LeaderIdAndEpoch(*self._leaders.of(partition))
