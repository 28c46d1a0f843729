"""Creations: accepted, refused one by one, and refused with all others of the request."""

from __future__ import annotations

from tests.conformance.cases.scenario import Scenario, Step, as_admin
from tests.conformance.requests import (
    ALTER,
    ANY,
    CLUSTER,
    CLUSTER_NAME,
    DELEGATION_TOKEN,
    DENY,
    DESCRIBE,
    DESCRIBE_ACLS,
    GROUP,
    IDEMPOTENT_WRITE,
    MATCH,
    PREFIXED,
    TOPIC,
    TRANSACTIONAL_ID,
    TWO_PHASE_COMMIT,
    UNKNOWN,
    USER,
    WRITE,
    Request,
    acl,
    create,
    delete,
    describe,
    matching,
)

ODD = {
    "plain": acl(),
    "group": acl(GROUP, "g"),
    "cluster": acl(CLUSTER, CLUSTER_NAME, operation=ALTER),
    "cluster prefixed": acl(CLUSTER, CLUSTER_NAME, PREFIXED, operation=ALTER),
    "cluster of another name": acl(CLUSTER, "my-cluster", operation=ALTER),
    "cluster of a shorter name prefixed": acl(CLUSTER, "kafka", PREFIXED, operation=ALTER),
    "cluster of any name": acl(CLUSTER, "*", operation=ALTER),
    "cluster without a name": acl(CLUSTER, "", operation=ALTER),
    "transactional id": acl(TRANSACTIONAL_ID, "tx", operation=WRITE),
    "delegation token": acl(DELEGATION_TOKEN, "token", operation=DESCRIBE),
    "user": acl(USER, "User:bob", operation=DESCRIBE),
    "two-phase commit": acl(TRANSACTIONAL_ID, "tx", operation=TWO_PHASE_COMMIT),
    "operation that the type does not have": acl(GROUP, "g", operation=IDEMPOTENT_WRITE),
    "resource type beyond the last": acl(8),
    "resource type 127": acl(127),
    "resource type -1": acl(-1),
    "pattern type beyond the last": acl(pattern_type=5),
    "pattern type -128": acl(pattern_type=-128),
    "operation beyond the last": acl(operation=16),
    "operation -1": acl(operation=-1),
    "permission beyond the last": acl(permission=4),
    "permission -1": acl(permission=-1),
    "everything beyond the last": acl(99, "", 99, "nobody", "", 99, 99),
    "unknown pattern type and operation": acl(pattern_type=99, operation=99),
    "unknown operation and permission": acl(operation=99, permission=99),
    "unknown permission and no name": acl(name="", permission=99),
    "unknown permission and no colon": acl(principal="nobody", permission=99),
    "no name and no colon": acl(name="", principal="nobody"),
    "cluster of another name and no colon": acl(CLUSTER, "c", principal="nobody"),
    "deny": acl(permission=DENY),
    "no name": acl(name=""),
    "no name prefixed": acl(name="", pattern_type=PREFIXED),
    "any name": acl(name="*"),
    "any name prefixed": acl(name="*", pattern_type=PREFIXED),
    "name with spaces": acl(name=" a b "),
    "name with slashes": acl(name="a/b\\c"),
    "name of dots": acl(name=".."),
    "name with a line break": acl(name="a\nb\r\n\tc"),
    "name with a zero": acl(name="a\0b"),
    "name beyond the Basic Multilingual Plane": acl(name="тема-主題-😀"),
    "name of 250 characters": acl(name="n" * 250),
    "name of 32,767 bytes": acl(name="n" * 32767),
    "principal without a colon": acl(principal="carol"),
    "principal empty": acl(principal=""),
    "principal of a colon": acl(principal=":"),
    "principal without a name": acl(principal="User:"),
    "principal without a type": acl(principal=":carol"),
    "principal with two colons": acl(principal="User:CN=a:b,O=c"),
    "principal any": acl(principal="User:*"),
    "principal any of a group": acl(principal="Group:*"),
    "principal in lower case": acl(principal="user:carol"),
    "principal in Cyrillic": acl(principal="User:каролина"),
    "principal with spaces": acl(principal=" User : carol "),
    "host empty": acl(host=""),
    "host of a space": acl(host=" "),
    "host address": acl(host="10.0.0.1"),
    "host name": acl(host="broker.example.org"),
    "host subnet": acl(host="10.0.0.0/8"),
    "host nonsense": acl(host="300.1.1.*"),
    "host IPv6": acl(host="::1"),
    "host IPv6 in full": acl(host="0:0:0:0:0:0:0:1"),
    "host IPv6 in capitals": acl(host="2001:DB8::00FF"),
    "host IPv4 in IPv6": acl(host="::ffff:127.0.0.1"),
}
"""Creations by what is odd about them; some are accepted, some refused."""


