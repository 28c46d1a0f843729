"""Gateways for tests, and the clusters in memory before which they stand."""

import socket
from contextlib import ExitStack, suppress
from pathlib import Path

from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.kafka import free_ports

IN_MEMORY = {"aclbroker.store": "memory:"}
"""The store of a broker that lives as long as the session of the tests, without a thread."""

_ATTEMPTS = 5


def gateway_before(address: str, directory: Path, **overrides: str) -> Broker:
    """Start a gateway whose cluster upstream is at an address."""
    settings = {"aclbroker.upstream.bootstrap.servers": address, **IN_MEMORY, **overrides}
    gateway = ThreadBroker(directory, settings)
    gateway.start()
    return gateway


def gateway_of_nodes(address: str, directory: Path, ids: range, **overrides: str) -> Broker:
    """Start a gateway before a cluster of several brokers; its addresses are those of brokers.

    Another program may take one of its ports meanwhile. It then starts again with other ports.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return _gateway_of_nodes(address, directory, ids, overrides)
        except RuntimeError as error:
            if "Address already in use" not in str(error):
                raise
    return _gateway_of_nodes(address, directory, ids, overrides)


def _gateway_of_nodes(
    address: str, directory: Path, ids: range, overrides: dict[str, str]
) -> Broker:
    first = {name: _consecutive_ports(ids) for name in ("PLAINTEXT", "SASL_PLAINTEXT")}
    settings = {
        f"listener.name.{name.lower()}.aclbroker.upstream.nodes.first.port": str(port)
        for name, port in first.items()
    }
    gateway = gateway_before(address, directory, **settings, **overrides)
    gateway.listeners = {
        name: ",".join(f"127.0.0.1:{port + number}" for number in ids)
        for name, port in first.items()
    }
    return gateway


def _consecutive_ports(ids: range) -> int:
    """Return a port such that the ports of all ids behind it are free."""
    while True:
        [first] = free_ports(1)
        with ExitStack() as probes, suppress(OSError):
            for number in ids:
                probe = probes.enter_context(socket.socket())
                probe.bind(("127.0.0.1", first + number))
            return first


def cluster_in_memory(directory: Path, **overrides: str) -> Broker:
    """Start a cluster in memory, in which everything is allowed."""
    settings = {
        "aclbroker.cluster": "memory",
        "aclbroker.catalog.topics": "plain:3,single:1",
        "authorizer.class.name": "",
        **IN_MEMORY,
    }
    broker = ThreadBroker(directory, {**settings, **overrides})
    broker.start()
    return broker
