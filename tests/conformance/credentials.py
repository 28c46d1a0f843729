"""What a broker is asked about SCRAM users and delegation tokens, and what it answers, as data.

What no two brokers have alike is replaced: ids and secrets are left out, times told as distances.
"""

from __future__ import annotations

import dataclasses
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from hashlib import pbkdf2_hmac
from itertools import count
from typing import Any

from aclbroker.broker.client.blocking import ConnectionClosed
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from aclbroker.protocol.messages.create_acls import AclCreation
from aclbroker.protocol.messages.describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    UserName,
)
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from tests.support.accounts import PASSWORDS
from tests.support.client import Client
from tests.support.delegation_tokens import create, describe, expire, renew
from tests.support.process import wait_for
from tests.support.scram import ScramClient

Answers = Iterator[tuple[str, Any]]
"""What was asked, and what was answered."""

SALT = b"1q2w3e4r5t6y7u8i9o0pazsxd"
HOUR = 3_600_000
FENCE = "fence-"
SHA_256, SHA_512 = 1, 2


def up(
    user: str,
    mechanism: int = SHA_256,
    iterations: int = 4096,
    password: str = "pencil",
    salted: bytes | None = None,
) -> ScramCredentialUpsertion:
    hash_name = "sha512" if mechanism == SHA_512 else "sha256"
    if salted is None:
        salted = pbkdf2_hmac(hash_name, password.encode(), SALT, max(1, min(iterations, 16384)))
    return ScramCredentialUpsertion(user, mechanism, iterations, SALT, salted)


def down(user: str, mechanism: int = SHA_256) -> ScramCredentialDeletion:
    return ScramCredentialDeletion(user, mechanism)


class Asked:
    """One broker that is asked; it ``settles`` if it shows with a delay what was written."""

    def __init__(self, listeners: Mapping[str, str], *, settles: bool) -> None:
        self._listeners = listeners
        self._settles = settles
        self._fences = count()
        self._clients: list[Client] = []
        self.anonymous = self._connected("PLAINTEXT")

    def user(self, name: str) -> Client:
        """A connection of a user who has logged in with PLAIN."""
        client = self.stranger()
        assert client.login(name, PASSWORDS[name]).error_code == 0
        return client

    def stranger(self) -> Client:
        """A connection of somebody who has not logged in."""
        return self._connected("SASL_PLAINTEXT")

    def alter(self, *changes: Any, client: Client | None = None) -> list[Any]:
        """Change SCRAM credentials; return the results by user."""
        deletions = [each for each in changes if isinstance(each, ScramCredentialDeletion)]
        upsertions = [each for each in changes if isinstance(each, ScramCredentialUpsertion)]
        response = (client or self.anonymous).ask(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS,
            0,
            AlterUserScramCredentialsRequest(deletions, upsertions),
        )
        return sorted((each.user, each.error_code, each.error_message) for each in response.results)

    def described(self, users: list[str] | None, client: Client | None = None) -> Any:
        """Describe SCRAM credentials; return the results by user."""
        names = users if users is None else [UserName(name) for name in users]
        response = (client or self.anonymous).ask(
            ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, DescribeUserScramCredentialsRequest(names)
        )
        results = sorted(
            (
                each.user,
                each.error_code,
                each.error_message,
                sorted((info.mechanism, info.iterations) for info in each.credential_infos),
            )
            for each in response.results
        )
        return response.error_code, response.error_message, results

    def settle(self) -> None:
        """Wait until reads see all that was written.

        A broker of Kafka learns of it from the metadata log, in order. It may show the first fence
        before all of its parts know what was written before that, but not the second.
        """
        for _ in range(2 if self._settles else 0):
            name = f"{FENCE}{next(self._fences)}"
            self.alter(up(name))
            wait_for(name, partial(self._is_there, name), 20)

    def close(self) -> None:
        """Close all connections."""
        for client in self._clients:
            client.close()

    def _is_there(self, name: str) -> bool | None:
        [(_, code, *_)] = self.described([name])[2]
        return None if code else True

    def _connected(self, listener: str) -> Client:
        self._clients.append(Client(self._listeners[listener]))
        return self._clients[-1]


