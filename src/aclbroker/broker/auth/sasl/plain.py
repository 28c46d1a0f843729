"""The server's side of SASL PLAIN (RFC 4616) by the rules of Kafka's PlainSaslServer; no I/O."""

import hmac
from collections.abc import Mapping
from typing import Final

from aclbroker.broker.auth.sasl.mechanism import AuthenticationFailed, Identity

_SHOWN: Final = 64
"""How many characters of a name are logged: a client may send any number."""


class PlainServer:
    """One authentication exchange against a mapping of user names to passwords.

    PLAIN has a single message, so it is complete as soon as `evaluate` has returned.
    """

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self.identity: Identity | None = None

    def evaluate(self, token: bytes) -> bytes:
        """Check `[authzid] NUL authcid NUL passwd` and return the server's answer, which is empty.

        Raises AuthenticationFailed. Its text is the same for an unknown user and a wrong password,
        its reason, which is for the log, names the user.
        """
        self.identity = None
        authorization_id, username, password = _split(token)
        if not username:
            raise AuthenticationFailed("Authentication failed: username not specified")
        if not password:
            raise AuthenticationFailed(
                "Authentication failed: password not specified",
                f"PLAIN: no password of {_shown(username)}",
            )
        if not self._password_matches(username, password):
            known = username in self._users
            raise AuthenticationFailed(
                "Authentication failed: Invalid username or password",
                f"PLAIN: {'wrong password of' if known else 'no'} {_shown(username)}",
            )
        # After the password, so that the error does not tell which users exist.
        if authorization_id not in ("", username):
            raise AuthenticationFailed(
                "Authentication failed: "
                "Client requested an authorization id that is different from username",
                f"PLAIN: {_shown(username)} asked for another authorization id, "
                f"{authorization_id[:_SHOWN]!r}",
            )
        self.identity = Identity(username)
        return b""

    def _password_matches(self, username: str, password: str) -> bool:
        expected = self._users.get(username)
        # An unknown user costs a comparison, too, so that timing does not tell who exists.
        # compare_digest takes text of ASCII only, but any bytes.
        same = hmac.compare_digest((expected or "").encode(), password.encode())
        return same and expected is not None


class PlainUsers:
    """Makes the exchanges of a listener, against the ``users`` that it has by then."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self.users = users

    def __call__(self) -> PlainServer:
        """Return a new exchange."""
        return PlainServer(self.users)


def _shown(username: str) -> str:
    return f"user {username[:_SHOWN]!r}"


def _split(token: bytes) -> list[str]:
    try:
        parts = token.decode().split("\0")
    except UnicodeDecodeError:
        raise AuthenticationFailed("Invalid SASL/PLAIN response: not UTF-8") from None
    if len(parts) != 3:
        raise AuthenticationFailed(
            f"Invalid SASL/PLAIN response: expected 3 tokens, got {min(len(parts), 4)}"
        )
    return parts
