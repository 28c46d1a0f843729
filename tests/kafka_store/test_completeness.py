"""What a compacted topic still tells exactly, held against all that was once written."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.broker.stores.kafka.completeness import Said, Written, horizon
from tests.support.tables import examples


class Message(NamedTuple):
    """A message of a log; those of transactions that were aborted are never read."""

    offset: int
    key: bytes
    is_removal: bool
    transaction: str | None
    committed: bool = True
    size: int = 1


class Log(NamedTuple):
    """A log without open transactions, whose marks are the offsets without messages."""

    messages: Sequence[Message]
    end: int

    def without(self, *offsets: int) -> Log:
        left = [each for each in self.messages if each.offset not in offsets]
        return self._replace(messages=left)


def written(log: Log) -> Written:
    found = Written(0)
    for each in log.messages:
        found.add(each.offset, each.transaction)
    return found


def horizon_of(log: Log) -> int:
    found = written(log)
    said = []
    for offset, key, is_removal, transaction, committed, size in log.messages:
        last = offset if transaction is None else found.last[transaction]
        is_of_part = transaction is not None and found.sizes[transaction] < size
        if committed:
            said.append(Said(offset, last + 1, key, is_removal, is_of_part))
    return horizon(said, found, log.end)


def there_at(log: Log, position: int, whole: Log) -> set[bytes]:
    """Return the keys that there are at a position, of what is left of a log."""
    ends = {each.transaction: each.offset for each in whole.messages}
    newest: dict[bytes, Message] = {}
    for each in log.messages:
        last = each.offset if each.transaction is None else ends[each.transaction]
        if each.committed and last < position:
            newest[each.key] = each
    return {key for key, each in newest.items() if not each.is_removal}


@st.composite
def logs(draw: st.DrawFn) -> Log:
    """Return what some writers wrote, whose transactions may be mixed."""
    waiting: list[list[Message | None]] = []
    messages: list[Message] = []
    offset = 0
    keys = st.sampled_from([b"a", b"b", b"c", b"d", b"e", b"f"])
    for number in range(draw(st.integers(1, 14))):
        committed = draw(st.integers(0, 9)) > 0
        size = draw(st.integers(1, 3))
        name = f"t{number}" if draw(st.integers(0, 19)) else None
        own: list[Message | None] = [
            Message(0, draw(keys), draw(st.booleans()), name, committed or name is None, size)
            for _ in range(size if name is not None else 1)
        ]
        waiting.append([*own, None] if name is not None else own)
        while waiting and (len(waiting) > 2 or draw(st.booleans())):
            offset = _go_on(waiting, draw(st.integers(0, len(waiting) - 1)), messages, offset)
    while waiting:
        offset = _go_on(waiting, draw(st.integers(0, len(waiting) - 1)), messages, offset)
    return Log(messages, offset)


def _go_on(
    waiting: list[list[Message | None]], which: int, messages: list[Message], offset: int
) -> int:
    """Write the next message of a transaction, or its mark."""
    message = waiting[which].pop(0)
    if message is not None:
        messages.append(message._replace(offset=offset))
    if not waiting[which]:
        del waiting[which]
    return offset + 1


def compacted(log: Log, end: int, *, drops_removals: bool) -> Log:
    """Return what Kafka leaves: before an end the last message of each key, and nothing aborted."""
    last = {each.key: each.offset for each in log.messages if each.committed and each.offset < end}
    gone = {
        each.offset
        for each in log.messages
        if each.offset < end
        and (
            not each.committed
            or each.offset < last[each.key]
            or (drops_removals and each.is_removal)
        )
    }
    return log.without(*gone)


@settings(max_examples=examples(500), deadline=None)
@given(logs(), st.data())
def test_from_the_horizon_on_all_is_known_however_it_was_compacted(
    log: Log, data: st.DataObject
) -> None:
    left = log
    for _ in range(data.draw(st.integers(1, 3), "passes")):
        end = data.draw(st.integers(0, log.end), "compacted up to")
        left = compacted(left, end, drops_removals=data.draw(st.booleans(), "old"))
    found = horizon_of(left)
    assert found <= log.end
    for position in range(found, log.end + 1):
        # What is left of a transaction may end earlier than all of it did.
        assert there_at(left, position, left) == there_at(log, position, log)


@settings(max_examples=examples(200), deadline=None)
@given(logs())
def test_a_log_of_which_nothing_was_removed_is_known_as_a_whole(log: Log) -> None:
    assert horizon_of(log) == 0


def one(number: int, key: bytes, *, is_removal: bool = False) -> Message:
    """Return the message of a transaction of one, whose mark is behind it."""
    return Message(2 * number, key, is_removal, f"t{number}")


def grown(*keys: str) -> Log:
    """Return a log of transactions of one message; a minus before the key removes it."""
    return Log(
        [
            one(number, key.lstrip("-").encode(), is_removal=key.startswith("-"))
            for number, key in enumerate(keys)
        ],
        2 * len(keys),
    )


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        # Nothing is known before the last message where nothing shows where compaction ended.
        (grown("a", "-a", "b", "c").without(0), 7),
        # What has the key of an earlier one was not compacted, nor what is behind it.
        (grown("a", "-a", "b", "-b", "c").without(0), 7),
        (grown("a", "a", "b", "a", "c", "c", "d").without(0), 7),
        # A message that is missing behind that is one all the same.
        (grown("a", "b", "b", "c", "d", "e").without(0, 8), 10),
        # What was removed was there before.
        (grown("a", "b", "b", "-c", "d", "e").without(0), 7),
        # All is gone.
        (grown("a", "-a").without(0, 2), 4),
    ],
)
def test_the_horizon_is_where_compaction_can_have_come_to(log: Log, expected: int) -> None:
    assert horizon_of(log) == expected


def test_a_mark_that_is_still_to_come_does_not_hide_what_is_missing() -> None:
    # One of two transactions has not ended; of offset 2 it is not known whose it was.
    begun = [Message(0, b"a", False, "t0"), Message(1, b"b", False, "t1")]
    assert horizon_of(Log(begun, 3)) == 3
    assert horizon_of(Log(begun, 4)) == horizon_of(Log(begun, 2)) == 0
