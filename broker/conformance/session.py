"""Sends every case at every version in every role, and keeps the outlines of the answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from aclbroker.broker.conformance.case import Case
from aclbroker.broker.conformance.cluster import Cluster
from aclbroker.broker.conformance.connection import Connection, ConnectionClosed, Login, NoAnswer
from aclbroker.broker.conformance.corpus import corpus
from aclbroker.broker.conformance.outline import CLOSED, NO_ANSWER, Outline, outline, without_answer
from aclbroker.broker.conformance.recording import Recording, Step
from aclbroker.broker.conformance.resources import TopicIds
from aclbroker.broker.conformance.roles import ROLES, Role
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import versions_in

UNREADABLE: Final = "unreadable"
"""The outcome of an answer that is not as the protocol says."""

ANSWERED_WITHIN: Final = 20.0
"""Seconds within which a request of the suite is answered, if it is: many, for a busy machine."""

PREPARED_WITHIN: Final = 60.0
"""Seconds within which each request that prepares the cluster is answered."""


class Target(NamedTuple):
    """A broker: how its super user logs in, and the user who plays all other roles."""

    super_user: Login
    user: Login


def record(target: Target, broker: str, progress: Callable[[str], None]) -> Recording:
    """Play the suite and return what the broker answered; `broker` names it in the recording.

    Replaces the cluster's ACLs and leaves none. `progress` is called with the name of each role as
    it begins. Raises `OSError`, `ConnectionClosed`, `NoAnswer`, `LoginError` and `SuiteError`.
    """
    # Both users log in before anything is changed.
    Connection(target.user, ANSWERED_WITHIN).close()
    connection = Connection(target.super_user, PREPARED_WITHIN)
    try:
        cluster = Cluster(connection)
        answers: dict[Step, Outline] = {}
        try:
            ids = cluster.prepare()
            for role in ROLES:
                progress(role.name)
                login = target.user if role.acls else target.super_user
                if role.acls:
                    cluster.replace_acls(role.acls(f"User:{login.username}"))
                answers.update(_role_played(role, _Client(login, ids), corpus(ids), cluster))
        finally:
            cluster.clean_up()
        return Recording(broker, cluster.offered, answers)
    finally:
        connection.close()


def _role_played(
    role: Role, client: _Client, cases: list[Case], cluster: Cluster
) -> Iterator[tuple[Step, Outline]]:
    try:
        for case in cases:
            if role.name not in case.without:
                for version in _versions(case, cluster):
                    yield Step(case.key, case.label, version, role.name), client.ask(case, version)
    finally:
        client.close()


def _versions(case: Case, cluster: Cluster) -> list[int]:
    """Return the versions of a case that the broker offers and we know, in order."""
    offered = cluster.offered.get(case.key, range(0))
    wanted = versions_in(case.versions)
    return [each for each in APIS[case.key].versions if each in offered and each in wanted]


class _Client:
    """A user's connection, opened again when it was closed."""

    def __init__(self, login: Login, ids: TopicIds) -> None:
        self._login = login
        self._ids = ids
        self._connection: Connection | None = None

    def close(self) -> None:
        """End the connection; the next request opens another."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def ask(self, case: Case, version: int) -> Outline:
        """Send a case's request; return the outline of its answer, or what came instead."""
        if self._connection is None:
            self._connection = Connection(self._login, ANSWERED_WITHIN)
        try:
            return self._answer(self._connection, case, version)
        except ConnectionClosed:
            outcome = CLOSED
        except NoAnswer:
            outcome = NO_ANSWER
        except ProtocolError:
            outcome = UNREADABLE
        self.close()
        return without_answer(outcome)

    def _answer(self, connection: Connection, case: Case, version: int) -> Outline:
        connection.send(case.key, version, case.message)
        if case.answered:
            return outline(case.key, version, connection.receive(case.key, version), self._ids)
        # The next request is answered unless the broker closed the connection over this one.
        connection.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        return without_answer(NO_ANSWER)
