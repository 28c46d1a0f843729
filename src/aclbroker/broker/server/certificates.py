"""The TLS contexts of the listeners, made anew when the files that they come from change.

New connections get the new context, open ones keep theirs. Files are looked at every few seconds
and on demand, in a thread, so that a slow file system, or a password that is costly to check,
delays nobody. This is what Kafka's SslFactory does in dynamic configuration: as there, a new
certificate must have the name and the hosts of the one in use, unless the settings allow others.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings
from aclbroker.broker.config.model import Listener
from aclbroker.broker.config.reader import listener_prefix
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.file_stamp import FileStamp, file_stamp

if TYPE_CHECKING:
    from aclbroker.broker.auth.tls.context import ServerTls

log = get_logger()

_LOOK_EVERY_SECONDS: Final = 5.0

Stamp = tuple[FileStamp, ...]
"""What shows that files have changed."""


class _Loaded(NamedTuple):
    settings: TlsSettings
    stamp: Stamp
    tls: ServerTls


class Certificates:
    """The TLS of each listener that has it. Raises ValueError where it cannot be had."""

    def __init__(self, listeners: Iterable[Listener]) -> None:
        self._loaded: dict[str, _Loaded] = {}
        self._asked = asyncio.Event()
        for listener in listeners:
            if listener.tls is not None:
                try:
                    self._loaded[listener.name] = _load(listener.tls)
                except TlsError as error:
                    name = listener_prefix(listener.name) + error.setting
                    raise ValueError(f"{name}: {error}") from error

    def context(self, listener: str) -> ssl.SSLContext | None:
        """Return the context for a new connection to a listener, None without TLS."""
        loaded = self._loaded.get(listener)
        return None if loaded is None else loaded.tls.context

    def reload(self) -> None:
        """Have all files read again soon, whether they seem to have changed or not."""
        self._asked.set()

    async def watch(self) -> None:
        """Read files again when they change, until cancelled."""
        while any(loaded.settings.files for loaded in self._loaded.values()):
            try:
                await asyncio.wait_for(self._asked.wait(), _LOOK_EVERY_SECONDS)
            except TimeoutError:
                asked = False
            else:
                asked = True
            self._asked.clear()
            for name, loaded in self._loaded.items():
                self._loaded[name] = await self._renewed(name, loaded, asked=asked)

    async def _renewed(self, listener: str, before: _Loaded, *, asked: bool) -> _Loaded:
        stamp = await asyncio.to_thread(_stamp, before.settings)
        if stamp == before.stamp and not asked:
            return before
        event = log.bind(listener=listener)
        try:
            after = await asyncio.to_thread(_replacement, before)
        except TlsError as error:
            setting = listener_prefix(listener) + error.setting
            event.error(
                "certificate not reloaded; the old one stays", setting=setting, reason=str(error)
            )
            # The stamp is kept, so that the failure is logged once until the files change again.
            return before._replace(stamp=stamp)
        event.info("certificate reloaded", certificates=_described(after.tls))
        for warning in after.tls.warnings:
            event.warning("certificate", warning=warning)
        return after


def _load(settings: TlsSettings) -> _Loaded:
    # Imported where a listener needs it: it costs time at start, and memory.
    from aclbroker.broker.auth.tls.context import server_tls

    # The stamp is taken first, so that a change while the files are read is noticed later.
    stamp = _stamp(settings)
    return _Loaded(settings, stamp, server_tls(settings))


def _replacement(before: _Loaded) -> _Loaded:
    from aclbroker.broker.auth.tls.identity import check_same_identity

    after = _load(before.settings)
    check_same_identity(before.tls.certificates, after.tls.certificates, before.settings)
    return after


def _stamp(settings: TlsSettings) -> Stamp:
    return tuple(map(file_stamp, settings.files))


def _described(tls: ServerTls) -> Sequence[str]:
    return [
        f"{each.subject.rfc4514_string()} until {each.not_valid_after_utc:%Y-%m-%d %H:%M} UTC"
        for each in tls.certificates
    ]
