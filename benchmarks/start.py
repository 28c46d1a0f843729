"""From process start to the first answer, and memory when idle: this broker beside a real Kafka.

    make bench-start

Both are started in turn on storage that exists already, and asked ApiVersions over and over until
they answer. Memory is the resident set a second after that.
"""

from __future__ import annotations

import argparse
import platform
import socket
import statistics
import struct
import tempfile
import time
from pathlib import Path

from tests.support.broker import Broker
from tests.support.kafka import Kafka, free_ports
from tests.support.process import LoggedProcess, wait_for

API_VERSIONS_V0 = struct.pack(">ihhih", 10, 18, 0, 1, -1)
SETTLE_SECONDS = 1.0


def answers(address: str) -> bool | None:
    """Tell whether a broker answers ApiVersions; None if not."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=1) as connection:
            connection.sendall(API_VERSIONS_V0)
            return len(connection.recv(4)) == 4 or None
    except OSError:
        return None


def measure(server: LoggedProcess, address: str) -> tuple[float, float]:
    """Start a server; return the seconds until it answered, and its idle MiB."""
    begin = time.perf_counter()
    server.spawn()
    try:
        wait_for("an answer", lambda: answers(address), 120)
        seconds = time.perf_counter() - begin
        time.sleep(SETTLE_SECONDS)
        return seconds, server.resident_mib
    finally:
        server.terminate(60)


def prepared(directory: Path) -> tuple[tuple[Broker, str], tuple[Kafka, str]]:
    """Return both servers on storage that was used once, with the address of each."""
    for name in ("ours", "kafka"):
        (directory / name).mkdir()
    address = f"127.0.0.1:{free_ports(1)[0]}"
    broker = Broker(directory / "ours", {"listeners": f"PLAINTEXT://{address}"})
    kafka = Kafka(directory / "kafka")
    for server in (broker, kafka):
        server.start()
        server.terminate(60)
    return (broker, address), (kafka, kafka.listeners["PLAINTEXT"])


def row(what: str, unit: str, ours: list[float], peer: list[float]) -> str:
    """Return one line of the result."""
    ratios = sorted(b / a for a, b in zip(ours, peer, strict=True))
    return (
        f"{what:24} {statistics.median(ours):8.2f} {unit:4} {statistics.median(peer):8.2f} {unit:4}"
        f" {statistics.median(ratios):7.1f}x ({ratios[0]:.1f}-{ratios[-1]:.1f})"
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    with tempfile.TemporaryDirectory() as name:
        ours, kafka = prepared(Path(name))
        pairs = [(measure(*ours), measure(*kafka)) for _ in range(rounds)]
    print(f"{platform.platform()}, Python {platform.python_version()}, {rounds} rounds, medians")
    print(f"{'':24} {'aclbroker':>13} {'Kafka 4.3.0':>13} {'ratio (range)':>16}")
    for index, (what, unit) in enumerate((("start to first answer", "s"), ("idle memory", "MiB"))):
        columns = ([pair[side][index] for pair in pairs] for side in (0, 1))
        print(row(what, unit, *columns))


if __name__ == "__main__":
    main()
