"""What makes two sets of rules different, as sets: ACLs and settings of brokers."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from typing import Final, Literal, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.hosts import canonical, subnet
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered

Field = Literal["permission", "host"]


class Change(NamedTuple):
    """An ACL that is gone and one that came, which differ in one field alone."""

    field: Field
    before: AclBinding
    after: AclBinding


@dataclass(frozen=True, slots=True)
class AclDifference:
    """The ACLs of one set that are not in the other, each as its own set writes it.

    ``removed`` and ``added`` hold all of them. ``changed`` pairs some of them up, each at most
    once, where a person would say that one ACL changed; this is a way to read, not a fact.
    """

    removed: tuple[AclBinding, ...]
    added: tuple[AclBinding, ...]
    changed: tuple[Change, ...]

    def by_principal(self) -> list[tuple[str, int, int]]:
        """Return each principal with how many ACLs it lost and got; the most first."""
        removed = Counter(acl.principal for acl in self.removed)
        added = Counter(acl.principal for acl in self.added)
        counts = [(who, removed[who], added[who]) for who in removed.keys() | added.keys()]
        return sorted(counts, key=lambda count: (-count[1] - count[2], count[0]))


def difference(before: Ruleset, after: Ruleset) -> AclDifference:
    """Compare the ACLs of two rule sets.

    Two ACLs are one if they differ only in how the same address or subnet is written.
    """
    old, new = _normalised(before), _normalised(after)
    removed = ordered(old[key] for key in old.keys() - new.keys())
    added = ordered(new[key] for key in new.keys() - old.keys())
    return AclDifference(removed, added, tuple(_changes(removed, added)))


def setting_differences(before: Ruleset, after: Ruleset) -> list[tuple[str, str, str]]:
    """Return the settings in which two rule sets differ: name, value before, value after."""
    found = []
    for name, value_of in _SETTINGS.items():
        old, new = value_of(before), value_of(after)
        if old != new:
            found.append((name, old, new))
    return found


def _listed(principals: Iterable[str]) -> str:
    return ";".join(sorted(principals))


def _broker_users(rules: Ruleset) -> str:
    users = rules.broker_users
    return f"{_listed(users.principals)} on {users.listener}" if users.principals else ""


_SETTINGS: Final[dict[str, Callable[[Ruleset], str]]] = {
    "super.users": lambda rules: _listed(rules.super_users),
    "broker.users": _broker_users,
    "allow.everyone.if.no.acl.found": lambda rules: str(
        rules.allow_everyone_if_no_acl_found
    ).lower(),
    "subnets as hosts of ACLs": lambda rules: str(rules.cidr).lower(),
}


def _normalised(rules: Ruleset) -> dict[AclBinding, AclBinding]:
    """The ACLs by their form in which a host has one text."""
    hosts = {acl.host: _normal_host(acl.host, rules.cidr) for acl in rules.acls}
    return {acl._replace(host=hosts[acl.host]): acl for acl in reversed(rules.acls)}


def _normal_host(host: str, cidr: bool) -> str:
    network = subnet(host) if cidr else None
    if network is None:
        return canonical(host)
    kind = IPv4Address if network.size.version == 4 else IPv6Address
    bits, length = kind(0).max_prefixlen, network.size.prefix_length
    address = kind(network.prefix << (bits - length))
    # A subnet of one address matches what the address matches.
    return str(address) if length == bits else f"{address}/{length}"


def _changes(removed: Iterable[AclBinding], added: Iterable[AclBinding]) -> Iterable[Change]:
    # A changed permission says more than a changed host, so it is looked for first.
    old, new = list(removed), list(added)
    fields: tuple[tuple[Field, Callable[[AclBinding], Hashable]], ...] = (
        ("permission", lambda acl: (*acl[:6],)),
        ("host", lambda acl: (*acl[:4], *acl[5:])),
    )
    for field, key_of in fields:
        came = defaultdict(list)
        for acl in reversed(new):
            came[key_of(acl)].append(acl)
        pairs = [(acl, came[key_of(acl)].pop()) for acl in old if came[key_of(acl)]]
        yield from (Change(field, *pair) for pair in pairs)
        gone = {acl for pair in pairs for acl in pair}
        old = [acl for acl in old if acl not in gone]
        new = [acl for acl in new if acl not in gone]
