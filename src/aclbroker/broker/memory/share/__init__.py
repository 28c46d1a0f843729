"""The records of share groups (KIP-932): which member has which of them, and for how long.

A `SharePartition` is the state of one partition for one group, `SharePartitions` has all of them,
and `ShareSessions` what members ask for. Pure state, as all of `broker.memory`.
"""

from aclbroker.broker.memory.share.in_flight import Acquired, ShareError, State
from aclbroker.broker.memory.share.partition import SharePartition
from aclbroker.broker.memory.share.partitions import SharePartitions
from aclbroker.broker.memory.share.sessions import ShareSession, ShareSessions

__all__ = [
    "Acquired",
    "ShareError",
    "SharePartition",
    "SharePartitions",
    "ShareSession",
    "ShareSessions",
    "State",
]
