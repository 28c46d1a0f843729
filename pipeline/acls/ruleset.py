"""What decides on a cluster: its ACLs, and the settings of brokers that decide beside them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.acl.decisions import BrokerUsers, StandardAuthorizerData
from aclbroker.broker.acl.index import AclIndex


@dataclass(frozen=True, slots=True)
class Ruleset:
    """All that an authorizer goes by.

    ``acls`` are in order and each is there once (see `ruleset`). ``super_users`` are principals;
    ``broker_users`` those that may do everything on one listener. ``cidr`` tells that hosts in CIDR
    notation are subnets, as on our broker; to Kafka they are texts that match nobody.
    """

    acls: tuple[AclBinding, ...] = ()
    super_users: frozenset[str] = frozenset()
    broker_users: BrokerUsers = field(default_factory=BrokerUsers)
    allow_everyone_if_no_acl_found: bool = False
    cidr: bool = False

    def with_acls(self, acls: Iterable[AclBinding]) -> Ruleset:
        """Return the same settings with other ACLs."""
        return replace(self, acls=ordered(acls))

    def authorizer(self) -> StandardAuthorizerData:
        """Return the broker's own authorizer of these rules."""
        return StandardAuthorizerData(
            AclIndex(self.acls, cidr=self.cidr),
            self.super_users,
            self.allow_everyone_if_no_acl_found,
            self.broker_users,
        )


def ordered(acls: Iterable[AclBinding]) -> tuple[AclBinding, ...]:
    """Return each ACL once, in an order that depends on nothing else than the set."""
    return tuple(sorted(set(acls)))


def acl_id(acl: AclBinding) -> str:
    """Return what an ACL is called in tables: 16 hexadecimal digits that depend on it alone."""
    text = json.dumps(acl, ensure_ascii=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
