"""The SCRAM credentials of users, in memory and in a store, changed by the rules of KIP-554."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.broker.auth.sasl.mechanism import Identity
from aclbroker.broker.auth.sasl.scram import ScramLogin
from aclbroker.broker.auth.sasl.scram_credentials import (
    MAX_ITERATIONS,
    MIN_ITERATIONS,
    ScramCredential,
    ScramMechanism,
    credential_from_json,
    credential_of_salted_password,
    new_salt,
    salted_password,
)
from aclbroker.broker.auth.sasl.scram_decoys import Decoys
from aclbroker.broker.credentials.changes import Changes, HasReached, NotStored
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)

log = get_logger()

KIND: Final = "scram"
_BY_CODE: Final = {mechanism.value: mechanism for mechanism in ScramMechanism}
_BY_NAME: Final = {mechanism.mechanism_name: mechanism for mechanism in ScramMechanism}


class Outcome(NamedTuple):
    """The result of the change of one user."""

    error_code: ErrorCode = ErrorCode.NONE
    error_message: str | None = None


_DONE: Final = Outcome()
_TWICE: Final = Outcome(
    ErrorCode.DUPLICATE_RESOURCE, "A user credential cannot be altered twice in the same request"
)
_MISSING: Final = Outcome(
    ErrorCode.RESOURCE_NOT_FOUND, "Attempt to delete a user credential that does not exist"
)
_NAMELESS: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Username must not be empty")
_UNKNOWN_MECHANISM: Final = Outcome(ErrorCode.UNSUPPORTED_SASL_MECHANISM, "Unknown SCRAM mechanism")
_TOO_FEW: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too few iterations")
_TOO_MANY: Final = Outcome(ErrorCode.UNACCEPTABLE_CREDENTIAL, "Too many iterations")
_NO_KEY: Final = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR)

Change = ScramCredentialDeletion | ScramCredentialUpsertion
Credentials = dict[ScramMechanism, dict[str, ScramCredential]]


class ScramUsers:
    """The users who may log in with SCRAM; `load` makes it.

    ``secret`` is what decoys are derived from.
    """

    def __init__(self, changes: Changes, credentials: Credentials, secret: bytes) -> None:
        self._changes = changes
        self._credentials = credentials
        self._decoys = {mechanism: Decoys(mechanism, secret) for mechanism in ScramMechanism}
        for mechanism, users in credentials.items():
            self._decoys[mechanism].added(users.values())

    def look_up(self, mechanism: ScramMechanism, user: str) -> ScramLogin:
        """Return what a login is checked against; a decoy if there is no such user."""
        # The decoy is made in any case, so that timing does not tell whether the user exists.
        decoy = self._decoys[mechanism].of(user)
        credential = self._credentials[mechanism].get(user)
        if credential is None:
            return ScramLogin(decoy, None)
        return ScramLogin(credential, Identity(user))

    def users(self) -> list[str]:
        """Return the name of each user with a credential, once."""
        return list(dict.fromkeys(user for users in self._credentials.values() for user in users))

    def iterations(self, user: str) -> dict[ScramMechanism, int]:
        """Return the iterations of a user's credentials by mechanism; empty if there are none."""
        return {
            mechanism: users[user].iterations
            for mechanism, users in self._credentials.items()
            if user in users
        }

    async def alter(
        self,
        deletions: Sequence[ScramCredentialDeletion],
        upsertions: Sequence[ScramCredentialUpsertion],
        origin: Origin | None = None,
    ) -> dict[str, Outcome]:
        """Make all changes that are valid, or none if that fails; return the result of each user.

        The rules are those of Kafka's ScramControlManager: a user may be named once, whatever the
        mechanism. ``origin`` is who asks; without it, the broker itself.
        """
        planned: Sequence[Change] = (*deletions, *upsertions)
        outcomes: dict[str, Outcome] = {}
        try:
            async with self._changes.one(origin):
                outcomes, planned = self._planned(planned)
                await self._apply(planned)
        except NotStored as error:
            failure = Outcome(ErrorCode.UNKNOWN_SERVER_ERROR, str(error))
            outcomes |= dict.fromkeys((change.name for change in planned), failure)
        return outcomes

    def followed_by(self, has_reached: HasReached) -> None:
        """Leave it to who follows a shared store to `take` changes, one's own included."""
        self._changes.followed_by(has_reached)

    def take(self, records: Mapping[str, str | None], is_all: bool) -> None:
        """Take what the store has now: new values of records, None for those that are gone.

        If these are all there are, others are gone as well. A value that is no credential is as
        if it were not there, so that nobody logs in by it, and is logged.
        """
        known = {
            _key(mechanism, user)
            for mechanism in ScramMechanism
            for user in self._credentials[mechanism]
        }
        gone = dict.fromkeys(known - records.keys()) if is_all else {}
        for name, value in {**gone, **records}.items():
            mechanism, _, user = name.partition(":")
            if mechanism in _BY_NAME:
                self._show(_BY_NAME[mechanism], user, _read(name, value))

    async def close(self) -> None:
        """Finish the changes that were asked for; refuse later ones."""
        await self._changes.close()

    def _planned(self, changes: Iterable[Change]) -> tuple[dict[str, Outcome], list[Change]]:
        outcomes: dict[str, Outcome] = {}
        planned: dict[str, Change] = {}
        for change in changes:
            name = change.name
            if name in planned:
                outcomes[name] = _TWICE
                del planned[name]
            elif name not in outcomes:
                outcomes[name] = self._outcome(change)
                if outcomes[name] is _DONE:
                    planned[name] = change
        for name, change in list(planned.items()):
            # Kafka checks this last, so that a second change of the same user is found first.
            if isinstance(change, ScramCredentialUpsertion) and not change.salted_password:
                outcomes[name] = _NO_KEY
                del planned[name]
        return outcomes, list(planned.values())

    def _outcome(self, change: Change) -> Outcome:
        """Return the result of a change that is the only one of its user."""
        if not change.name:
            return _NAMELESS
        mechanism = _BY_CODE.get(change.mechanism)
        if mechanism is None:
            return _UNKNOWN_MECHANISM
        if isinstance(change, ScramCredentialDeletion):
            return _DONE if change.name in self._credentials[mechanism] else _MISSING
        if change.iterations < MIN_ITERATIONS:
            return _TOO_FEW
        return _DONE if change.iterations <= MAX_ITERATIONS else _TOO_MANY

    async def _apply(self, changes: Iterable[Change]) -> None:
        made = [
            (_BY_CODE[change.mechanism], change.name, _credential(change)) for change in changes
        ]
        put = {_key(mechanism, user): new.to_json() for mechanism, user, new in made if new}
        removed = [_key(mechanism, user) for mechanism, user, new in made if new is None]
        await self._changes.apply(put, removed)
        if not self._changes.is_followed:
            for mechanism, user, new in made:
                self._show(mechanism, user, new)

    def _show(self, mechanism: ScramMechanism, user: str, new: ScramCredential | None) -> None:
        users, decoys = self._credentials[mechanism], self._decoys[mechanism]
        if user in users:
            decoys.removed([users.pop(user)])
        if new is not None:
            users[user] = new
            decoys.added([new])


