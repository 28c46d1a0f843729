"""How much memory records take together: what goes when there is no more."""

import pytest

from aclbroker.broker.memory.batch import LogError
from aclbroker.broker.memory.room import Room


class Holder:
    """Something of one byte."""

    size = 1

    def __init__(self, room: Room, *, stays: bool) -> None:
        self.room = room
        self.stays = stays
        room.take(1)
        room.add(self)

    def may_go(self) -> bool:
        return not self.stays

    def go(self) -> None:
        self.room.remove(self)


def test_what_may_go_goes_however_much_must_stay_before_it():
    room = Room(20_000, "delete")
    for _ in range(19_999):
        Holder(room, stays=True)
    Holder(room, stays=False)
    # Not all are asked at once: others would wait for whoever writes then.
    for _ in range(3):
        with pytest.raises(LogError):
            room.take(1)
    room.take(1)
    assert room.used == 20_000
    for _ in range(10):
        with pytest.raises(LogError):
            room.take(1)
