"""Attacks a broker until it is ended: `python -m benchmarks.intruder KIND HOST:PORT`.

KIND is ``logins`` (wrong passwords, a connection for each), ``garbage`` (random bytes), ``silence``
(connections on which nothing comes, opened anew when the broker closes them), or one of
`benchmarks.unkind.UNKIND`.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from random import Random
from typing import Final

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest
from benchmarks.exchange import login_frames
from benchmarks.unkind import UNKIND, Unkind
from tests.support.client import request_frame

AT_ONCE: Final = {"logins": 100, "garbage": 100, "silence": 2_000}
_WRONG: Final = request_frame(
    ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest("PLAIN")
) + request_frame(ApiKey.SASL_AUTHENTICATE, 2, SaslAuthenticateRequest(b"\0admin\0wrong"))

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def _logins(streams: Streams, _: Random) -> None:
    reader, writer = streams
    writer.write(_WRONG)
    await reader.read()


async def _garbage(streams: Streams, chance: Random) -> None:
    reader, writer = streams
    writer.write(chance.randbytes(chance.randrange(1, 2_000)))
    writer.write_eof()
    await reader.read()


async def _silence(streams: Streams, _: Random) -> None:
    await streams[0].read()


class _Sender:
    """Sends one request over and over, each when the last one is answered."""

    def __init__(self, unkind: Unkind) -> None:
        self._unkind = unkind
        self._frame = unkind.frame()

    async def __call__(self, streams: Streams, _: Random) -> None:
        reader, writer = streams
        for frame in login_frames(self._unkind.user) if self._unkind.user else ():
            await _exchange(reader, writer, frame)
        if not self._unkind.reads:
            writer.write(self._frame)
            await asyncio.sleep(60)
        while True:
            await _exchange(reader, writer, self._frame)


async def _exchange(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, frame: bytes
) -> None:
    writer.write(frame)
    size = int.from_bytes(await reader.readexactly(4))
    while size:
        size -= len(await reader.readexactly(min(size, 1 << 16)))


_KINDS: Final[Mapping[str, Callable[[Streams, Random], Awaitable[None]]]] = {
    "logins": _logins,
    "garbage": _garbage,
    "silence": _silence,
}


async def _again_and_again(
    attacks: Callable[[Streams, Random], Awaitable[None]], host: str, port: int
) -> None:
    chance = Random(os.getpid())
    while True:
        with suppress(OSError, asyncio.IncompleteReadError):
            streams = await asyncio.open_connection(host, port)
            try:
                await attacks(streams, chance)
            finally:
                streams[1].close()
        await asyncio.sleep(0.01)


async def attack(kind: str, address: str) -> None:
    """Attack with as many connections as the kind has at once."""
    host, _, port = address.rpartition(":")
    unkind = UNKIND.get(kind)
    attacks = _KINDS[kind] if unkind is None else _Sender(unkind)
    at_once = AT_ONCE[kind] if unkind is None else unkind.connections
    await asyncio.gather(*[_again_and_again(attacks, host, int(port)) for _ in range(at_once)])


if __name__ == "__main__":
    asyncio.run(attack(*sys.argv[1:]))
