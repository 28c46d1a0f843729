"""Thousands of different ACLs of every type, pattern, operation and permission, drawn at random.

What moves ACLs from one place to another is held to carry all of them: names in them come from
clients and may hold anything.
"""

from __future__ import annotations

from itertools import cycle, product
from random import Random

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

KINDS = tuple(
    product(
        [each for each in ResourceType if each > ResourceType.ANY],
        [PatternType.LITERAL, PatternType.PREFIXED],
        [each for each in AclOperation if each > AclOperation.ANY],
        [AclPermission.DENY, AclPermission.ALLOW],
    )
)
"""Every type of a resource with every pattern, operation and permission."""

PLAIN_NAMES = ("orders", "orders.eu", "pay_", "Orders", "a-b", "x", "0", "true", "_schemas")
AWKWARD_NAMES = (
    *(
        "*",
        ".",
        "..",
        "a/b",
        "/",
        "%2F",
        "no",
        "a b",
        " begins and ends ",
        "été",
        "Ünïcode",
        "数据",
    ),
    *(
        "e\u0301te",
        "🙂",
        "a'b",
        'a"b',
        "a,b",
        "a;b",
        "a=b",
        "a#b",
        "`x`",
        "$HOME",
        "\\",
        "\\n",
        "{}",
    ),
    *("name, patternType=LITERAL)`:", "(principal=User:x, host=*)", "=1+1", "-dash", "@x", "a\tb"),
    *(
        "tab\t",
        "\u2028",
        "\u0085",
        "\ufeffbom",
        "\u202eright",
        "a\u00a0b",
        "\u017f",
        "\u212a",
        "x" * 249,
    ),
)
UNPRINTABLE_NAMES = ("line\nbreak", "return\rhere", "\r\n", "\x00zero", "\x1b[31m", "\x7f")
PRINCIPALS = ("User:alice", "User:Alice", WILDCARD_PRINCIPAL, "Group:staff", "RoleBinding:x")
AWKWARD_PRINCIPALS = (
    *("User:CN=a,OU=b\\,c,O=d", "User:été", "User:", ":", "User:a:b", "User:a b", "User:数据"),
    *('User:"quoted"', "User:a, b", "User:svc@REALM.EXAMPLE", "User:host/name@REALM", "User:*x"),
)
HOSTS = ("*", "*", "*", "10.0.0.1", "10.1.0.0/16", "::1", "fe80::1%eth0", "host.example", "été")


def random_acls(
    random: Random, count: int, *, awkward: bool = True, unprintable: bool = False
) -> list[AclBinding]:
    """Draw different ACLs, which a broker of Kafka 4.3 creates; of each of `KINDS` if that many.

    With ``awkward`` there are names of slashes, quotes, blanks and letters of any script among
    them, with ``unprintable`` also line breaks and other characters of control.
    """
    names = list(PLAIN_NAMES)
    principals = list(PRINCIPALS)
    if awkward:
        names += AWKWARD_NAMES
        principals += AWKWARD_PRINCIPALS
    if unprintable:
        names += UNPRINTABLE_NAMES
    found: dict[AclBinding, None] = {}
    for resource_type, pattern, operation, permission in cycle(KINDS):
        if len(found) >= count:
            break
        name = random.choice(names)
        if random.random() < 0.7:
            name += str(random.randrange(count))
        if resource_type is ResourceType.CLUSTER:
            name = CLUSTER_NAME
        principal = random.choice(principals)
        if random.random() < 0.7:
            principal += str(random.randrange(count))
        host = random.choice(HOSTS)
        acl = AclBinding(resource_type, name, pattern, principal, host, operation, permission)
        found[acl] = None
    return list(found)
