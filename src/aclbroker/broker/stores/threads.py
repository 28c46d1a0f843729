"""Work in a thread that nobody waits for: what asks others over the network may take its time."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Any, TypeVar

T = TypeVar("T")


async def in_daemon_thread(name: str, function: Callable[..., T], *args: Any) -> T:
    """Return what a function returns in a thread of its own.

    Where it is cancelled the thread goes on, as that of `asyncio.to_thread` does; but neither the
    end of the loop nor that of the process waits for it.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()

    def tell(take: Callable[[Any], None], value: Any) -> None:
        # The loop may have ended.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(lambda: None if done.done() else take(value))

    def work() -> None:
        try:
            result = function(*args)
        except BaseException as error:  # noqa: BLE001 # it is raised where it is waited for
            tell(done.set_exception, error)
        else:
            tell(done.set_result, result)

    threading.Thread(target=copy_context().run, args=(work,), name=name, daemon=True).start()
    return await done
