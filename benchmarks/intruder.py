"""Attacks a broker until it is ended: `python -m benchmarks.intruder KIND HOST:PORT`.

KIND is one of `KINDS`. What an attack needs besides, such as a certificate, is in the directory
that a third argument names.
"""

from __future__ import annotations

import asyncio
import json
import ssl
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import suppress
from itertools import count
from pathlib import Path
from random import Random
from typing import Final, NamedTuple

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.init_producer_id import InitProducerIdRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from benchmarks.bystander import API, HTTP, SASL, TLS, shows
from benchmarks.exchange import login_frames
from benchmarks.http_attacks import ANY_CLUSTER, HTTP_ATTACKS, WHICH_CLUSTER, HttpAttack
from benchmarks.unkind import UNKIND, Unkind
from tests.support.client import request_frame

IDENTITY: Final = "intruder.pem"
"""The file with the key and the certificate that the intruder shows."""

HOSTILE_NAME: Final = (
    "CN=a" + ",OU=a" * 40 + ",O=a" * 49 + ",L=a" * 49 + ",ST=a" * 39 + ",DC=a" * 30
)
"""A certificate's name that rules with a `.*?` for each part can divide in very many ways."""

LONG_NAME: Final = b"n,a=" + b"x" * (512 * 1024 - 256)
"""A first message of OAUTHBEARER that does not end where it should."""

DENIED_AT_ONCE: Final = 500

_WRONG: Final = request_frame(
    ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")
) + request_frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0admin\0wrong"))
_OAUTHBEARER: Final = request_frame(
    ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("OAUTHBEARER")
) + request_frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(LONG_NAME))
_SMALLEST: Final = request_frame(ApiKey.API_VERSIONS, 3, ApiVersionsRequest())
_HALF_A_REQUEST: Final = b"GET /metrics HTTP/1.1\r\nHost: x"

_CHANGING: Final = AclCreation(2, "changing", 3, "User:alice", "*", 3, 3)
_CHANGES: Final = (
    request_frame(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([_CHANGING])),
    request_frame(
        ApiKey.DELETE_ACLS,
        3,
        DeleteAclsRequest([DeleteAclsFilter(2, "changing", 3, None, None, 1, 1)]),
    ),
)
_PRODUCER_ID: Final = request_frame(ApiKey.INIT_PRODUCER_ID, 4, InitProducerIdRequest(None, 1000))


