"""The two programs in C: compiled into build/ when their source is newer."""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tests.support.toolchain import require, run

_HERE = Path(__file__).parent
BUILD = _HERE.parent.parent / "build" / "bench-gateway"
_FLAGS = ("-O2", "-Wall", "-Wextra", "-Werror")
_TLS = ("-DWITH_TLS", "-lssl", "-lcrypto")
_STARTS_WITHIN = 60.0


def compiled(name: str, *, tls: bool = False) -> Path:
    """Return the path of a program; with ``tls`` it needs OpenSSL and its headers.

    Raises RuntimeError with the compiler's messages, and skips a test if there is no compiler.
    """
    source = _HERE / f"{name}.c"
    program = BUILD / (f"{name}-tls" if tls else name)
    if not program.exists() or program.stat().st_mtime < source.stat().st_mtime:
        program.parent.mkdir(parents=True, exist_ok=True)
        # Several processes may compile at the same time: each replaces the whole file.
        with tempfile.TemporaryDirectory(dir=program.parent) as directory:
            made = Path(directory) / name
            options = [*_FLAGS, "-o", str(made), str(source), *(_TLS if tls else ())]
            run([require("cc"), *options], cwd=_HERE)
            made.rename(program)
    return program


def has_tls() -> bool:
    """Return whether the load client can be compiled with TLS."""
    try:
        compiled("load", tls=True)
    except RuntimeError:
        return False
    return True


@dataclass(frozen=True)
class Proxy:
    """A running byte proxy in C: its process id, and the address where it listens."""

    pid: int
    address: str


@contextmanager
def running_proxy(server: str, port: int = 0) -> Iterator[Proxy]:
    """Run a proxy before a server, at a port or at any free one, until the block ends."""
    command = [str(compiled("proxy")), *server.split(":"), str(port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            line = process.stdout.readline() if process.stdout else ""
            if not line:
                raise RuntimeError(f"the proxy before {server} did not start")
            yield Proxy(process.pid, f"127.0.0.1:{int(line)}")
        finally:
            process.kill()


class LoadResult(NamedTuple):
    """The figures of the load client: ``cpu_seconds`` are those of the processes it was given.

    ``bytes`` are those of all counted requests and answers.
    """

    answers: int
    seconds: float
    cpu_seconds: float
    bytes: int
    p50_us: float
    p99_us: float


@dataclass(frozen=True)
class Load:
    """The work of the load client: a frame, and how it is sent."""

    frame: bytes
    connections: int = 1
    depth: int = 1
    warm_up: float = 1.0
    seconds: float = 3.0
    requests: int = 0
    """Measure so many requests from the first one on, and for no fixed time."""
    tls: bool = False

    def run(self, address: str, pids: Sequence[int] = ()) -> tuple[LoadResult, bytes]:
        """Send the requests; return the figures and the first answer, without its length.

        Raises RuntimeError with the client's message if it fails.
        """
        with tempfile.TemporaryDirectory(prefix="load-") as name:
            answer = Path(name) / "answer"
            options = [f"-a{answer}"]
            if pids:
                options.append(f"-p{','.join(map(str, pids))}")
            command = self._command(address, Path(name), *options)
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise RuntimeError(f"the load client failed at {address}: {done.stderr}")
            return LoadResult(**json.loads(done.stdout)), answer.read_bytes()

    @contextmanager
    def held(self, address: str) -> Iterator[None]:
        """Send a request on each connection, and keep the connections open within the block."""
        with tempfile.TemporaryDirectory(prefix="load-") as name:
            command = self._command(address, Path(name), "-i")
            pipe = subprocess.PIPE
            with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
                if not (process.stdout and process.stdout.readline()):
                    raise RuntimeError(f"the connections to {address} were not answered")
                yield
                process.communicate()

    def _command(self, address: str, directory: Path, *options: str) -> list[str]:
        """Return the command, after writing the frame into a directory."""
        frame = directory / "frame"
        frame.write_bytes(self.frame)
        sent = [f"-c{self.connections}", f"-d{self.depth}"]
        if self.requests:
            sent.append(f"-n{self.requests}")
        else:
            sent += [f"-w{self.warm_up}", f"-s{self.seconds}"]
        if self.tls:
            sent.append("-t")
        program = compiled("load", tls=self.tls)
        return [str(program), *sent, *options, *address.split(":"), str(frame)]
