"""A process without threads and without an event loop, from which workers are forked.

The owner of the store has threads, which a fork does not take along, with whatever locks they hold.
So it forks this process before it has any. A worker that is forked here begins with all modules
loaded and the configuration read, shares their memory with the others, and has no secret on its
command line.
"""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import NoReturn

from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.server.descriptors import raise_limit
from aclbroker.broker.server.start import Start
from aclbroker.broker.server.workers.worker import Locks, run_worker

_SOCKETS = 2
_IGNORED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""What the owner takes care of, for all: a terminal, or a service manager, sends it to each."""


class Nursery:
    """Forks off workers of a broker when it is asked to, until its maker ends.

    It must be made while the process has a single thread. ``lock`` is what all of them write lines
    of the log with; the workers have another for the audit file.
    """

    def __init__(self, start: Start) -> None:
        self.lock = LineLock()
        locks = Locks(self.lock, LineLock())
        raise_limit()
        self._control, theirs = socket.socketpair()
        sys.stderr.flush()
        if os.fork() == 0:
            self._control.close()
            _end_with(_nurse, start, locks, theirs)
        theirs.close()

    def begin(self, number: int, sockets: Sequence[socket.socket]) -> None:
        """Fork a worker of a number, which gets two sockets; they are closed here."""
        socket.send_fds(self._control, [bytes([number])], [each.fileno() for each in sockets])
        for each in sockets:
            each.close()

    def when_lost(self, lost: Callable[[], None]) -> None:
        """Call a function of the running event loop when nobody can be forked any more."""
        loop = asyncio.get_running_loop()

        def end() -> None:
            loop.remove_reader(self._control)
            lost()

        loop.add_reader(self._control, end)


def _nurse(start: Start, locks: Locks, control: socket.socket) -> None:
    for number in _IGNORED:
        signal.signal(number, signal.SIG_IGN)
    # Nobody waits for workers here: their owner notices at their sockets when they end.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # What exists now is shared, as long as nobody writes to it, a collector's marks included.
    gc.collect()
    gc.freeze()
    while True:
        told, descriptors, _, _ = socket.recv_fds(control, 1, _SOCKETS)
        if not told:
            return
        if os.fork() == 0:
            control.close()
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            messages, hands = (socket.socket(fileno=each) for each in descriptors)
            _end_with(run_worker, start, locks, told[0], messages, hands)
        for each in descriptors:
            os.close(each)


def _end_with(work: object, *args: object) -> NoReturn:
    """Do the work of a forked process and end it; what its maker does at its end is not for it."""
    status = 1
    try:
        work(*args)  # type: ignore[operator]
        status = 0
    finally:
        if status:
            # Python would print it at its own end, to which this process does not come.
            traceback.print_exc()
        sys.stderr.flush()
        os._exit(status)