CHANGES: dict[str, list[Any]] = {
    "nothing": [],
    "a new user": [up("new", SHA_512, 16384)],
    "other iterations": [up("kept", iterations=8192)],
    "another mechanism": [up("kept", SHA_512)],
    "a name of odd characters": [up("\xe9,=\0\U0001d11e ")],
    "no salted password": [up("none", salted=b"")],
    "no salted password, and another": [up("none", salted=b""), up("none")],
    "a short salted password": [up("short", salted=b"x")],
    "both mechanisms of a user": [up("both"), up("both", SHA_512)],
    "a user twice": [up("twice"), up("twice")],
    "a user three times": [up("thrice"), up("thrice"), up("thrice")],
    "a user deleted and added": [down("kept"), up("kept", SHA_512)],
    "a user deleted twice": [down("kept"), down("kept")],
    "both mechanisms deleted": [down("kept"), down("kept", SHA_512)],
    "nobody deleted": [down("nobody")],
    "nobody deleted twice": [down("nobody"), down("nobody")],
    "nobody deleted and added": [down("nobody"), up("nobody")],
    "another mechanism deleted": [down("kept", SHA_512)],
    "too few iterations": [up("few", iterations=4095)],
    "too many iterations": [up("many", iterations=16385)],
    "negative iterations": [up("negative", iterations=-1)],
    "too few iterations, and enough": [up("few", iterations=1), up("few")],
    "enough iterations, and too few": [up("few"), up("few", iterations=1)],
    "unknown mechanisms": [down("a", 0), down("b", 3), up("c", -1), up("d", 127)],
    "no name": [down(""), up("", 3)],
    "some of each": [down("kept"), down("nobody"), up("new"), up("few", iterations=1), up("a", 7)],
}
"""By what is odd about them: changes that are asked for where the user `kept` has SHA-256."""


def scram_users(broker: Asked) -> Answers:
    """Each of `CHANGES` on its own, and who has credentials then."""
    for label, changes in CHANGES.items():
        broker.alter(*(down(change.name, change.mechanism) for change in changes))
        broker.alter(up("kept"))
        broker.settle()
        yield label, broker.alter(*changes)
        broker.settle()
        there = sorted({"kept", *(change.name for change in changes)})
        yield f"{label}: described", broker.described(there)


def described_users(broker: Asked) -> Answers:
    """Descriptions of users that there are and are not, and who may not ask."""
    broker.alter(up("one"), up("two", SHA_512))
    broker.alter(up("one", SHA_512, 5000))
    broker.settle()
    for label, users in (
        ("one", ["one"]),
        ("two and nobody", ["two", "nobody"]),
        ("one twice", ["one", "one", "two"]),
        ("nobody twice", ["nobody", "nobody"]),
        ("no name", [""]),
    ):
        yield label, broker.described(users)
    lists: dict[str, list[str] | None] = {"all": None, "none": []}
    for label, names in lists.items():
        code, message, results = broker.described(names)
        yield label, (code, message, [each for each in results if each[0] in ("one", "two")])
    alice = broker.user("alice")
    code, _, results = broker.described(["one", "two"], alice)
    yield "described without rights", (code, [each[:2] for each in results])
    results = broker.alter(up("x"), down("one"), up("one"), client=alice)
    yield "altered without rights", [each[:2] for each in results]


Tamper = Callable[[ScramClient, bytes], bytes]
FINALS: dict[str, Tamper] = {
    "the right proof": lambda client, first: client.final(first),
    "nothing": lambda client, first: b"",
    "no proof": lambda client, first: client.final(first).partition(b",p=")[0],
    "an empty proof": lambda client, first: client.final(first).partition(b",p=")[0] + b",p=",
    "a short proof": lambda client, first: client.final(first).partition(b",p=")[0] + b",p=AAAA",
    "another nonce": lambda client, first: client.final(first).replace(b"r=", b"r=x", 1),
    "an extension behind the proof": lambda client, first: client.final(first) + b",x=y",
    "an extension that is not signed": lambda client, first: client.final(first).replace(
        b",p=", b",x=y,p="
    ),
    "an extension that is signed": lambda client, first: client.final(first, more=",x=y"),
    "another channel": lambda client, first: client.final(first, channel="y,,"),
    "not base64": lambda client, first: client.final(first)[:-2] + b"!!",
}
"""Last messages of a login of `user`, by what they are."""

FIRSTS: dict[str, bytes] = {
    "nothing": b"",
    "no user": b"n,,r=nonce",
    "no nonce": b"n,,n=user",
    "y": b"y,,n=user,r=nonce",
    "p": b"p=tls-unique,,n=user,r=nonce",
    "an escape that is none": b"n,,n=us=er,r=nonce",
    "an authorization id": b"n,a=user,n=user,r=nonce",
    "another authorization id": b"n,a=other,n=user,r=nonce",
    "a name beyond ASCII": "n,,n=\xe9,r=nonce".encode(),
    "an unknown extension": b"n,,n=user,r=nonce,x=y",
    "an extension without a name": b"n,,n=user,r=nonce,=y",
    "a reserved attribute": b"n,,m=x,n=user,r=nonce",
    "a user that there is not": b"n,,n=nobody,r=nonce",
    "a token that there is not": b"n,,n=nothing,r=nonce,tokenauth=true",
    "a user of the other mechanism": b"n,,n=other,r=nonce",
}
"""First messages of a login."""


