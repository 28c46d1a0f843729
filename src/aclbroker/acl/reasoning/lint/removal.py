"""ACLs that can go, all of them together, without any decision changing.

One after the other is taken away if those that are left decide all of it alike. So of two that make
each other superfluous one stays, and of what stays nothing more could go. That holds for every
session: what lies around an ACL counts wherever the ACL does.

Whether an operation is allowed on *any* resource of a type (KIP-679) stays as it is, too: brokers
ask that about WRITE, which only WRITE and ALL allow, and what takes their place or denies them
holds for all names that they hold for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from aclbroker.acl.bindings import (
    CLUSTER_NAME,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclPermission,
    PatternType,
)
from aclbroker.acl.hosts import subnet
from aclbroker.acl.reasoning.lint.findings import Finding, Severity, removing, worse_if_denied
from aclbroker.acl.reasoning.lint.overlap import Allowed
from aclbroker.acl.reasoning.lint.scopes import (
    NOWHERE,
    HostTree,
    Pattern,
    PatternsAround,
    Scope,
    is_asked,
    kafka_form,
    pattern_of_acl,
    said_by,
)
from aclbroker.acl.reasoning.lint.standing import Standing
from aclbroker.acl.reasoning.rules import Rules

_ALLOW, _DENY = AclPermission.ALLOW, AclPermission.DENY


class Removal:
    """What can go from a set of rules: ``findings``, one for each ACL that never decides.

    ``standing`` has what is left of the others. An ACL that never decides may be all that closes
    names, where those without any ACL are open to everyone; then it has no fix.
    """

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        hosts = HostTree(rules.hosts(), rules.cidr)
        self.patterns = {acl: pattern_of_acl(acl) for acl in rules.acls}
        self._closing = _Closing(
            self.patterns.values(), is_open=rules.allow_everyone_if_no_acl_found
        )
        dead: list[Finding] = []
        scopes: dict[AclBinding, Scope] = {}
        for acl, pattern in self.patterns.items():
            if pattern is None:
                dead.append(_of_no_cluster(acl))
                continue
            finding = self._never_decides(acl, hosts)
            if finding is None:
                scopes[acl] = Scope(pattern, acl.principal, hosts.number(acl.host))
            else:
                dead.append(finding)
        self.standing = Standing(scopes, hosts, rules.groups)
        self.findings = [*self._superfluous(), *self._idle(), *self._dead(dead)]

    def _never_decides(self, acl: AclBinding, hosts: HostTree) -> Finding | None:
        """Return why an ACL decides about no request; None if it may."""
        if hosts.number(acl.host) == NOWHERE:
            return _of_nobody(acl)
        if not said_by(acl):
            proof = (
                f"No {acl.resource_type.name} has the operation {acl.operation.name}, so that no "
                "request asks for it."
            )
            return removing("operation-never-asked", worse_if_denied(acl), acl, proof)
        if acl.principal != WILDCARD_PRINCIPAL and self._rules.is_super_user(acl.principal):
            severity = Severity.ERROR if acl.permission == _DENY else Severity.NOTE
            proof = "It is for a super user, who may do everything before any ACL is looked at."
            return removing("super-user", severity, acl, proof)
        return None

    def _superfluous(self) -> Iterator[Finding]:
        """Take away what others decide alike, and yield a finding of each."""
        standing = self.standing
        for acl in sorted(standing.scopes, key=_preference):
            if standing.same(acl) is None:
                standing.add(acl)
        shadowed: list[AclBinding] = []
        redundant = [acl for acl in standing.scopes if standing.same(acl) != acl]
        for acl in sorted(standing, key=self._order):
            standing.remove(acl)
            is_denied = standing.denied_without(acl)
            if is_denied is None:
                standing.add(acl)
            elif is_denied and acl.permission == _ALLOW:
                shadowed.append(acl)
            else:
                redundant.append(acl)
        for acl in (*shadowed, *redundant):
            self._closing.discard(self.patterns[acl])
        yield from map(self._shadowed, shadowed)
        yield from map(self._redundant, redundant)

    def _order(self, acl: AclBinding) -> tuple[Any, ...]:
        """Return a key that sorts those first which should go, if they or others can.

        That is so of ACLs of the same names and principals alone: of the hosts that together are
        all of another, and of the operations that together are ALL.
        """
        return (
            -len(self.standing.hosts.around(self.standing.scopes[acl].host)),
            said_by(acl).bit_count(),
            # Of those that say the same, that stays which names what it means.
            is_asked(acl),
            acl,
        )

    def _shadowed(self, acl: AclBinding) -> Finding:
        proof = "It never allows anything: DENYs, which come first, hold for all that it allows."
        because = self.standing.deciding(acl, (_DENY,))
        return removing("shadowed", Severity.WARNING, acl, proof, *because)

    def _redundant(self, acl: AclBinding) -> Finding:
        permissions = (_DENY,) if acl.permission == _DENY else (_ALLOW, _DENY)
        because = self.standing.deciding(acl, permissions)
        if self.standing.same(acl) is not None:
            proof = "Another ACL says the same, written otherwise."
        elif any(each.permission != acl.permission for each in because):
            proof = (
                "Without it nothing changes: others allow what it allows, or DENYs take it back."
            )
        else:
            does = "denies" if acl.permission == _DENY else "allows"
            proof = f"Without it nothing changes: others hold for all that it {does}."
        return removing("redundant", Severity.WARNING, acl, proof, *because)

    def _idle(self) -> Iterator[Finding]:
        """Take away DENYs that hold for nothing that is allowed, and yield a finding of each."""
        standing = self.standing
        denies = [acl for acl in standing if acl.permission == _DENY]
        # With the ALLOWs that are shadowed: these DENYs are what shadows them.
        allowed = Allowed(standing, denies)
        for acl in denies:
            if not allowed.overlaps(acl) and self._closing.can_go(self.patterns[acl]):
                standing.remove(acl)
                self._closing.discard(self.patterns[acl])
                proof = "It takes back nothing: no ACL allows any of it."
                yield removing("idle-deny", Severity.NOTE, acl, proof)

    def _dead(self, findings: Iterable[Finding]) -> Iterator[Finding]:
        for finding in findings:
            pattern = self.patterns[finding.acl]
            if self._closing.can_go(pattern):
                self._closing.discard(pattern)
                yield finding
            else:
                why = (
                    "all it does is to keep names closed, which would be open to everyone "
                    "without any ACL"
                )
                yield finding._replace(fix=None, is_safe=False, no_fix=why)


class _Closing:
    """The patterns that have ACLs, which closes their names where those without any are open."""

    def __init__(self, patterns: Iterable[Pattern | None], *, is_open: bool) -> None:
        self._is_open = is_open
        self._counts = Counter(each for each in patterns if each is not None)
        self._around = PatternsAround(self._counts)

    def can_go(self, pattern: Pattern | None) -> bool:
        """Tell whether an ACL of a pattern can go without opening any name."""
        if not self._is_open or pattern is None:
            return True
        around = self._around(pattern)
        return self._counts[pattern] > 1 or any(self._counts[each] for each in around[:-1])

    def discard(self, pattern: Pattern | None) -> None:
        """Note that one ACL of a pattern is gone."""
        if pattern is not None:
            self._counts[pattern] -= 1


def _of_no_cluster(acl: AclBinding) -> Finding:
    """Return the finding of an ACL of a cluster that has another name."""
    proof = f"The only cluster is called {CLUSTER_NAME} in ACLs, whatever its id is."
    return removing("name-of-no-cluster", worse_if_denied(acl), acl, proof)


def _of_nobody(acl: AclBinding) -> Finding:
    """Return the finding of an ACL whose host matches no peer."""
    if subnet(acl.host) is not None:
        proof = (
            f"{acl.host} is a subnet, which matches nobody unless aclbroker.acl.host.cidr=true; "
            "Kafka has no such setting."
        )
        return removing("subnet-matches-nobody", worse_if_denied(acl), acl, proof)
    proof = "Hosts are compared with the addresses of peers, and this is no address."
    if acl.host.strip() != acl.host:
        proof = "Hosts are compared with the addresses of peers, which have no blanks around them."
    return removing("host-matches-nobody", worse_if_denied(acl), acl, proof)


def _preference(acl: AclBinding) -> tuple[Any, ...]:
    """Return a key that sorts first which of ACLs of the same meaning should stay."""
    host = acl.host
    return kafka_form(host) != host, acl.pattern_type != PatternType.LITERAL, len(host), acl