def creations() -> list[Scenario]:
    """Return each odd creation alone, and what is stored then."""
    return [
        Scenario(f"create {name}", as_admin(create(creation), describe()), (3,))
        for name, creation in ODD.items()
    ]


GOOD, OTHER = acl(), acl(GROUP, "g")
BATCHES = {
    "none": (),
    "two": (GOOD, OTHER),
    "the same twice": (GOOD, GOOD),
    "good, no name, good": (GOOD, acl(name=""), OTHER),
    "good, unknown operation, good": (GOOD, acl(operation=99), OTHER),
    "good, no colon, good": (GOOD, acl(principal="x"), OTHER),
    "two refusals of different kinds": (acl(name=""), acl(CLUSTER, "x")),
    "the same refusal twice": (acl(name=""), GOOD, acl(name="")),
    "three unlike ones in case": (acl(name="a"), acl(name="A"), acl(name="a ")),
    "every operation": tuple(acl(operation=operation) for operation in range(2, 16)),
    "every type": tuple(acl(kind, CLUSTER_NAME, PREFIXED) for kind in range(2, 8)),
    "twenty": tuple(acl(name=f"t{i}") for i in range(20)),
}
"""Several creations in one request."""


def creation_batches() -> list[Scenario]:
    """Return each batch twice, so that the second time some exist, and what is stored then."""
    return [
        Scenario(f"create {name}", as_admin(create(*acls), create(*acls), describe()))
        for name, acls in BATCHES.items()
    ]


def too_long_for_version_1() -> list[Scenario]:
    """Return names that only the compact strings of version 2 can carry."""
    long = acl(name="n" * 40000)
    steps = (*as_admin(create(long)), *(Step("admin", describe(), version) for version in (2, 1)))
    return [Scenario("create a name of 40,000 bytes", steps, (2,))]


def refused_whole() -> list[Scenario]:
    """Return creations and filters with ANY, MATCH or the byte 0 in them."""
    fields = ("resource_type", "resource_pattern_type", "operation", "permission_type")
    bad = {f"{name} {code}": GOOD | {name: code} for name in fields for code in (UNKNOWN, ANY)}
    bad["resource_pattern_type 2"] = GOOD | {"resource_pattern_type": MATCH}
    scenarios = []
    for name, creation in bad.items():
        scenarios += [
            Scenario(f"create alone {name}", as_admin(create(creation))),
            Scenario(f"create between {name}", as_admin(create(GOOD, creation, OTHER))),
        ]
    filters = ("resource_type_filter", "pattern_type_filter", "operation", "permission_type")
    stored = create(GOOD, OTHER)
    for name in filters:
        wrong = matching() | {name: UNKNOWN}
        scenarios += [
            Scenario(f"describe {name} 0", as_admin(stored, Request(DESCRIBE_ACLS, wrong))),
            Scenario(f"delete {name} 0", as_admin(stored, delete(matching(TOPIC), wrong))),
        ]
    return scenarios
