"""Attacks a broker until it is ended: `python -m benchmarks.intruder KIND HOST:PORT`.

KIND is ``logins`` (wrong passwords, a connection for each), ``garbage`` (random bytes), ``silence``
(connections on which nothing comes, opened anew when the broker closes them).
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


_KINDS: Final[Mapping[str, Callable[[Streams, Random], Awaitable[None]]]] = {
    "logins": _logins,
    "garbage": _garbage,
    "silence": _silence,
}


async def _again_and_again(kind: str, host: str, port: int) -> None:
    chance = Random(os.getpid())
    while True:
        with suppress(OSError):
            streams = await asyncio.open_connection(host, port)
            try:
                await _KINDS[kind](streams, chance)
            finally:
                streams[1].close()
        await asyncio.sleep(0.01)


async def attack(kind: str, address: str) -> None:
    """Attack with as many connections as the kind has at once."""
    host, _, port = address.rpartition(":")
    await asyncio.gather(*[_again_and_again(kind, host, int(port)) for _ in range(AT_ONCE[kind])])


if __name__ == "__main__":
    asyncio.run(attack(*sys.argv[1:]))