class Streams(NamedTuple):
    """An open connection, and the address of the broker for another one."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    address: str


class Bounds(NamedTuple):
    """How much of an attack there is: by default all of it, without end.

    ``times`` is how often each connection is made, and each request sent on it. Of connections and
    of entries of a request there are as many as the attack has, but no more than told here.
    """

    times: int | None = None
    connections: int | None = None
    entries: int | None = None

    def rounds(self) -> Iterator[int]:
        """Count the times."""
        return count() if self.times is None else iter(range(self.times))


UNBOUNDED: Final = Bounds()

Seen = Counter[str]
"""What became of the attack: how many requests were ``answered`` and connections ``closed``."""

Attack = Callable[[Streams, Bounds, Seen], Awaitable[None]]


class Kind(NamedTuple):
    """An attack: what it is, what it does on a connection, and on how many at a time.

    ``listener`` is where it comes in: one of a server's listeners. ``once`` is True if it ends by
    itself. ``holds`` is True if a connection stays as long as the broker lets it.
    """

    title: str
    attack: Attack
    connections: int
    listener: str = SASL
    once: bool = False
    holds: bool = False


async def _logins(streams: Streams, _: Bounds, seen: Seen) -> None:
    streams.writer.write(_WRONG)
    await _until_closed(streams, seen)


async def _garbage(streams: Streams, _: Bounds, seen: Seen) -> None:
    chance = Random()
    streams.writer.write(chance.randbytes(chance.randrange(1, 2_000)))
    streams.writer.write_eof()
    await _until_closed(streams, seen)


async def _malformed(streams: Streams, _: Bounds, seen: Seen) -> None:
    streams.writer.write(b"\0\0\0\4\x7f\xff\x7f\xff")
    await _until_closed(streams, seen)


async def _silence(streams: Streams, _: Bounds, seen: Seen) -> None:
    await _until_closed(streams, seen)


async def _half_a_request(streams: Streams, _: Bounds, seen: Seen) -> None:
    streams.writer.write(_HALF_A_REQUEST)
    await _until_closed(streams, seen)


async def _oauthbearer(streams: Streams, _: Bounds, seen: Seen) -> None:
    streams.writer.write(_OAUTHBEARER)
    await _until_closed(streams, seen)


async def _certificate(streams: Streams, _: Bounds, seen: Seen) -> None:
    # Kafka looks at the name when the first request comes.
    streams.writer.write(_SMALLEST)
    await _until_closed(streams, seen)


async def _denials(streams: Streams, bounds: Bounds, seen: Seen) -> None:
    await _log_in(streams, "alice")
    port = streams.writer.get_extra_info("sockname")[1]
    for number in bounds.rounds():
        names = (f"{port}-{number}-{each:0200}" for each in range(DENIED_AT_ONCE))
        request = MetadataRequest([MetadataRequestTopic(name=name) for name in names], False)
        await _exchange(streams, request_frame(ApiKey.METADATA, 9, request))
        seen["answered"] += 1


async def _producer_ids(streams: Streams, bounds: Bounds, seen: Seen) -> None:
    """Ask whether a user may write to any topic, after a change of her ACLs each time."""
    await _log_in(streams, "alice")
    admin = await _opened(streams.address, None)
    try:
        await _log_in(admin, "admin")
        for number in bounds.rounds():
            await _exchange(admin, _CHANGES[number % len(_CHANGES)])
            await _exchange(streams, _PRODUCER_ID)
            seen["answered"] += 1
    finally:
        admin.writer.close()


def _sends(unkind: Unkind) -> Attack:
    """Return the attack that sends one request over and over, each when the last is answered."""
    frames: dict[int, bytes] = {}

    async def attack(streams: Streams, bounds: Bounds, seen: Seen) -> None:
        entries = min(unkind.entries, bounds.entries or unkind.entries)
        frame = frames.get(entries) or frames.setdefault(entries, unkind.frame(entries))
        if unkind.user:
            await _log_in(streams, unkind.user)
        if not unkind.reads:
            streams.writer.write(frame)
            await asyncio.sleep(60)
        for _ in range(1) if unkind.once else bounds.rounds():
            await _exchange(streams, frame)
            seen["answered"] += 1

    return attack


def _calls(chosen: HttpAttack) -> Attack:
    """Return the attack that sends one call over HTTP over and over."""
    prepared = asyncio.Lock()
    requests: dict[int, bytes] = {}

    async def prepare(streams: Streams, entries: int) -> None:
        _, answer = await _called(streams, WHICH_CLUSTER)
        cluster = json.loads(answer)["scope"]["clusters"]["kafka-cluster"]
        for request in chosen.before(entries):
            await _called(streams, request)
        requests[entries] = chosen.request(entries).replace(ANY_CLUSTER, cluster.encode())

    async def attack(streams: Streams, bounds: Bounds, seen: Seen) -> None:
        entries = min(chosen.entries, bounds.entries or chosen.entries)
        async with prepared:
            if entries not in requests:
                await prepare(streams, entries)
        for _ in bounds.rounds():
            status, _ = await _called(streams, requests[entries])
            seen["answered" if status == chosen.status else f"status {status}"] += 1
            if streams.reader.at_eof() or chosen.is_closed:
                return

    return attack


async def _called(streams: Streams, request: bytes) -> tuple[int, bytes]:
    """Send a request of HTTP; return the status and the body of the answer."""
    streams.writer.write(request)
    header = (await streams.reader.readuntil(b"\r\n\r\n")).decode().lower()
    _, _, length = header.partition("content-length: ")
    size = int(length.partition("\r\n")[0] or 0)
    return int(header.split()[1]), await streams.reader.readexactly(size)


async def _log_in(streams: Streams, user: str) -> None:
    for frame in login_frames(user):
        await _exchange(streams, frame)


async def _exchange(streams: Streams, frame: bytes) -> None:
    reader, writer, _ = streams
    writer.write(frame)
    size = int.from_bytes(await reader.readexactly(4))
    while size:
        size -= len(await reader.readexactly(min(size, 1 << 16)))


async def _until_closed(streams: Streams, seen: Seen) -> None:
    while await streams.reader.read(1 << 16):
        pass
    seen["closed"] += 1


KINDS: Final[Mapping[str, Kind]] = {
    "logins": Kind("others send wrong passwords", _logins, 100),
    "garbage": Kind("others send random bytes", _garbage, 100),
    "malformed": Kind("strangers send malformed requests", _malformed, 100),
    "silence": Kind("others open connections and are silent", _silence, 2_000, holds=True),
    "silent-1000": Kind("1,000 connections are silent", _silence, 1_000, holds=True),
    "half-http": Kind(
        "1,010 requests to the port of the figures are half sent",
        _half_a_request,
        1_010,
        HTTP,
        holds=True,
    ),
    "oauthbearer": Kind(
        "strangers send OAUTHBEARER messages n,a=xxx of 512 KiB",
        _oauthbearer,
        8,
    ),
    "certificate": Kind(
        "others show a certificate of many OU, O, L and ST under a rule of KIP-371",
        _certificate,
        8,
        TLS,
    ),
    "denials": Kind(
        f"a user without rights asks on 10 connections for {DENIED_AT_ONCE} topics, always others",
        _denials,
        10,
    ),
    "producer-ids": Kind(
        "a user with 200,000 ACLs, one of which changes each time, asks for a producer id",
        _producer_ids,
        1,
    ),
    **{
        name: Kind(
            unkind.title,
            _sends(unkind),
            unkind.connections,
            once=unkind.once,
            holds=not unkind.reads,
        )
        for name, unkind in UNKIND.items()
    },
    **{
        name: Kind(chosen.title, _calls(chosen), chosen.connections, API)
        for name, chosen in HTTP_ATTACKS.items()
    },
}
"""All attacks by their short names."""


async def attack(
    kind: str, address: str, directory: Path | None = None, bounds: Bounds = UNBOUNDED
) -> Seen:
    """Attack with as many connections as the kind has at once; return what became of it."""
    chosen, seen = KINDS[kind], Seen()
    tls = None if chosen.listener != TLS or directory is None else shows(directory / IDENTITY)
    at_once = min(chosen.connections, bounds.connections or chosen.connections)
    if chosen.once:
        bounds = bounds._replace(times=1)
    attackers = [_again_and_again(chosen, address, tls, bounds, seen) for _ in range(at_once)]
    await asyncio.gather(*attackers)
    return seen


async def _again_and_again(
    kind: Kind, address: str, tls: ssl.SSLContext | None, bounds: Bounds, seen: Seen
) -> None:
    for _ in bounds.rounds():
        try:
            streams = await _opened(address, tls)
            try:
                await kind.attack(streams, bounds, seen)
            finally:
                streams.writer.close()
        except (OSError, asyncio.IncompleteReadError):
            seen["closed"] += 1
        await asyncio.sleep(0.01)


async def _opened(address: str, tls: ssl.SSLContext | None) -> Streams:
    host, _, port = address.rpartition(":")
    return Streams(*await asyncio.open_connection(host, int(port), ssl=tls), address)


def main() -> None:
    """Attack as the arguments say, until it is over or the process is ended."""
    kind, address, *directory = sys.argv[1:]
    with suppress(KeyboardInterrupt):
        asyncio.run(attack(kind, address, Path(directory[0]) if directory else None))


if __name__ == "__main__":
    main()
