"""Keeps the keys that verify access tokens up to date: from a file, or from an HTTP endpoint.

Both give the keys they have at once, so that a login never waits for a file server or a network.
"""

from __future__ import annotations

import asyncio
import math
import os
import ssl
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from aclbroker.broker.auth.sasl.jwks import JwksError, KeySet, parse_jwks
from aclbroker.broker.observability.logs import get_logger

if TYPE_CHECKING:
    from aiohttp import ClientResponse

log = get_logger()

LARGEST_SET: Final = 1_048_576
"""The greatest size of a JWK set, in bytes."""

_HEADERS: Final = {
    "Accept": "application/jwk-set+json, application/json",
    "Accept-Encoding": "identity",
}
_REDIRECTS: Final = 3
# A longer delay overflows asyncio's clock.
_LONGEST_WAIT: Final = 10.0 * 365 * 86_400

ON_DEMAND_SECONDS: Final = 10.0
"""Seconds that must lie between two fetches that tokens with unknown keys cause."""


class JwksUnavailable(Exception):
    """There are no keys, or they cannot be fetched; the text says why."""


class Refreshing(NamedTuple):
    """How an endpoint is asked, in seconds: every ``interval``; if that fails again after
    ``backoff``, twice that, and so on, for at most ``backoff_max`` in all. An ``attempt`` is given
    up after as long.
    """

    interval: float
    backoff: float
    backoff_max: float
    attempt: float = 10.0


class JwksSource(Protocol):
    """Keys that change while the broker runs; see `broker.auth.sasl.access_token.KeySource`."""

    async def start(self) -> None:
        """Get the keys for the first time; raises `JwksUnavailable`."""

    async def stop(self) -> None:
        """End the background tasks."""

    def keys(self) -> KeySet:
        """Return the keys as they are known now, without waiting."""

    def missing(self, key_id: str) -> None:
        """Note that a token names a key that is not known."""


class KeySources:
    """All sources of a broker: listeners that name the same share one."""

    def __init__(self) -> None:
        self._sources: dict[tuple[str, Refreshing, bytes | None], JwksSource] = {}

    def add(self, url: str, refreshing: Refreshing, trusted: bytes | None = None) -> JwksSource:
        """Return the source for a URL; it has no keys before `start`.

        ``trusted`` are certificates, DER one after the other, None for what the system trusts.
        """
        key = (url, refreshing, trusted)
        if key not in self._sources:
            tls = None if trusted is None else _client_tls(trusted)
            self._sources[key] = jwks_source(url, refreshing, tls)
        return self._sources[key]

    async def start(self) -> None:
        """Get all keys for the first time; raises `JwksUnavailable` that names the URL."""
        for (url, *_), source in self._sources.items():
            try:
                await source.start()
            except JwksUnavailable as error:
                await self.stop()
                raise JwksUnavailable(f"the keys at {url} cannot be read: {error}") from None

    async def stop(self) -> None:
        """End the background tasks."""
        for source in self._sources.values():
            await source.stop()


def _client_tls(trusted: bytes) -> ssl.SSLContext:
    """What verifies a server's certificate and name, by these certificates alone."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    # As in Java every certificate of the trust store is trusted, also one that is no root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.load_verify_locations(cadata=trusted)
    return context


def jwks_source(url: str, refreshing: Refreshing, tls: ssl.SSLContext | None) -> JwksSource:
    """The source for a `file:`, `http:` or `https:` URL.

    ``tls`` None trusts the authorities that the system trusts.
    """
    parts = urlsplit(url)
    if parts.scheme == "file":
        return JwksFile(Path(unquote(parts.path)))
    return JwksEndpoint(url, refreshing, tls)


class JwksFile:
    """Keys in a file, which is read again whenever it has changed, as in Kafka's CachedFile."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._version: tuple[int, int, int] | None = None
        self._keys = KeySet(())

    async def start(self) -> None:
        """Read the file; raises `JwksUnavailable`."""
        self._version = self._current_version()
        self._keys = _not_empty(_parsed(_read(self._path)))
        _log_keys(str(self._path), self._keys)

    async def stop(self) -> None:
        """Do nothing."""

    def missing(self, key_id: str) -> None:
        """Do nothing: each token sees the file as it is."""

    def keys(self) -> KeySet:
        """Return the keys in the file; those it had before if it cannot be read now."""
        version = self._current_version()
        if version != self._version:
            self._version = version
            try:
                self._keys = _parsed(_read(self._path))
            except JwksUnavailable as error:
                _log_failure(str(self._path), error)
            else:
                _log_keys(str(self._path), self._keys)
        return self._keys

    def _current_version(self) -> tuple[int, int, int] | None:
        try:
            status = os.stat(self._path)
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino


