"""One server under test: a process whose log is a file, waited for by what the log says."""

import os
import re
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeVar

Found = TypeVar("Found")


spawned: list["LoggedProcess"] = []
"""What was started since a test began, so that its logs can be shown if it fails."""


def wait_for(what: str, look: Callable[[], Found | None], seconds: float) -> Found:
    """What `look` returns as soon as it is not None; TimeoutError naming `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while (found := look()) is None:
        if time.monotonic() > deadline:
            raise TimeoutError(f"{what}: not within {seconds:g} s")
        time.sleep(0.01)
    return found


class LoggedProcess:
    """A process that writes its output to a log file, to which every further start appends.

    ``environment`` is added to what this process has.
    """

    def __init__(
        self,
        command: list[str],
        directory: Path,
        log: str,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self.command = command
        self.environment = environment or {}
        self.directory = directory
        self.log = directory / log
        self.process: subprocess.Popen[bytes] | None = None
        self._log_start = 0

    def spawn(self) -> None:
        """Start the process; its log lines from now on are `new_log_text`."""
        spawned.append(self)
        with self.log.open("ab") as log:
            self._log_start = log.tell()
            self.process = subprocess.Popen(
                self.command,
                cwd=self.directory,
                env={**os.environ, **self.environment},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    @property
    def is_alive(self) -> bool:
        """Whether it was started and has not ended."""
        return self.process is not None and self.process.poll() is None

    @property
    def running(self) -> subprocess.Popen[bytes]:
        """The process; RuntimeError if it was never started."""
        if self.process is None:
            raise RuntimeError("not started")
        return self.process

    @property
    def resident_mib(self) -> float:
        """The resident set of the process, in MiB."""
        return self._status_mib("VmRSS")

    @property
    def peak_mib(self) -> float:
        """The largest resident set since the start, or since `forget_peak`, in MiB."""
        return self._status_mib("VmHWM")

    def forget_peak(self) -> None:
        """Let `peak_mib` begin anew, at what is resident now."""
        Path(f"/proc/{self.running.pid}/clear_refs").write_text("5")

    def _status_mib(self, name: str) -> float:
        status = Path(f"/proc/{self.running.pid}/status").read_text()
        [kib] = re.findall(rf"^{name}:\s+(\d+) kB", status, re.MULTILINE)
        return int(kib) / 1024

    def log_text(self) -> str:
        """All that was logged, by every start."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def new_log_text(self) -> str:
        """What was logged since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._log_start)
            return log.read().decode(errors="replace")

    def wait_until_ready(self, look: Callable[[], Found | None], seconds: float) -> Found:
        """What `look` finds; RuntimeError with the log if the process ends or takes too long.

        It is killed then: who expected it to be ready does not come to end it.
        """

        def look_while_alive() -> Found | None:
            # Whether it ended is asked first: what it logged before that is then all there.
            ended = not self.is_alive
            found = look()
            if found is None and ended:
                raise RuntimeError(f"{self.command} ended:\n{self.log_text()}")
            return found

        try:
            return wait_for("ready", look_while_alive, seconds)
        except TimeoutError as error:
            self.kill()
            raise RuntimeError(f"{self.command}: {error}\n{self.log_text()}") from error

    def kill(self) -> None:
        """SIGKILL, as a crash: nothing gets a chance to be closed."""
        self.running.kill()
        self.running.wait()

    def terminate(self, seconds: float = 15) -> int:
        """SIGTERM; the exit status, or TimeoutError (and a kill) if it does not end in time."""
        process = self.running
        process.send_signal(signal.SIGTERM)
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired as error:
            self.kill()
            message = f"SIGTERM did not end it within {seconds:g} s"
            raise TimeoutError(f"{message}:\n{self.log_text()}") from error
