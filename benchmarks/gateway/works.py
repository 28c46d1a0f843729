"""The work of the rows: load of the client in C, Kafka's own tools, and idle connections."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from benchmarks.gateway.machine import cpu_seconds
from benchmarks.gateway.programs import Load
from benchmarks.gateway.requests import Request, metadata
from benchmarks.gateway.rows import Sample
from benchmarks.gateway.stage import DIRECT, PERF_TOPIC, READ_TOPIC, Stage, changing, side_of
from benchmarks.peers import AS_IN_PRODUCTION
from tests.support.packages import java_command, kafka_jars

SECONDS, QUICK_SECONDS = 3.0, 1.0
WARM_UP, QUICK_WARM_UP = 1.0, 0.5
QUICK_SHARE: Final = 10
"""How many times as few records Kafka's tools get in a quick run."""
WARMING: Final = 50
"""How many connections a gateway has before the memory of others is measured."""
_TOOL_ENDS_WITHIN: Final = 600.0
MIB: Final = 1 << 20


@dataclass(frozen=True)
class LoadWork:
    """One request over and over, from a number of connections, so many at a time on each."""

    request: Request
    connections: int
    depth: int = 1
    tls: bool = False

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Send the requests for some seconds; RuntimeError if the first answer is an error."""
        way = stage.side(side)
        load = Load(
            self.request.frame,
            self.connections,
            self.depth,
            QUICK_WARM_UP if quick else WARM_UP,
            QUICK_SECONDS if quick else SECONDS,
            tls=self.tls,
        )
        result, answer = load.run(way.tls if self.tls else way.plain, way.pids)
        self.request.check(answer)
        return Sample(
            result.seconds,
            result.cpu_seconds,
            result.answers,
            result.bytes,
            result.p50_us,
            result.p99_us,
            result.bytes / result.seconds / 1e6,
        )


@dataclass(frozen=True)
class ProducerTool:
    """Kafka's own producer benchmark, with records of one size."""

    record_bytes: int
    records: int

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Produce all records; the throughput is the one that the tool prints."""
        count = self.records // QUICK_SHARE if quick else self.records
        way = stage.side(side)
        arguments = ["--topic", PERF_TOPIC, "--num-records", str(count), "--throughput", "-1"]
        arguments += ["--record-size", str(self.record_bytes)]
        arguments += ["--bootstrap-server", way.plain]
        before = cpu_seconds(way.pids)
        printed = kafka_tool("ProducerPerformance", arguments)
        # The last line sums up the run, after one line every five seconds.
        sent, mib = re.findall(r"(\d+) records sent.*\(([0-9.]+) MB/sec\)", printed)[-1]
        _check_count("sent", int(sent), count)
        return Sample(
            cpu_seconds=cpu_seconds(way.pids) - before,
            answers=count,
            bytes=count * self.record_bytes,
            mb_per_second=float(mib) * MIB / 1e6,
        )


@dataclass(frozen=True)
class ConsumerTool:
    """Kafka's own consumer benchmark, which reads a topic from its begin."""

    record_bytes: int
    records: int

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Consume all records; the throughput is without the time in which the group forms."""
        count = self.records // QUICK_SHARE if quick else self.records
        self._fill(stage, count)
        way = stage.side(side)
        arguments = ["--topic", READ_TOPIC, "--num-records", str(count)]
        arguments += ["--bootstrap-server", way.plain]
        before = cpu_seconds(way.pids)
        printed = kafka_tool("ConsumerPerformance", arguments)
        spent = cpu_seconds(way.pids) - before
        head, values = (line.split(", ") for line in printed.strip().splitlines()[-2:])
        found = dict(zip(head, values, strict=True))
        _check_count("received", int(found["data.consumed.in.nMsg"]), count)
        return Sample(
            cpu_seconds=spent,
            answers=count,
            bytes=int(float(found["data.consumed.in.MB"]) * MIB),
            mb_per_second=float(found["fetch.MB.sec"]) * MIB / 1e6,
        )

    def _fill(self, stage: Stage, count: int) -> None:
        """Write the records once for all rounds, on the direct way."""
        missing = count - stage.records
        if missing > 0:
            address = stage.side(DIRECT).plain
            arguments = ["--topic", READ_TOPIC, "--num-records", str(missing)]
            arguments += ["--record-size", str(self.record_bytes), "--throughput", "-1"]
            kafka_tool("ProducerPerformance", [*arguments, "--bootstrap-server", address])
            stage.records = count


def _check_count(verb: str, count: int, wanted: int) -> None:
    """Raise RuntimeError if a tool did not get all records through: it ends with status 0."""
    if count < wanted:
        raise RuntimeError(f"{count} of {wanted} records were {verb}")


def kafka_tool(name: str, arguments: Sequence[str]) -> str:
    """Run a benchmark of Kafka's tools; return its output.

    Raises RuntimeError with its messages if it fails.
    """
    flags = (*AS_IN_PRODUCTION, "-Xmx512m")
    java = java_command(f"org.apache.kafka.tools.{name}", kafka_jars(), minimum=17, flags=flags)
    command = [*java, *arguments]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TOOL_ENDS_WITHIN
    )
    if done.returncode:
        raise RuntimeError(f"{name} failed: {done.stdout}{done.stderr}")
    return done.stdout


@dataclass(frozen=True)
class ChangingWork:
    """Load while a client changes one ACL a second on each of the compared gateways.

    The changed ACL is one of the client's own, so that each change concerns its decisions.
    """

    load: LoadWork

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Send the requests, and change the ACL meanwhile."""
        stage.side(side)
        with changing(stage.gateways[side]):
            return self.load(stage, side, quick)


@dataclass(frozen=True)
class IdleWork:
    """The memory of a new gateway for each connection that has had one answer."""

    connections: int
    tls: bool = False

    def __call__(self, stage: Stage, side: str, quick: bool) -> Sample:
        """Open the connections of a new gateway, and compare its resident memory."""
        request = metadata()
        with stage.gateway(side) as gateway:
            way = side_of(gateway)
            address = way.tls if self.tls else way.plain
            load = Load(request.frame, WARMING, requests=WARMING, tls=self.tls)
            with load.held(address):
                before = gateway.resident_mib
                count = self.connections
                with replace(load, connections=count, requests=count).held(address):
                    after = gateway.resident_mib
        kib = (after - before) * 1024 / self.connections
        return Sample(kib_per_connection=kib, resident_mib=after)
