"""The table of fetch sessions (KIP-227), which is bounded."""

import pytest

from aclbroker.broker.memory import sessions
from aclbroker.broker.memory.sessions import EVICTION_MS, FetchedPartition, FetchSessions, Key


def asked(*indices: int, topic: str = "t") -> dict[Key, FetchedPartition]:
    made = [FetchedPartition(topic, bytes(16), index) for index in indices]
    return {each.key: each for each in made}


def test_a_session_is_found_by_its_owner_alone():
    table = FetchSessions()
    session = table.open("User:a", asked(0), 0, by_ids=False)
    assert session is not None
    assert table.get(session.session_id, "User:a") is session
    assert table.get(session.session_id, "User:b") is None
    assert session.session_id in table
    table.close(session)
    table.close(session)
    assert session.session_id not in table
    assert len(table) == 0


def test_a_session_changes_by_what_is_named_and_forgotten():
    table = FetchSessions()
    session = table.open("User:a", asked(0, 1), 0, by_ids=False)
    assert session is not None
    again = asked(1, 2)
    again["t", 1].fetch_offset = 7
    assert table.change(session, again.values(), [("t", 0), ("none", 3)])
    assert [(key, each.fetch_offset) for key, each in session.partitions.items()] == [
        (("t", 1), 7),
        (("t", 2), 0),
    ]
    session.had_records(("t", 1))
    session.had_records(("none", 1))
    assert list(session.partitions) == [("t", 2), ("t", 1)]


def test_a_session_of_nothing_takes_partitions_later():
    session = (table := FetchSessions()).open("User:a", {}, 0, by_ids=False)
    assert session is not None
    assert table.change(session, asked(0).values(), [])
    assert list(session.partitions) == [("t", 0)]


def test_epochs_begin_anew_after_the_largest():
    table = FetchSessions()
    session = table.open("User:a", asked(0), 0, by_ids=False)
    assert session is not None
    session.epoch = (1 << 31) - 1
    table.used(session, 0)
    assert session.epoch == 1


@pytest.fixture
def full(monkeypatch: pytest.MonkeyPatch) -> FetchSessions:
    monkeypatch.setattr(sessions, "SLOTS", 2)
    table = FetchSessions()
    for size in (2, 3):
        assert table.open("User:a", asked(*range(size)), 0, by_ids=False) is not None
    return table


def test_a_full_table_takes_no_session_in_place_of_young_ones(full: FetchSessions):
    assert full.open("User:b", asked(*range(9)), EVICTION_MS - 1, by_ids=False) is None


def test_an_old_session_gives_way_to_a_larger_one_and_an_unused_one_to_any(full: FetchSessions):
    assert full.open("User:b", asked(0, 1), EVICTION_MS, by_ids=False) is None
    made = full.open("User:b", asked(0, 1, 2), EVICTION_MS, by_ids=False)
    assert made is not None
    assert full.open("User:b", asked(0), EVICTION_MS + 1, by_ids=False) is not None
    assert made.session_id in full
    assert len(full) == 2


def test_what_is_used_is_not_the_one_that_was_used_for_longest_ago(full: FetchSessions):
    first = next(iter(full._by_id.values()))
    full.used(first, EVICTION_MS + 1)
    assert full.open("User:b", asked(0), EVICTION_MS + 1, by_ids=False) is not None
    assert first.session_id in full


def test_all_sessions_together_have_a_bound(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sessions, "MOST_PARTITIONS", 3)
    table = FetchSessions()
    session = table.open("User:a", asked(0, 1), 0, by_ids=False)
    assert session is not None
    assert table.open("User:b", asked(0, 1), 0, by_ids=False) is None
    assert table.change(session, asked(2).values(), ())
    assert not table.change(session, asked(3).values(), ())
    assert session.session_id not in table
    assert table.open("User:b", asked(0, 1), 0, by_ids=False) is not None


def test_an_id_is_drawn_until_it_is_free(monkeypatch: pytest.MonkeyPatch):
    drawn = iter([4, 4, 5])
    monkeypatch.setattr(sessions, "randbelow", lambda _limit: next(drawn))
    table = FetchSessions()
    made = [table.open("User:a", asked(0), 0, by_ids=False) for _ in range(2)]
    assert [each and each.session_id for each in made] == [5, 6]
