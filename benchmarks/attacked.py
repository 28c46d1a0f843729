"""The brokers that are attacked: what each set-up tells ours and Kafka alike, and its files."""

from __future__ import annotations

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from aclbroker.protocol.messages.create_acls import AclCreation
from benchmarks import bystander, requests
from benchmarks.intruder import HOSTILE_NAME, IDENTITY
from benchmarks.rows import KAFKA, OURS
from benchmarks.servers import LISTENERS, TOPICS, Server, kafka, ours
from benchmarks.unkind import WIDE_PARTITIONS, WIDE_TOPIC
from tests.support import access_tokens
from tests.support.certificates import Authority
from tests.support.kafka import free_ports
from tests.support.tls import pem_stores

RULES: Final = "RULE:^CN=(.*?),OU=(.*?),O=(.*?),L=(.*?),ST=(.*?),C=(.*?)$/$1@$2/L"
"""What makes a principal of a certificate's name, as in Kafka's documentation."""

ACLS: Final = 200_000
_ACLS_A_REQUEST: Final = 1_000

_SOFT_LIMIT: Final = "ulimit -Sn 1024 && exec"
"""What gives a process the limit of descriptors that most systems have; it may raise it."""

_HEALTHY_NAME: Final = "CN=bob,OU=a,O=a,L=a,ST=a,C=DE"

_PREFIX: Final = "listener.name.sasl_plaintext."
_TOKENS: Final = {
    "sasl.enabled.mechanisms": "PLAIN,OAUTHBEARER",
    f"{_PREFIX}oauthbearer.sasl.jaas.config": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required;"
    ),
    f"{_PREFIX}oauthbearer.sasl.server.callback.handler.class": (
        "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
    ),
    f"{_PREFIX}sasl.oauthbearer.expected.audience": access_tokens.AUDIENCE,
}
_AUDIT_FILE: Final = "audit.log"


class SetUp(NamedTuple):
    """How the brokers of some rows are set up.

    ``settings`` are those of both sides, ``of_ours`` this product's own, ``flags`` those of Kafka's
    JVM. With ``files`` there are certificates and tokens. If ``is_unread`` nobody reads the log.
    """

    settings: Mapping[str, str] = {}
    of_ours: Mapping[str, str] = {"aclbroker.audit.level": "off"}
    flags: tuple[str, ...] = ()
    topics: Mapping[str, int] = TOPICS
    has_files: bool = False
    is_unread: bool = False


_DENIALS_LOGGED: Final = ("-Dorg.slf4j.simpleLogger.log.kafka.authorizer.logger=info",)

OPEN: Final = SetUp(topics={**TOPICS, WIDE_TOPIC: WIDE_PARTITIONS}, has_files=True)
"""All doors are open: passwords, tokens, certificates, and the port of the figures."""

AUDITED: Final = SetUp(of_ours={"aclbroker.audit.file": _AUDIT_FILE}, flags=_DENIALS_LOGGED)
"""What is denied is recorded in a file."""

MANY_ACLS: Final = SetUp()
"""For as many ACLs as `ACLS`."""

FEW_PLACES: Final = SetUp({"max.connections": "200"})

UNREAD_LOG: Final = SetUp(of_ours={}, flags=_DENIALS_LOGGED, is_unread=True)
"""What is denied goes to a log that nobody reads."""


class _Unread(Server):
    """A broker whose output goes into a pipe of which nothing is ever read."""

    def _spawn(self) -> None:
        process = self.process
        _close_output(self)
        process.process = subprocess.Popen(
            process.command,
            cwd=process.directory,
            env={**os.environ, **process.environment},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )


@contextlib.contextmanager
def attacked(set_up: SetUp, peers: tuple[str, ...]) -> Iterator[dict[str, Server]]:
    """Yield ours, and Kafka if it is among the peers, by their names, not started.

    What still runs at the end is killed.
    """
    made: dict[str, Server] = {}
    with tempfile.TemporaryDirectory(prefix="attacked-") as name:
        try:
            for side in (OURS, KAFKA):
                if side == OURS or side in peers:
                    (Path(name) / side).mkdir()
                    made[side] = _made(set_up, side, Path(name) / side)
            yield made
        finally:
            for server in made.values():
                if server.is_running:
                    server.process.kill()
                _close_output(server)


def _close_output(server: Server) -> None:
    output = server.process.process and server.process.process.stdout
    if output:
        output.close()


def _made(set_up: SetUp, side: str, directory: Path) -> Server:
    settings, flags, listeners = dict(set_up.settings), set_up.flags, LISTENERS
    if set_up.has_files:
        settings |= door_settings(directory)
        url = settings[f"{_PREFIX}sasl.oauthbearer.jwks.endpoint.url"]
        flags += (f"-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}",)
        listeners += ("SSL",)
    if side == KAFKA:
        server = kafka(directory, flags, settings, listeners, set_up.topics)
        server.records = server.process.log
    else:
        figures, api = (f"127.0.0.1:{port}" for port in free_ports(2))
        ports = {
            "aclbroker.metrics.address": figures,
            "confluent.metadata.server.listeners": f"http://{api}",
        }
        server = ours(directory, {**settings, **set_up.of_ours, **ports}, listeners, set_up.topics)
        server.listeners = {**server.listeners, bystander.HTTP: figures, bystander.API: api}
        server.records = directory / _AUDIT_FILE
    server.process.command[:0] = ["/bin/sh", "-c", f'{_SOFT_LIMIT} "$@"', "sh"]
    if set_up.is_unread:
        server = _Unread(server.process, server.address, server.listeners)
    return server


def door_settings(directory: Path) -> dict[str, str]:
    """Return settings of either side for tokens and certificates, whose files are in a directory.

    So are the keys and the certificates of an intruder and of a healthy client.
    """
    authority = Authority()
    for file, name in ((IDENTITY, HOSTILE_NAME), (bystander.IDENTITY, _HEALTHY_NAME)):
        (directory / file).write_text(authority.issue(name, names=()).pem())
    keys = directory / "jwks.json"
    keys.write_text(access_tokens.jwks(access_tokens.rsa_key("attacked")))
    return {
        **pem_stores(directory, authority.issue(), authority),
        "ssl.client.auth": "required",
        "ssl.principal.mapping.rules": RULES,
        **_TOKENS,
        f"{_PREFIX}sasl.oauthbearer.jwks.endpoint.url": keys.as_uri(),
    }


def fill(server: Server, count: int = ACLS) -> None:
    """Give alice so many ACLs: she may write to topics, all of which a denied prefix takes back."""
    write, allow, deny, literal, prefixed = 4, 3, 2, 3, 4
    creations = [AclCreation(2, "taken", prefixed, "User:alice", "*", write, deny)]
    creations += [
        AclCreation(2, f"taken-{number}", literal, "User:alice", "*", write, allow)
        for number in range(count - 1)
    ]
    with server.connect() as admin:
        for first in range(0, count, _ACLS_A_REQUEST):
            admin.answer(requests.create(*creations[first : first + _ACLS_A_REQUEST]))
