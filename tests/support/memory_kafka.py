"""A Kafka that starts at once: the cluster in memory of a broker in this process."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

from aclbroker.testing.embedded import EmbeddedBroker
from tests.support.proxy import Proxy


@contextmanager
def memory_kafka() -> Iterator[Proxy]:
    """Run it behind a proxy, which is where clients reach it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    with Proxy(address) as proxy:
        broker = EmbeddedBroker(
            {
                "listeners": f"PLAINTEXT://{address}",
                "advertised.listeners": f"PLAINTEXT://{proxy.address}",
                "super.users": "User:ANONYMOUS",
                "aclbroker.store": "memory:",
                "aclbroker.cluster": "memory",
                # Who still reads a topic that is deleted would make it anew, by its metadata.
                "auto.create.topics.enable": "false",
                "aclbroker.shutdown.timeout.ms": "1000",
            }
        )
        broker.start()
        try:
            yield proxy
        finally:
            proxy.mend()
            proxy.drop()
            broker.stop()
