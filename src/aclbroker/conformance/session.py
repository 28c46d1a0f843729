"""Sends every case at every version in every role, and records the outlines of the answers."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Final, NamedTuple

from aclbroker.broker.client.blocking import BlockingClient, NoAnswer
from aclbroker.broker.client.errors import AuthenticationRefused, RequestRefused, TlsFailed
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import Address, ClientSettings
from aclbroker.conformance.case import Case
from aclbroker.conformance.cluster import Cluster, SuiteError
from aclbroker.conformance.corpus import corpus
from aclbroker.conformance.outline import CLOSED, NO_ANSWER, Outline, outline, without_answer
from aclbroker.conformance.recording import Recording, Step
from aclbroker.conformance.resources import TopicIds
from aclbroker.conformance.roles import ROLES, Role
from aclbroker.conformance.told import names_asked
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


class Login(NamedTuple):
    """How one user reaches a broker; ``name`` says in messages who that is."""

    addresses: Sequence[Address]
    settings: ClientSettings
    name: str


class Target(NamedTuple):
    """A broker, with the logins of its super user and of the user who plays all other roles.

    ``principal`` is the latter's, whose ACLs are replaced.
    """

    super_user: Login
    user: Login
    principal: str

    @property
    def warnings(self) -> list[str]:
        """What is odd about the settings, each once."""
        return list(
            dict.fromkeys((*self.super_user.settings.warnings, *self.user.settings.warnings))
        )


def record(
    target: Target, broker: str, progress: Callable[[str], None], keys: Collection[ApiKey]
) -> Recording:
    """Send the requests of some keys and return what the broker answered.

    ``broker`` names it in the recording. Deletes all ACLs of the cluster. ``progress`` is called
    with the name of each role as it begins. Raises `SuiteError`, `ClientError`, and `OSError` (of
    which `ConnectionClosed` and `NoAnswer` are subclasses) if the broker stops answering.
    """
    # Make sure that both users can log in before anything is changed.
    logged_in(target.user, ANSWERED_WITHIN).close()
    with logged_in(target.super_user, PREPARED_WITHIN) as session:
        cluster = Cluster(session.client)
        answers: dict[Step, Outline] = {}
        try:
            ids = cluster.prepare()
            cases = [case for case in corpus(ids) if case.key in keys]
            for role in ROLES:
                progress(role.name)
                login = target.user if role.acls else target.super_user
                if role.acls:
                    cluster.replace_acls(role.acls(target.principal))
                answers.update(_role_played(role, _Player(login, ids), cases, cluster))
        finally:
            cluster.clean_up()
        return Recording(broker, cluster.offered, answers)


def logged_in(login: Login, timeout: float) -> Session:
    """Connect and log in; ``timeout`` is in seconds, for each answer.

    Raises `SuiteError` if the broker does not let the user in, and `ClientError`.
    """
    # All brokers are asked alike, so these are not the user's to set.
    settings = login.settings._replace(request_timeout=timeout, client_id=CLIENT_ID)
    try:
        session = open_session(login.addresses, settings)
        try:
            # With TLS 1.3 a client's certificate is refused after the handshake.
            session.version(ApiKey.API_VERSIONS)
        except BaseException:
            session.close()
            raise
    except (AuthenticationRefused, RequestRefused, TlsFailed) as error:
        raise SuiteError(f"{login.name} cannot log in: {error}") from error
    return session


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

    def __init__(self, login: Login, ids: TopicIds) -> None:
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
            self._client = logged_in(self._login, ANSWERED_WITHIN).client
        try:
            return self._answer(self._client, case, version)
        except NoAnswer:
            outcome = NO_ANSWER
        except OSError:
            # Mostly `ConnectionClosed`; through TLS, what is sent then may be another error.
            outcome = CLOSED
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
