"""Groups of consumers and of others, which share work out among their members.

There are the classic protocol, in which a member assigns, the newer one for consumers (KIP-848), in
which the broker does, and the offsets that groups commit. `Groups` is what handlers talk to.
"""

from aclbroker.broker.memory.groups.coordinator import Groups
from aclbroker.broker.memory.groups.group import GroupError
from aclbroker.broker.memory.groups.settings import GroupSettings

__all__ = ["GroupError", "GroupSettings", "Groups"]
