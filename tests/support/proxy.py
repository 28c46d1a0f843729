"""A connection that a test can cut: a TCP proxy on loopback."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress

WITHIN_S = 20.0


class Proxy:
    """Passes connections on to an address; `cut` lets nothing through, and nobody notices."""

    def __init__(self, address: str) -> None:
        self.target = address
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self._through = threading.Event()
        self._through.set()
        self._sockets: list[socket.socket] = []
        self.passed = 0
        """How many bytes have passed."""

        self._threads = [self._started(self._accept)]

    def __enter__(self) -> "Proxy":
        return self

    def __exit__(self, *_: object) -> None:
        self.mend()
        # A thread that waits in accept() does not notice that its socket is closed.
        self._listener.shutdown(socket.SHUT_RDWR)
        self.drop()
        for thread in self._threads:
            thread.join(WITHIN_S)
        for each in (self._listener, *self._sockets):
            each.close()

    def cut(self) -> None:
        """Let nothing through from now on."""
        self._through.clear()

    def mend(self) -> None:
        """Let everything through again."""
        self._through.set()

    def drop(self) -> None:
        """End all connections."""
        for each in list(self._sockets):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def _started(self, function: Callable[..., None], *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=function, args=arguments, daemon=True)
        thread.start()
        return thread

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                peer, _ = self._listener.accept()
                self._sockets.append(peer)
                host, _, port = self.target.rpartition(":")
                with suppress(ConnectionError):
                    there = socket.create_connection((host, int(port)))
                    self._sockets.append(there)
                    self._threads.append(self._started(self._pass, peer, there))
                    self._threads.append(self._started(self._pass, there, peer))
                    continue
                peer.shutdown(socket.SHUT_RDWR)

    def _pass(self, reader: socket.socket, writer: socket.socket) -> None:
        with suppress(OSError):
            while data := reader.recv(65536):
                self._through.wait()
                writer.sendall(data)
                self.passed += len(data)
        for each in (reader, writer):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
