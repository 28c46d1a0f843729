"""A cluster of Kafka kept in memory: pure state; `broker.backends.memory` answers from it.

Nothing here knows of requests, connections or the event loop: time comes from a `Clock`, and who
waits for something leaves a function that is called.
"""

from aclbroker.broker.memory.clock import Clock
from aclbroker.broker.memory.cluster import MemoryCluster, MemorySettings

__all__ = ["Clock", "MemoryCluster", "MemorySettings"]
