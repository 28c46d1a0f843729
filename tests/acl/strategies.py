"""Random ACLs, filters and requests, from so few words that they often meet."""

from hypothesis import strategies as st

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)

RESOURCE_TYPES = [ResourceType.TOPIC, ResourceType.GROUP]
OPERATIONS = [
    AclOperation.ALL,
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DESCRIBE,
    AclOperation.ALTER_CONFIGS,
    AclOperation.DESCRIBE_CONFIGS,
]
PRINCIPALS = ["User:alice", "User:bob", "User:*", "Group:staff", ":"]
PEERS = [
    "10.0.0.1", "::ffff:10.0.0.1", "10.0.7.7", "0:0:0:0:0:0:0:1", "2001:db8::1", "socket",
    "fe80::1%eth0", "fe80:0:0:0:0:0:0:1%eth1",
]  # fmt: skip
HOSTS = [
    *PEERS, "*", "*", "*", "::1", "10.0.0.0/24", "10.0.0.1/16", "::/0", "0.0.0.0/0", "", "1/2",
    "fe80::1",
]  # fmt: skip

names = st.sampled_from(["a", "ab", "abc", "*", "hardcode", "é𝄞", "é"])
concrete_patterns = st.sampled_from([PatternType.LITERAL, PatternType.PREFIXED])
permissions = st.sampled_from([AclPermission.ALLOW, AclPermission.DENY])

bindings = st.builds(
    AclBinding,
    st.sampled_from(RESOURCE_TYPES),
    names,
    concrete_patterns,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    permissions,
)

is_added = st.sampled_from([True, True, False])
changes = st.lists(st.tuples(is_added, bindings), max_size=30)
"""Bindings to be added (True, the more often) or removed."""

sessions = st.builds(
    Session,
    st.lists(st.sampled_from(PRINCIPALS), min_size=1, max_size=2).map(tuple),
    st.sampled_from(PEERS),
    st.just("PLAINTEXT"),
)

any_filters = st.builds(
    AclFilter,
    st.sampled_from([ResourceType.ANY, ResourceType.UNKNOWN, *RESOURCE_TYPES]),
    st.none() | names,
    st.sampled_from(PatternType),
    st.none() | st.sampled_from(PRINCIPALS),
    st.none() | st.sampled_from(HOSTS),
    st.sampled_from([AclOperation.ANY, AclOperation.UNKNOWN, *OPERATIONS]),
    st.sampled_from(AclPermission),
)


@st.composite
def filters_near(draw, bindings):
    """Filters of any kind, most of them one of the bindings with fields left open or changed."""
    if not bindings or draw(st.integers(0, 4)) == 0:
        return draw(any_filters)
    fields = zip(draw(st.sampled_from(bindings)), AclFilter(), draw(any_filters), strict=True)
    kept, opened, changed = range(3)
    which = st.sampled_from([kept, kept, opened, opened, changed])
    return AclFilter._make(field[draw(which)] for field in fields)
