"""The groups of users as a file says, read again when it changes.

The file is looked at every few seconds and on demand, in a thread, so that neither a slow file
system nor a large file delays anybody.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from aclbroker.acl.files.groups import GroupsError, read_groups
from aclbroker.acl.groups import Groups
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.server.file_stamp import FileStamp, file_stamp

log = get_logger()

SETTING: Final = "aclbroker.groups.file"

_LOOK_EVERY_SECONDS: Final = 5.0
_NOT_RELOADED: Final = "groups not reloaded; the old ones stay"


class Membership:
    """Who is in which group now; without a ``path`` nobody is in any.

    Raises ValueError, which names the setting, for a file that cannot be used.
    """

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._groups = Groups()
        self._stamp: FileStamp = None
        self._asked = asyncio.Event()
        if path is not None:
            self._groups, self._stamp = _read(path)

    def groups(self) -> Groups:
        """Return the groups that there are now."""
        return self._groups

    def reload(self) -> None:
        """Have the file read again soon, whether it seems to have changed or not."""
        self._asked.set()

    async def watch(self, changed: Callable[[], Awaitable[int]]) -> None:
        """Read the file again when it changes, until cancelled.

        ``changed`` is called when there are other groups; it returns how many sessions have changed
        with them.
        """
        while self._path is not None:
            try:
                await asyncio.wait_for(self._asked.wait(), _LOOK_EVERY_SECONDS)
            except TimeoutError:
                stamp = await asyncio.to_thread(file_stamp, self._path)
                if stamp == self._stamp:
                    continue
            self._asked.clear()
            await self._renew(self._path, changed)

    async def _renew(self, path: str, changed: Callable[[], Awaitable[int]]) -> None:
        # Should it fail, that is logged once until the file changes again.
        self._stamp = await asyncio.to_thread(file_stamp, path)
        before = self._groups
        try:
            self._groups, self._stamp = await asyncio.to_thread(_read, path, _let_others_work)
        except ValueError as error:
            log.error(_NOT_RELOADED, reason=str(error))
            return
        except Exception:
            # Later changes of the file must still be seen.
            log.exception(_NOT_RELOADED)
            return
        sessions = await changed()
        log.info(
            "groups reloaded",
            groups=self._groups.names,
            principals=len(self._groups),
            sessions_changed=sessions,
        )
        await asyncio.to_thread(before.forget)


def _let_others_work() -> None:
    # Of its own accord a thread lets another go on only after five milliseconds.
    time.sleep(0.0005)


def _read(path: str, pause: Callable[[], None] | None = None) -> tuple[Groups, FileStamp]:
    # The stamp is taken first, so that a change while the file is read is noticed later.
    stamp = file_stamp(path)
    try:
        return read_groups(path, pause), stamp
    except GroupsError as error:
        raise ValueError(f"{SETTING}: {error}") from None
    except OSError as error:
        reason = error.strerror or error
        raise ValueError(f"{SETTING}={path}: cannot be read: {reason}") from None
