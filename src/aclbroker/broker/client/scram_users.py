"""Describes, makes and removes the SCRAM users of a cluster (KIP-554)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from aclbroker.broker.auth.sasl.scram_credentials import (
    ScramMechanism,
    new_salt,
    salted_password,
)
from aclbroker.broker.client.errors import RequestRefused
from aclbroker.broker.client.session import Session
from aclbroker.protocol.messages import ApiKey


class ScramUser(NamedTuple):
    """A user, and the iterations of each mechanism that it may log in with."""

    name: str
    mechanisms: dict[ScramMechanism, int]


def describe_users(session: Session, names: Sequence[str] = ()) -> list[ScramUser]:
    """Return the users of these names, all if there is none, in the order of their names.

    Raises `RequestRefused` of the code RESOURCE_NOT_FOUND for a name that is no user's.
    """
    from aclbroker.protocol.messages.describe_user_scram_credentials import (
        DescribeUserScramCredentialsRequest,
        UserName,
    )

    # An empty list is all users. So is null, but Kafka 4.3.0 never answers that to who may not.
    request = DescribeUserScramCredentialsRequest([UserName(name) for name in names])
    answer = session.ask(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, request)
    _check(answer)
    for each in answer.results:
        _check(each)
    return sorted(map(_user, answer.results), key=lambda user: user.name)


def add_user(
    session: Session, name: str, password: str, mechanism: ScramMechanism, iterations: int
) -> None:
    """Make a user, or change its password; only a salted hash of that is sent."""
    from aclbroker.protocol.messages.alter_user_scram_credentials import (
        ScramCredentialUpsertion,
    )

    salt = new_salt()
    salted = salted_password(mechanism, password, salt, iterations)
    _alter(session, [], [ScramCredentialUpsertion(name, mechanism.value, iterations, salt, salted)])


def remove_user(session: Session, name: str, mechanisms: Sequence[ScramMechanism] = ()) -> None:
    """Remove a user's credentials of these mechanisms, all that it has if there is none.

    Each takes a request: one may name a user only once.
    """
    from aclbroker.protocol.messages.alter_user_scram_credentials import ScramCredentialDeletion

    if not mechanisms:
        [user] = describe_users(session, [name])
        mechanisms = list(user.mechanisms)
    for each in mechanisms:
        _alter(session, [ScramCredentialDeletion(name, each.value)], [])


def _alter(session: Session, deletions: Sequence[Any], upsertions: Sequence[Any]) -> None:
    from aclbroker.protocol.messages.alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
    )

    request = AlterUserScramCredentialsRequest(deletions, upsertions)
    for result in session.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, request).results:
        _check(result)


def _check(answer: Any) -> None:
    if answer.error_code:
        raise RequestRefused(answer.error_code, answer.error_message)


def _user(result: Any) -> ScramUser:
    # A mechanism that this program does not know is left out.
    iterations = {info.mechanism: info.iterations for info in result.credential_infos}
    known = {each: iterations[each.value] for each in ScramMechanism if each.value in iterations}
    return ScramUser(result.user, known)