async def load_users(store: AclStore, secret: bytes, lines: LimitedLog | None = None) -> ScramUsers:
    """Return the users that an open store has; `Changes` takes ``lines``. Raises `StoreError`."""
    credentials: Credentials = {mechanism: {} for mechanism in ScramMechanism}
    for name, value in (await store.load_records(KIND)).items():
        mechanism, _, user = name.partition(":")
        try:
            credentials[_BY_NAME[mechanism]][user] = credential_from_json(value)
        except (KeyError, ValueError):
            text = (
                f"the ACL store holds a record of the kind {KIND} that is no credential: {name!r}"
            )
            raise StoreError(f"{text}; delete it, or restore the store from a backup") from None
    return ScramUsers(Changes(store, KIND, lines), credentials, secret)


def upsertion_of(
    user: str, password: str, mechanism: str, iterations: int
) -> ScramCredentialUpsertion:
    """Return the change that gives a user a password, as Kafka's tools make it."""
    found = ScramMechanism[mechanism.replace("-", "_")]
    salt = new_salt()
    salted = salted_password(found, password, salt, iterations)
    return ScramCredentialUpsertion(user, found.value, iterations, salt, salted)


def _credential(change: Change) -> ScramCredential | None:
    if isinstance(change, ScramCredentialDeletion):
        return None
    return credential_of_salted_password(
        _BY_CODE[change.mechanism], change.salted_password, change.salt, change.iterations
    )


def _read(name: str, value: str | None) -> ScramCredential | None:
    try:
        return None if value is None else credential_from_json(value)
    except ValueError:
        log.error("record is no credential", kind=KIND, name=name)
        return None


def _key(mechanism: ScramMechanism, user: str) -> str:
    return f"{mechanism.mechanism_name}:{user}"
