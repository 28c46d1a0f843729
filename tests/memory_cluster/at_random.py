"""Clients of a cluster in memory whose requests are sent, answered and lost in random order.

A client is a generator: it yields a request, and goes on with the answer, None if that was lost.
"""

from __future__ import annotations

import select
from collections.abc import Generator
from random import Random
from typing import Any, Final, NamedTuple

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.messages import ApiKey
from aclbroker.testing import AclBroker
from tests.support.client import Client

_FAULTS: Final = {
    "Produce": "NOT_LEADER_OR_FOLLOWER",
    "AddPartitionsToTxn": "NOT_COORDINATOR",
    "EndTxn": "NOT_COORDINATOR",
    "InitProducerId": "NOT_COORDINATOR",
    "TxnOffsetCommit": "NOT_COORDINATOR",
    "Fetch": "NOT_LEADER_OR_FOLLOWER",
    "JoinGroup": "NOT_COORDINATOR",
    "SyncGroup": "NOT_COORDINATOR",
    "Heartbeat": "NOT_COORDINATOR",
    "OffsetCommit": "NOT_COORDINATOR",
    "OffsetFetch": "NOT_COORDINATOR",
    "ConsumerGroupHeartbeat": "NOT_COORDINATOR",
}
"""What may fail, and with an error after which clients try again."""

_LOST: Final = 0.04
_FAULTY: Final = 0.08
_PATIENCE: Final = 0.05
_STEP_OF_TIME: Final = 5


class Ask(NamedTuple):
    """A request that a client sends."""

    key: ApiKey
    version: int
    message: Any


Actor = Generator[Ask | None, Any, None]
"""Yields requests, and None to let others go first."""


class _Connection:
    def __init__(self, broker: AclBroker, user: str, actor: Actor, *, only_watches: bool) -> None:
        self._broker, self._user, self._actor = broker, user, actor
        self.only_watches = only_watches
        self._client: Client | None = None
        self.asked: Ask | None = None
        self.is_over = False
        self._go_on(None)

    def _go_on(self, answer: Any) -> None:
        try:
            self.asked = self._actor.send(answer)
        except StopIteration:
            self.is_over = True
            self.close()
            return
        if self.asked is not None:
            if self._client is None:
                self._client = Client(self._broker.bootstrap_servers)
                self._client.login(self._user, self._broker.password(self._user))
            self._client.request(*self.asked)

    @property
    def waits(self) -> bool:
        """Whether an answer is to come, and is not there."""
        return self.asked is not None and not select.select([self], [], [], 0)[0]

    def fileno(self) -> int:
        """Return what `select` waits for."""
        assert self._client is not None
        return self._client.socket.fileno()

    def step(self, *, loses: bool) -> None:
        """Take the answer, and send the next request; an answer may be lost on its way."""
        answer = None
        if self.asked is not None:
            assert self._client is not None
            try:
                answer = self._client.response(self.asked.key, self.asked.version)[1]
            except ConnectionClosed:
                loses = True
            if loses:
                answer = None
                self.close()
        self._go_on(answer)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


class Play:
    """Runs steps of clients in random order, with faults, until all clients are done.

    With ``moves_time``, it moves the broker's clock whenever every working client waits for an
    answer, because a group waits for a lost member until its session times out. A client that only
    watches never waits, so it does not count.
    """

    def __init__(self, broker: AclBroker, random: Random, *, moves_time: bool = False) -> None:
        self._broker, self._random, self._moves_time = broker, random, moves_time
        self._connections: list[_Connection] = []
        self.is_faulty = True

    @property
    def is_over(self) -> bool:
        """Whether all clients have come to their end."""
        return all(each.is_over for each in self._connections)

    def add(self, user: str, actor: Actor, *, only_watches: bool = False) -> None:
        """Add a client that logs in as a user."""
        connection = _Connection(self._broker, user, actor, only_watches=only_watches)
        self._connections.append(connection)

    def steps(self, count: int) -> None:
        """Let clients take so many steps, or as many as they have."""
        for _ in range(count):
            going_on = [each for each in self._connections if not each.is_over]
            if not going_on:
                return
            if self.is_faulty and self._random.random() < _FAULTY:
                self._fault()
            self._pass_time(going_on)
            if able := [each for each in going_on if not each.waits]:
                loses = self.is_faulty and self._random.random() < _LOST
                self._random.choice(able).step(loses=loses)

    def _pass_time(self, going_on: list[_Connection]) -> None:
        """Wait for an answer if every working client waits. Move the clock if none comes."""
        working = [each for each in going_on if not each.only_watches] or going_on
        if all(each.waits for each in working):
            is_answered = select.select(working, [], [], _PATIENCE)[0]
            if not is_answered and self._moves_time:
                self._broker.advance(_STEP_OF_TIME)

    def _fault(self) -> None:
        request, error = self._random.choice(list(_FAULTS.items()))
        kind = self._random.randrange(3)
        if kind == 0:
            self._broker.fail(request, error, count=self._random.choice([1, 2]))
        elif kind == 1:
            self._broker.fail(request, closes=True)
        else:
            self._broker.fail(request, delay=self._random.choice([0.001, 0.01]))

    def calm(self) -> None:
        """Let nothing fail any more."""
        self.is_faulty = False
        self._broker.forget_faults()

    def close(self) -> None:
        """Close all connections."""
        for each in self._connections:
            each.close()
