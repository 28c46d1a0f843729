"""Loads all ACLs of a store in a process of its own; prints how many there were and the seconds.

python -m benchmarks.loading URL
"""

from __future__ import annotations

import sys
import time

from aclbroker.acl.bindings import AclFilter
from aclbroker.broker.authorizer.standard import StandardAuthorizer
from aclbroker.broker.server.garbage import objects_that_stay
from aclbroker.broker.server.loop import run_loop


async def main(url: str) -> None:
    """Load the ACLs as a broker does when it starts; print their number and the seconds."""
    authorizer = StandardAuthorizer()
    authorizer.configure({"aclbroker.store": url})
    begin = time.perf_counter()
    with objects_that_stay():
        await authorizer.start()
    seconds = time.perf_counter() - begin
    print(sum(1 for _ in authorizer.acls(AclFilter())), seconds)
    await authorizer.close()


if __name__ == "__main__":
    run_loop(main(sys.argv[1]))