def scram_logins(broker: Asked) -> Answers:
    """Logins that are as they should be, and such that are not."""
    broker.alter(up("user"), up("other", SHA_512), up("a,b=c"))
    broker.settle()
    for label, first in FIRSTS.items():
        yield f"first: {label}", _answered(_begun(broker), first)
    for label, tamper in FINALS.items():
        client, scram = _begun(broker), ScramClient("SCRAM-SHA-256", "user", "pencil")
        challenge = client.authenticate(scram.first()).auth_bytes
        yield f"last: {label}", _answered(client, tamper(scram, challenge))
    for user, password in (("user", "wrong"), ("user", "pencil"), ("a,b=c", "pencil")):
        answer = broker.stranger().login_scram(user, password)
        yield f"{user}, {password}", (answer.error_code, answer.error_message)


def _begun(broker: Asked) -> Client:
    client = broker.stranger()
    client.ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("SCRAM-SHA-256"))
    return client


def _answered(client: Client, token: bytes) -> Any:
    """Return an answer without the bytes of a challenge, which are random."""
    try:
        answer = client.authenticate(token)
    except ConnectionClosed:
        return "connection closed"
    return answer.error_code, answer.error_message, bool(answer.auth_bytes)


def tokens(broker: Asked) -> Answers:
    """Tokens of alice, who is nobody special, and of others; a super user and strangers ask."""
    admin, alice, bob = (broker.user(name) for name in ("admin", "alice", "bob"))
    for version in (1, 2, 3):
        answer = create(alice, "bob", "carol", lifetime=HOUR, version=version)
        yield f"created v{version}", _without_secrets(answer)
        broker.settle()
        shown = describe(alice, version=version)
        yield f"described v{version}", _without_secrets(shown)
        yield f"removed v{version}", expire(alice, answer).error_code
        broker.settle()
    for label, lifetime in (("usual", -1), ("0", 0), ("short", 60_000), ("long", 1000 * HOUR)):
        yield f"life time: {label}", _without_secrets(create(alice, lifetime=lifetime))
    yield "renewers that are no users", _without_secrets(create(alice, "x", renewer_type="Group"))
    yield "for another, without rights", _without_secrets(create(bob, owner="alice"))
    yield "for another, by admin", _without_secrets(create(admin, owner="carol"))
    yield "for oneself by name", _without_secrets(create(bob, owner="bob"))
    yield "over plaintext", _without_secrets(create(broker.anonymous))
    yield "described over plaintext", _without_secrets(describe(broker.anonymous))
    yield from _changed_tokens(broker, alice, bob)
    yield from _seen_tokens(broker)
    yield from _token_sessions(broker, alice)


def _changed_tokens(broker: Asked, alice: Client, bob: Client) -> Answers:
    carol = broker.user("admin")
    token = create(alice, "bob", lifetime=48 * HOUR)
    broker.settle()
    yield "renewed for no time", _distance(renew(bob, token, 0))
    for label, change in (("renewed", renew), ("expired", expire)):
        for period in (HOUR, 30 * HOUR, 1000 * HOUR):
            yield f"{label}: {period}", _distance(change(bob, token, period))
        yield f"{label} by nobody concerned", _distance(change(carol, token, HOUR))
        yield f"{label} over plaintext", _distance(change(broker.anonymous, token, HOUR))
        wrong = dataclasses.replace(token, hmac=b"wrong")
        yield f"{label} of another secret", _distance(change(alice, wrong, HOUR))
    broker.settle()
    yield "renewed by default", _distance(renew(alice, token, -1))
    yield "expired at once", _distance(expire(alice, token, 0))
    broker.settle()
    # It is over once the clock, of milliseconds, shows another time.
    time.sleep(0.01)
    yield "renewed when expired", _distance(renew(alice, token, HOUR))
    yield "renewed by another when expired", _distance(renew(carol, token, HOUR))
    yield "expired when expired", _distance(expire(alice, token, HOUR))
    yield "removed by another", _distance(expire(carol, token, -1))
    yield "removed when expired", _distance(expire(alice, token, -1))
    broker.settle()
    yield "removed twice", _distance(expire(alice, token, -1))
    yield "renewed when removed", _distance(renew(alice, token, -1))


