"""Filters of DescribeAcls and DeleteAcls over ACLs that differ in every field."""

from __future__ import annotations

from tests.conformance.cases.scenario import Scenario, Step, as_admin
from tests.conformance.requests import (
    ALL,
    ALLOW,
    ALTER,
    CLUSTER,
    CLUSTER_ACTION,
    CLUSTER_NAME,
    DELEGATION_TOKEN,
    DELETE,
    DENY,
    DESCRIBE,
    DESCRIBE_ACLS,
    GROUP,
    LITERAL,
    MATCH,
    PREFIXED,
    READ,
    TOPIC,
    TRANSACTIONAL_ID,
    TWO_PHASE_COMMIT,
    USER,
    WRITE,
    Request,
    acl,
    create,
    delete,
    describe,
    matching,
)

STORED = create(
    acl(),
    acl(permission=DENY, host="10.0.0.1"),
    acl(name="*", operation=DESCRIBE),
    acl(name="ord", pattern_type=PREFIXED, operation=WRITE),
    acl(name="o", pattern_type=PREFIXED, principal="User:*"),
    acl(name="orders", pattern_type=PREFIXED, principal="User:dave", operation=ALL),
    acl(name="orders-2", pattern_type=PREFIXED),
    acl(name="*", pattern_type=PREFIXED, principal="Group:x"),
    acl(name="Orders", principal="User:dave", operation=DELETE),
    acl(GROUP, "orders"),
    acl(GROUP, "*", principal="User:*", operation=DESCRIBE),
    acl(GROUP, "ord", PREFIXED, permission=DENY),
    acl(CLUSTER, CLUSTER_NAME, operation=ALTER, permission=DENY),
    acl(CLUSTER, CLUSTER_NAME, operation=CLUSTER_ACTION, host="::1"),
    acl(TRANSACTIONAL_ID, "orders", principal="user:carol", operation=WRITE),
    acl(DELEGATION_TOKEN, "orders", operation=DESCRIBE, host=""),
    acl(USER, "User:carol", operation=DESCRIBE, principal=":"),
)
"""ACLs that differ in every field."""


FILTERS = {
    "everything": matching(),
    "topics": matching(TOPIC),
    "groups": matching(GROUP),
    "cluster": matching(CLUSTER),
    "users": matching(USER),
    "literal": matching(pattern_type=LITERAL),
    "prefixed": matching(pattern_type=PREFIXED),
    "matching, without a name": matching(pattern_type=MATCH),
    "name": matching(name="orders"),
    "name, literal": matching(name="orders", pattern_type=LITERAL),
    "name, prefixed": matching(name="orders", pattern_type=PREFIXED),
    "name, matching": matching(name="orders", pattern_type=MATCH),
    "topic name, matching": matching(TOPIC, "orders", MATCH),
    "longer topic name, matching": matching(TOPIC, "orders-2024", MATCH),
    "unknown topic name, matching": matching(TOPIC, "x", MATCH),
    "any name": matching(name="*"),
    "any name, literal": matching(name="*", pattern_type=LITERAL),
    "any name, prefixed": matching(name="*", pattern_type=PREFIXED),
    "any name, matching": matching(name="*", pattern_type=MATCH),
    "empty name": matching(name=""),
    "empty name, matching": matching(name="", pattern_type=MATCH),
    "empty name, prefixed": matching(name="", pattern_type=PREFIXED),
    "name in another case": matching(name="ORDERS"),
    "cluster name, matching": matching(CLUSTER, CLUSTER_NAME, MATCH),
    "any cluster name, matching": matching(CLUSTER, "*", MATCH),
    "principal": matching(principal="User:carol"),
    "principal in another case": matching(principal="user:carol"),
    "principal any": matching(principal="User:*"),
    "principal without a colon": matching(principal="carol"),
    "principal empty": matching(principal=""),
    "principal of a colon": matching(principal=":"),
    "host": matching(host="10.0.0.1"),
    "host any": matching(host="*"),
    "host empty": matching(host=""),
    "host IPv6": matching(host="::1"),
    "host IPv6 in full": matching(host="0:0:0:0:0:0:0:1"),
    "operation": matching(operation=READ),
    "operation all": matching(operation=ALL),
    "operation that nothing has": matching(operation=TWO_PHASE_COMMIT),
    "permission": matching(permission=DENY),
    "all fields": matching(TOPIC, "orders", LITERAL, "User:carol", "*", READ, ALLOW),
    "all fields, another host": matching(TOPIC, "orders", LITERAL, "User:carol", "1.2.3.4"),
    "resource type beyond the last": matching(8),
    "resource type -1": matching(-1),
    "pattern type beyond the last": matching(pattern_type=5),
    "pattern type -1": matching(pattern_type=-1),
    "operation beyond the last": matching(operation=99),
    "permission beyond the last": matching(permission=99),
    "unknown pattern and operation": matching(99, operation=99),
    "unknown pattern, with a name": matching(name="orders", pattern_type=99),
}
"""Filters by what is odd about them; each matches some of `STORED`, all or none."""


def filtered() -> list[Scenario]:
    """Return every filter in DescribeAcls, and in DeleteAcls with what is left then."""
    described = [Request(DESCRIBE_ACLS, fields) for fields in FILTERS.values()]
    scenarios = [Scenario("describe by each filter", as_admin(STORED, *described))]
    for name, fields in FILTERS.items():
        steps = as_admin(STORED, delete(fields), describe())
        scenarios.append(Scenario(f"delete {name}", steps, (2,)))
    lists = {
        "no filter": (),
        "one filter twice": (matching(TOPIC), matching(TOPIC)),
        "filters that overlap": (matching(TOPIC), matching(name="orders"), matching(GROUP)),
        "an unknown filter between": (matching(TOPIC), matching(99), matching(GROUP)),
        "nothing, then everything": (matching(name="x"), matching()),
    }
    for name, several in lists.items():
        scenarios.append(Scenario(f"delete {name}", as_admin(STORED, delete(*several), describe())))
    return scenarios


def oldest() -> list[Scenario]:
    """Return the ACL requests at version 0, each before its equivalent at version 1.

    What version 0 should answer is read off the second answer, see `divergences`.
    """
    stored = Step("admin", STORED, 1)
    literal = describe(pattern_type=LITERAL)
    filters = (matching(TOPIC, pattern_type=LITERAL), matching(GROUP, "orders", LITERAL))
    pairs = {
        "version 0 describe": (stored, *_twice(literal)),
        "version 0 create": (*_twice(create(acl(), acl(name=""))), Step("admin", describe(), 1)),
        "version 0 delete": (stored, *_twice(delete(*filters)), Step("admin", describe(), 1)),
    }
    return [Scenario(name, steps, (0,)) for name, steps in pairs.items()]


def _twice(request: Request) -> tuple[Step, Step]:
    return Step("admin", request, 0), Step("admin", request, 1)
