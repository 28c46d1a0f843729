"""Sends every case at every version in every role, and records the outlines of the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from typing import Final, NamedTuple

from aclbroker.broker.client.blocking import BlockingClient, ConnectionClosed, NoAnswer
from aclbroker.broker.client.command_config import ClientLogin, logged_in
from aclbroker.broker.conformance.case import Case
from aclbroker.broker.conformance.cluster import Cluster
from aclbroker.broker.conformance.corpus import corpus
from aclbroker.broker.conformance.outline import CLOSED, NO_ANSWER, Outline, outline, without_answer
from aclbroker.broker.conformance.recording import Recording, Step
from aclbroker.broker.conformance.resources import TopicIds
from aclbroker.broker.conformance.roles import ROLES, Role
from aclbroker.broker.conformance.told import names_asked
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import versions_in

UNREADABLE: Final = "unreadable"
"""The outcome of a step whose answer is malformed."""

CLIENT_ID: Final = "conformance"

ANSWERED_WITHIN: Final = 20.0
"""Seconds to wait for the answer to a request; many, since the machine may be busy."""

PREPARED_WITHIN: Final = 60.0
"""Seconds to wait for the answer to each request that prepares the cluster."""


class Target(NamedTuple):
    """A broker, with the logins of its super user and of the user who plays all other roles."""

    super_user: ClientLogin
    user: ClientLogin


def record(
    target: Target, broker: str, progress: Callable[[str], None], keys: Collection[ApiKey]
) -> Recording:
    """Send the requests of some keys and return what the broker answered.

    ``broker`` names it in the recording. Deletes all ACLs of the cluster. ``progress`` is called
    with the name of each role as it begins. Raises `OSError` (of which `ConnectionClosed` and
    `NoAnswer` are subclasses), `LoginError` and `SuiteError`.
    """
    # Make sure that both users can log in before anything is changed.
    logged_in(target.user, ANSWERED_WITHIN, CLIENT_ID).close()
    with logged_in(target.super_user, PREPARED_WITHIN, CLIENT_ID) as client:
        cluster = Cluster(client)
        answers: dict[Step, Outline] = {}
        try:
            ids = cluster.prepare()
            cases = [case for case in corpus(ids) if case.key in keys]
            for role in ROLES:
                progress(role.name)
                login = target.user if role.acls else target.super_user
                if role.acls:
                    cluster.replace_acls(role.acls(f"User:{login.username}"))
                answers.update(_role_played(role, _Player(login, ids), cases, cluster))
        finally:
            cluster.clean_up()
        return Recording(broker, cluster.offered, answers)


def _role_played(
    role: Role, player: _Player, cases: list[Case], cluster: Cluster
) -> Iterator[tuple[Step, Outline]]:
    try:
        for case in cases:
            if role.name not in case.without:
                for version in _versions(case, cluster):
                    yield Step(case.key, case.label, version, role.name), player.ask(case, version)
    finally:
        player.close()


def _versions(case: Case, cluster: Cluster) -> list[int]:
    """Return the versions of a case that both the broker and this program know, in order."""
    offered = cluster.offered.get(case.key, range(0))
    wanted = versions_in(case.versions)
    return [
        each
        for each in APIS[case.key].versions
        if each in wanted and (each in offered or not case.advertised)
    ]


class _Player:
    """The connection of a user, which is opened again after it was closed."""

    def __init__(self, login: ClientLogin, ids: TopicIds) -> None:
        self._login = login
        self._ids = ids
        self._client: BlockingClient | None = None

    def close(self) -> None:
        """Close the connection; the next request opens another."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def ask(self, case: Case, version: int) -> Outline:
        """Send the request of a case; return the outline of its answer, or of what came instead."""
        if self._client is None:
            self._client = logged_in(self._login, ANSWERED_WITHIN, CLIENT_ID)
        try:
            return self._answer(self._client, case, version)
        except ConnectionClosed:
            outcome = CLOSED
        except NoAnswer:
            outcome = NO_ANSWER
        except ProtocolError:
            outcome = UNREADABLE
        self.close()
        return without_answer(outcome)

    def _answer(self, client: BlockingClient, case: Case, version: int) -> Outline:
        if case.answered:
            answer = client.ask(case.key, version, case.message)
            asked = names_asked(case.key, version, case.message)
            return outline(case.key, version, answer, self._ids, asked, case.codes)
        client.request(case.key, version, case.message)
        # A request without an answer may have closed the connection; then this one fails.
        client.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        return without_answer(NO_ANSWER)
