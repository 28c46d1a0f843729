"""Brokers that share their ACLs: of ours with each kind of store, and of Kafka."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from benchmarks.peers import AS_IN_PRODUCTION
from benchmarks.rows import KAFKA, OURS
from benchmarks.servers import KAFKA_LINGER, Server, ours
from tests.support.kafka import PROTOCOLS, Kafka, running_cluster
from tests.support.process import LoggedProcess
from tests.support.zookeeper import running_zookeeper

SQLITE, TOPIC, ZOOKEEPER = "sqlite", "topic", "zookeeper"
KINDS: Final = (SQLITE, TOPIC, ZOOKEEPER)
"""The kinds of stores that brokers can share."""

READERS: Final = 7
"""How many brokers follow what another one is told, of ours; of Kafka's it is one."""

_HEAP: Final = ("-Xmx512m",)


@dataclass
class Fleet:
    """Running brokers with the same ACLs, of which one is told to change them.

    ``url`` is the place of the store, of ours. ``created`` are how many ACLs were created so far.
    """

    writer: Server
    readers: tuple[Server, ...]
    url: str = ""
    created: int = 0


@contextlib.contextmanager
def fleet(kind: str, peers: tuple[str, ...]) -> Iterator[dict[str, Fleet]]:
    """Yield both fleets by their side's name; all of their processes are killed at the end."""
    with contextlib.ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="benchmark-")))
        make = partial(_made, stack, directory)
        url = f"sqlite:///{directory}/shared.db"
        if kind == TOPIC:
            url = _topic(stack, make("kafka-of-topic"))
        elif kind == ZOOKEEPER:
            url = _zookeeper(stack, make("zookeeper"))
        writer, *readers = (_ours(stack, make(f"broker-{n}"), url) for n in range(1 + READERS))
        fleets = {OURS: Fleet(writer, tuple(readers), url)}
        if KAFKA in peers:
            fleets[KAFKA] = _kafka(stack, make("kafka"))
        yield fleets


def _made(stack: contextlib.ExitStack, directory: Path, name: str) -> Path:
    place = directory / name
    place.mkdir()
    return place


def _topic(stack: contextlib.ExitStack, directory: Path) -> str:
    node = Kafka(directory, flags=(*AS_IN_PRODUCTION, *_HEAP))
    stack.callback(_kill, node)
    node.start()
    return f"kafka://{node.listeners['PLAINTEXT']}/acls"


def _zookeeper(stack: contextlib.ExitStack, directory: Path) -> str:
    return f"zookeeper://{stack.enter_context(running_zookeeper(directory)).address}/acls"


def _ours(stack: contextlib.ExitStack, directory: Path, url: str) -> Server:
    settings = {"aclbroker.store": url, "aclbroker.audit.level": "off"}
    # The environment of the developers, since ZooKeeper's client is an extra.
    server = ours(directory, settings, command=(sys.executable, "-m", "aclbroker"))
    stack.callback(_kill, server.process)
    server.start()
    return server


def _kill(process: LoggedProcess) -> None:
    if process.process is not None and process.process.poll() is None:
        process.kill()


def _kafka(stack: contextlib.ExitStack, directory: Path) -> Fleet:
    """Return two nodes of one cluster, each a broker and a controller."""
    cluster = running_cluster(
        directory,
        2,
        flags=(*AS_IN_PRODUCTION, *_HEAP),
        settings=KAFKA_LINGER,
        protocols=PROTOCOLS,
    )
    nodes = stack.enter_context(cluster)
    first, second = (Server(node, node.listeners["SASL_PLAINTEXT"]) for node in nodes)
    return Fleet(first, (second,))