def _seen_tokens(broker: Asked) -> Answers:
    """Who sees which tokens; the owners are told in the place of the tokens' ids."""
    admin, alice, bob = (broker.user(name) for name in ("admin", "alice", "bob"))
    _remove_tokens(broker, admin)
    create(alice, "bob")
    bobs = create(bob)
    create(admin, owner="dave")
    broker.settle()
    questions: tuple[list[str] | None, ...] = (None, [], ["alice"], ["bob"], ["nobody", "dave"])
    for name, client in (("admin", admin), ("alice", alice), ("bob", bob)):
        for owners in questions:
            yield f"{name} sees tokens of {owners}", _owners(describe(client, owners))
    grants = (
        ("to a token", AclCreation(6, bobs.token_id, 3, "User:alice", "*", 8, 3)),
        ("to an owner", AclCreation(7, "User:dave", 3, "User:alice", "*", 14, 3)),
    )
    for label, grant in grants:
        broker.anonymous.create(grant)
        broker.settle()
        yield f"alice sees tokens with a right {label}", _owners(describe(alice))
    create_tokens = AclCreation(7, "User:carol", 3, "User:alice", "*", 13, 3)
    broker.anonymous.create(create_tokens)
    broker.settle()
    yield "for another, with the right", _without_secrets(create(alice, owner="carol"))


def _remove_tokens(broker: Asked, admin: Client) -> None:
    """Remove what owners who can log in have made so far."""
    for token in describe(admin).tokens:
        if token.principal_name in PASSWORDS:
            expire(broker.user(token.principal_name), token)
    broker.settle()


def _token_sessions(broker: Asked, alice: Client) -> Answers:
    token = create(alice)
    broker.settle()
    client = broker.stranger()
    password = b64encode(token.hmac).decode()
    answer = client.login_scram(token.token_id, password, "SCRAM-SHA-512", ",tokenauth=true")
    hours = round(answer.session_lifetime_ms / HOUR)
    yield "logged in with a token", (answer.error_code, answer.error_message, hours)
    yield "created with a token", _without_secrets(create(client))
    yield "renewed with a token", _distance(renew(client, token))
    yield "expired with a token", _distance(expire(client, token))
    yield "described with a token", _without_secrets(describe(client))
    expired = create(alice)
    broker.settle()
    expire(alice, expired, 0)
    broker.settle()
    late = broker.stranger().login_scram(
        expired.token_id, b64encode(expired.hmac).decode(), "SCRAM-SHA-256", ",tokenauth=true"
    )
    yield "logged in with an expired token", (late.error_code, late.session_lifetime_ms)
    wrong = broker.stranger().login_scram(token.token_id, "x", "SCRAM-SHA-256", ",tokenauth=true")
    yield "logged in with a wrong secret", (wrong.error_code, wrong.error_message)
    bare = broker.stranger().login_scram("alice", password, "SCRAM-SHA-256", ",tokenauth=true")
    yield "logged in with a user's name as a token", (bare.error_code, bare.error_message)


def disabled_tokens(broker: Asked) -> Answers:
    """What a broker without a secret key says."""
    alice = broker.user("alice")
    for version in (1, 2, 3):
        yield f"created v{version}", _without_secrets(create(alice, version=version))
        yield f"described v{version}", _without_secrets(describe(alice, version=version))
    answer = create(alice)
    yield "renewers that are no users", _without_secrets(create(alice, "x", renewer_type="Group"))
    yield "for another, without rights", _without_secrets(create(alice, owner="bob"))
    yield "renewed", _distance(renew(alice, answer))
    yield "expired", _distance(expire(alice, answer))
    yield "over plaintext", _without_secrets(create(broker.anonymous))


def _owners(answer: Any) -> Any:
    return answer.error_code, sorted(token.principal_name for token in answer.tokens)


def _distance(answer: Any) -> Any:
    """Return an answer with its time as whole minutes from now, unless it is none."""
    timestamp = answer.expiry_timestamp_ms
    if timestamp > 0:
        timestamp = f"in {round((timestamp / 1000 - time.time()) / 60)} minutes"
    return answer.error_code, timestamp


def _without_secrets(answer: Any) -> Any:
    """Return an answer with times told from when the token was made, and without what is random."""
    if hasattr(answer, "tokens"):
        return answer.error_code, [_without_secrets(token) for token in answer.tokens]
    fields = dataclasses.asdict(answer)
    made_at = next(value for name, value in fields.items() if name.startswith("issue_timestamp"))
    for name, value in fields.items():
        if name.startswith(("expiry_timestamp", "max_timestamp")):
            fields[name] = value - made_at
        elif name.startswith("issue_timestamp"):
            fields[name] = min(value, 1)
    return fields | {name: len(fields[name]) for name in ("token_id", "hmac")}