class JwksEndpoint:
    """Keys that an authorization server publishes, asked for in the background.

    A token with an unknown key is refused, and the keys are fetched at once, but no more often than
    every `ON_DEMAND_SECONDS`. While the server cannot be reached the keys stay as they are.
    """

    def __init__(self, url: str, refreshing: Refreshing, tls: ssl.SSLContext | None) -> None:
        self._url = url
        self._refreshing = refreshing
        self._tls = tls
        self._keys = KeySet(())
        self._wanted = asyncio.Event()
        self._next_on_demand = -math.inf
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Fetch the keys, with retries as they are set; raises `JwksUnavailable`."""
        self._keys = _not_empty(await self._fetched())
        _log_keys(self._url, self._keys)
        self._task = asyncio.create_task(self._refresh())

    async def stop(self) -> None:
        """Stop fetching."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def keys(self) -> KeySet:
        """Return the keys that were fetched last."""
        return self._keys

    def missing(self, key_id: str) -> None:
        """Fetch soon, unless that was done a moment ago."""
        now = asyncio.get_running_loop().time()
        if now >= self._next_on_demand:
            self._next_on_demand = now + ON_DEMAND_SECONDS
            self._wanted.set()

    async def _refresh(self) -> None:
        while True:
            await self._wait()
            try:
                self._keys = await self._fetched()
            except JwksUnavailable as error:
                _log_failure(self._url, error)
            else:
                _log_keys(self._url, self._keys)

    async def _wait(self) -> None:
        try:
            async with asyncio.timeout(min(self._refreshing.interval, _LONGEST_WAIT)):
                await self._wanted.wait()
        except TimeoutError:
            pass
        self._wanted.clear()

    async def _fetched(self) -> KeySet:
        """Try as Kafka's Retry does; raises the last attempt's `JwksUnavailable`."""
        clock = asyncio.get_running_loop().time
        end = clock() + self._refreshing.backoff_max
        pause = self._refreshing.backoff
        while True:
            try:
                return _parsed(await self._fetch())
            except JwksUnavailable:
                left = end - clock()
                if left <= 0:
                    raise
            await asyncio.sleep(min(pause, left))
            pause *= 2

    async def _fetch(self) -> bytes:
        from aiohttp import ClientError, ClientSession, ClientTimeout

        timeout = ClientTimeout(total=self._refreshing.attempt)
        try:
            # As with other programs a proxy may stand in the environment.
            async with (
                ClientSession(timeout=timeout, auto_decompress=False, trust_env=True) as session,
                session.get(
                    self._url, headers=_HEADERS, ssl=self._tls or True, max_redirects=_REDIRECTS
                ) as response,
            ):
                return await _body(response, urlsplit(self._url).scheme)
        except TimeoutError:
            raise JwksUnavailable(f"no answer in {self._refreshing.attempt:g} seconds") from None
        except (ClientError, OSError) as error:
            raise JwksUnavailable(str(error) or type(error).__name__) from None


def _parsed(text: bytes) -> KeySet:
    try:
        return parse_jwks(text)
    except JwksError as error:
        raise JwksUnavailable(f"it is no JWK set (RFC 7517): {error}") from None


def _not_empty(keys: KeySet) -> KeySet:
    """The keys, if there are any; later there may be none, since an issuer may revoke them all."""
    if not keys.keys:
        why = "; ".join(keys.ignored) or "it is empty"
        raise JwksUnavailable(f"it has no key that verifies signatures ({why})")
    return keys


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return _bounded(file.read(LARGEST_SET + 1))
    except OSError as error:
        raise JwksUnavailable(f"{path}: {error.strerror}") from None


async def _body(response: ClientResponse, scheme: str) -> bytes:
    if response.status != 200:
        raise JwksUnavailable(f"the answer has status {response.status}")
    if response.url.scheme != scheme:
        raise JwksUnavailable("it redirects to another scheme")
    text = b""
    async for chunk in response.content.iter_any():
        text = _bounded(text + chunk)
    return text


def _bounded(text: bytes) -> bytes:
    if len(text) > LARGEST_SET:
        raise JwksUnavailable(f"it has more than {LARGEST_SET} bytes")
    return text


def _log_keys(source: str, keys: KeySet) -> None:
    write = log.info if keys.keys else log.warning
    write("keys of access tokens read", source=source, keys=len(keys.keys), ignored=keys.ignored)


def _log_failure(source: str, error: JwksUnavailable) -> None:
    log.warning(
        "keys of access tokens not read",
        source=source,
        reason=str(error),
        action="the keys read before stay in use",
    )
