"""The rules of authorization as plainly as they can be written: what the fast code is held to."""

from collections.abc import Collection, Iterable
from ipaddress import ip_address, ip_network

from aclbroker.acl.bindings import AclBinding, PatternType, ResourceType
from aclbroker.acl.bindings import AclOperation as Op
from aclbroker.acl.bindings import AclPermission as Permission

IMPLIED = {
    Op.DESCRIBE: {Op.READ, Op.WRITE, Op.DELETE, Op.ALTER},
    Op.DESCRIBE_CONFIGS: {Op.ALTER_CONFIGS},
}


def address(text: str):
    """The address that a text means, or the text."""
    try:
        found = ip_address(text)
    except ValueError:
        return text
    return getattr(found, "ipv4_mapped", None) or found


def host_matches(host: str, peer: str, cidr: bool) -> bool:
    everywhere = peer.partition("%")[0] if peer else peer
    if host == "*" or address(host) in {address(peer), address(everywhere)}:
        return True
    if not cidr or "/" not in host:
        return False
    try:
        return address(peer) in ip_network(host, strict=False)
    except (ValueError, AttributeError):
        return False


def applies(acl: AclBinding, principals: Collection[str], peer: str, cidr: bool) -> bool:
    return acl.principal in {*principals, "User:*"} and host_matches(acl.host, peer, cidr)


def pattern_matches(acl: AclBinding, resource_type: ResourceType, name: str) -> bool:
    if acl.resource_type != resource_type:
        return False
    if acl.pattern_type == PatternType.PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, "*")


def authorize(
    acls: Iterable[AclBinding],
    principals: Collection[str],
    peer: str,
    operation: Op,
    resource_type: ResourceType,
    name: str,
    *,
    super_users: Collection[str] = (),
    allow_if_no_acl: bool = False,
    cidr: bool = False,
) -> bool:
    if set(principals) & set(super_users):
        return True
    matching = [acl for acl in acls if pattern_matches(acl, resource_type, name)]
    if not matching:
        return allow_if_no_acl
    mine = [acl for acl in matching if applies(acl, principals, peer, cidr)]
    denied = {acl.operation for acl in mine if acl.permission == Permission.DENY}
    allowed = {acl.operation for acl in mine if acl.permission == Permission.ALLOW}
    if denied & {operation, Op.ALL}:
        return False
    return bool(allowed & ({operation, Op.ALL} | IMPLIED.get(operation, set())))


def authorize_by_type(
    acls: Collection[AclBinding],
    principals: Collection[str],
    peer: str,
    operation: Op,
    resource_type: ResourceType,
    *,
    cidr: bool = False,
    **defaults,
) -> bool:
    """The default method of Kafka's Authorizer interface, step by step."""
    request = (principals, peer, operation, resource_type)
    if authorize(acls, *request, "hardcode", cidr=cidr, **defaults):
        return True
    patterns: dict[Permission, set[tuple[PatternType, str]]] = {
        Permission.ALLOW: set(),
        Permission.DENY: set(),
    }
    for acl in acls:
        named = acl.resource_type == resource_type and acl.operation in (operation, Op.ALL)
        if named and applies(acl, principals, peer, cidr):
            patterns[acl.permission].add((acl.pattern_type, acl.resource_name))
    allowed, denied = patterns[Permission.ALLOW], patterns[Permission.DENY]
    if (PatternType.LITERAL, "*") in denied:
        return False
    if (PatternType.LITERAL, "*") in allowed:
        return True
    for pattern_type, name in allowed:
        same_literal = pattern_type == PatternType.LITERAL and (pattern_type, name) in denied
        prefix = any(p == PatternType.PREFIXED and name.startswith(n) for p, n in denied)
        if not same_literal and not prefix:
            return True
    return False
