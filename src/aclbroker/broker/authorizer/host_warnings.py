"""Warnings of ACLs by which nobody can come, because of their hosts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from itertools import islice
from typing import Final

from aclbroker.acl.hosts import matches_nobody, subnet
from aclbroker.protocol.errors import shown_name

HOSTS_LOOKED_AT: Final = 5_000
"""So many take ten milliseconds, in which the broker does nothing else."""

_HOSTS_SHOWN: Final = 10


def warn_of_hosts(hosts: Collection[str], cidr: bool, warn: Callable[..., None]) -> None:
    """Warn of hosts of ACLs by which nobody can come; of many, some are looked at."""
    hosts = list(islice(hosts, HOSTS_LOOKED_AT))
    nobody = sorted(filter(matches_nobody, hosts))
    if nobody:
        warn(
            "ACLs match nobody: their hosts are no addresses",
            count=len(nobody),
            hosts=_shown(nobody),
        )
    subnets = sorted(host for host in hosts if "/" in host and subnet(host))
    if subnets and not cidr:
        warn(
            "ACLs of subnets match nobody: aclbroker.acl.host.cidr is false",
            count=len(subnets),
            hosts=_shown(subnets),
        )


def _shown(hosts: Sequence[str]) -> list[str]:
    return [shown_name(host) for host in hosts[:_HOSTS_SHOWN]]
