"""The ACLs that authorizers are asked about, in the shape of Kafka's own AuthorizerBenchmark.

The names of all resources share a beginning, every fifth pattern is a prefix (and so matches all
longer numbers too), each has an ACL of ten principals, and the principal that asks has one more on
``*`` for every ten resources, each for another host than the one it asks from.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    WILDCARD,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

PRINCIPAL = "service"
PRINCIPALS_PER_RESOURCE = 10
HOST = "127.0.0.2"
SESSION = Session((f"User:{PRINCIPAL}",), HOST, "PLAINTEXT")

CHANGING = AclBinding(
    ResourceType.TOPIC,
    "changing",
    PatternType.LITERAL,
    f"User:{PRINCIPAL}",
    WILDCARD,
    AclOperation.READ,
    AclPermission.ALLOW,
)
"""The ACL that is added and removed where changes are measured."""


def name(resource: int) -> str:
    """Return the name of a resource by its number."""
    return f"shop-eu1_orders-{resource}"


def acls(resources: int) -> Iterator[AclBinding]:
    """Yield the ACLs of so many resources: ten for each, and as many as a tenth of them."""
    for resource in range(resources):
        pattern_type = PatternType.LITERAL if resource % 5 else PatternType.PREFIXED
        for number in range(PRINCIPALS_PER_RESOURCE):
            principal = f"User:{PRINCIPAL}{number or ''}"
            yield _read(name(resource), pattern_type, principal, WILDCARD)
    for number in range(resources // 10):
        host = f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"
        yield _read(WILDCARD, PatternType.LITERAL, f"User:{PRINCIPAL}", host)


def count(resources: int) -> int:
    """Return how many ACLs `acls` yields."""
    return resources * PRINCIPALS_PER_RESOURCE + resources // 10


def write(resources: int, path: Path) -> None:
    """Write the ACLs as lines of fields with tabs between them, by Kafka's names."""
    with path.open("w") as file:
        for acl in acls(resources):
            fields = (getattr(field, "name", field) for field in acl)
            file.write("\t".join(map(str, fields)) + "\n")


def _read(resource: str, pattern_type: PatternType, principal: str, host: str) -> AclBinding:
    read, allow = AclOperation.READ, AclPermission.ALLOW
    return AclBinding(ResourceType.TOPIC, resource, pattern_type, principal, host, read, allow)
