"""A Chromium without a window, driven by its DevTools protocol over a pipe: no port, no driver.

``python -m tests.support.chromium PAGE PICTURE`` takes the picture of the report in docs/images.
"""

import base64
import fcntl
import json
import os
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.support import toolchain

PATIENCE = 30.0


def require_chromium() -> str:
    """The path of the browser, or `toolchain.missing`."""
    return toolchain.require("chromium")


class Browser:
    """One page of a running browser."""

    def __init__(self, to: int, of: int) -> None:
        self._to, self._of = to, of
        self._unread = b""
        self._number = 0
        self._is_loaded = False
        self._session: str | None = None
        self.complaints: list[str] = []
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        found = self.ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = found["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.ask(f"{domain}.enable")

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                result: dict[str, Any] = answer["result"]
                return result

    def open(self, page: Path, fragment: str = "") -> None:
        """Show a file and wait until it is there; what the browser complains of is kept."""
        # Another fragment of the page that is there would not load it anew.
        for url in ("about:blank", page.as_uri() + fragment):
            self.complaints.clear()
            self._is_loaded = False
            self.ask("Page.navigate", url=url)
            while not self._is_loaded:
                self._next()

    def run(self, expression: str) -> Any:
        """Return what an expression of JavaScript gives."""
        found = self.ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def look(self, width: int, height: int, *, dark: bool = False) -> None:
        """Give the page a size in pixels, and a scheme of colours."""
        self.ask(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=False,
        )  # fmt: skip
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def picture(self, file: Path, *, whole: bool = False) -> None:
        """Write what can be seen, or the whole page, as PNG."""
        found = self.ask("Page.captureScreenshot", captureBeyondViewport=whole)
        file.write_bytes(base64.b64decode(found["data"]))

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._of], [], [], max(end - time.monotonic(), 0))
            read = os.read(self._of, 1 << 20) if ready else b""
            assert read, "the browser says nothing"
            self._unread += read
        message, _, self._unread = self._unread.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        if found.get("method") == "Page.loadEventFired":
            self._is_loaded = True
        if found.get("method") in ("Log.entryAdded", "Runtime.exceptionThrown"):
            self.complaints.append(json.dumps(found["params"]))
        return found


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """Start Chromium, with its files in ``profile``, and end it."""
    to_browser, of_browser = os.pipe(), os.pipe()
    # The browser reads from 3 and writes to 4, which the pipes themselves must not be.
    read, write = (fcntl.fcntl(each, fcntl.F_DUPFD, 10) for each in (to_browser[0], of_browser[1]))

    def take() -> None:
        os.dup2(read, 3)
        os.dup2(write, 4)

    command = [
        *(require_chromium(), "--headless=new", "--remote-debugging-pipe", "--no-sandbox"),
        *("--disable-gpu", "--no-first-run", "--disable-background-networking"),
        *("--disable-dev-shm-usage", "--hide-scrollbars", f"--user-data-dir={profile}"),
    ]
    process = subprocess.Popen(
        command,
        pass_fds=(3, 4),
        preexec_fn=take,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    for each in (read, write, to_browser[0], of_browser[1]):
        os.close(each)
    try:
        yield Browser(to_browser[1], of_browser[0])
    finally:
        os.close(to_browser[1])
        process.terminate()
        process.wait(PATIENCE)
        os.close(of_browser[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place, browser(Path(place)) as found:
        found.look(1200, 1330)
        found.open(Path(sys.argv[1]).resolve())
        found.picture(Path(sys.argv[2]))
