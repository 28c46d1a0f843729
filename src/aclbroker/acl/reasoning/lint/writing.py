"""ACLs that are written as nobody means them: they match, but not what their authors think."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from aclbroker.acl.bindings import (
    WILDCARD,
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.lint.findings import (
    Finding,
    Fix,
    Severity,
    removing,
    worse_if_denied,
)
from aclbroker.acl.reasoning.lint.scopes import is_asked, kafka_form, said_by
from aclbroker.acl.reasoning.names import is_topic_name, is_topic_prefix

_TYPES: Final = {"user": "User", "group": "Group"}


def written_wrongly(acls: Iterable[AclBinding], *, cidr: bool) -> Iterator[Finding]:
    """Yield findings of how ACLs are written.

    With ``cidr`` the ACLs are of a broker that reads all forms of addresses.
    """
    acls = list(acls)
    for acl in acls:
        if not cidr and acl.host != WILDCARD and kafka_form(acl.host) != acl.host:
            yield _host_form(acl)
        if acl.operation != AclOperation.ALL and not is_asked(acl):
            yield _operation(acl)
        finding = _name(acl) or _principal(acl)
        if finding is not None:
            yield finding
    yield from _similar_principals(acls)


def _host_form(acl: AclBinding) -> Finding:
    form = kafka_form(acl.host)
    proof = (
        f"Kafka compares the text {acl.host} with {form}, as which it prints the address, so that "
        "the ACL matches nobody there; this broker compares addresses."
    )
    fix = Fix((acl._replace(host=form),), (acl,))
    return Finding("host-form", worse_if_denied(acl), acl, proof, (), fix)


def _operation(acl: AclBinding) -> Finding:
    implied = [each for each in AclOperation if said_by(acl) >> each & 1]
    names = ", ".join(each.name for each in implied)
    kind = acl.resource_type.name
    proof = f"No {kind} has the operation {acl.operation.name}; all that it allows is {names}."
    fix = Fix(tuple(acl._replace(operation=each) for each in implied), (acl,))
    return Finding("operation-not-of-type", Severity.WARNING, acl, proof, (), fix, is_safe=True)


def _name(acl: AclBinding) -> Finding | None:
    name, is_prefix = acl.resource_name, acl.pattern_type == PatternType.PREFIXED
    if name != name.strip():
        proof = f"The name {name!r} has blanks around it, and is not {name.strip()!r}."
        return removing("blanks", worse_if_denied(acl), acl, proof)
    if name.endswith(WILDCARD) and (is_prefix or name != WILDCARD):
        if is_prefix:
            proof = (
                f"It is PREFIXED, so that it holds for names that begin with {name}, * included."
            )
        else:
            proof = f"It is LITERAL {name}, which is no prefix; PREFIXED {name[:-1]} would be one."
        return removing("literal-star", worse_if_denied(acl), acl, proof)
    if acl.resource_type is not ResourceType.TOPIC or name == WILDCARD:
        return None
    if is_topic_prefix(name) if is_prefix else is_topic_name(name):
        return None
    proof = "Names of topics have 1 to 249 letters, digits, dots, underscores and hyphens."
    return removing("impossible-name", worse_if_denied(acl), acl, proof)


def _principal(acl: AclBinding) -> Finding | None:
    principal = acl.principal
    kind, _, name = principal.partition(":")
    if (kind, name) != (kind.strip(), name.strip()):
        proof = f"The principal {principal!r} has blanks around its type or its name."
        return removing("blanks", worse_if_denied(acl), acl, proof)
    if name.endswith(WILDCARD) and principal != WILDCARD_PRINCIPAL:
        proof = f"Only {WILDCARD_PRINCIPAL} stands for others; {principal} is one principal's name."
        return removing("literal-star", worse_if_denied(acl), acl, proof)
    known = _TYPES.get(kind.casefold(), kind)
    if kind != known:
        proof = f"Types of principals are compared with their case: {kind} is not {known}."
        return removing("similar-principal", worse_if_denied(acl), acl, proof)
    return None


def _similar_principals(acls: Iterable[AclBinding]) -> Iterator[Finding]:
    """Yield a finding for each ACL of a principal that is written otherwise in more of them."""
    counts = Counter(acl.principal for acl in acls)
    usual: dict[str, str] = {}
    for principal, _ in sorted(counts.items(), key=lambda each: (-each[1], each[0])):
        usual.setdefault(_folded(principal), principal)
    for acl in acls:
        other = usual[_folded(acl.principal)]
        if other == acl.principal or _principal(acl) is not None:
            continue
        proof = (
            f"{acl.principal} is not {other}, which has {counts[other]} of the ACLs: principals "
            "are compared with their case."
        )
        yield removing("similar-principal", Severity.WARNING, acl, proof)


def _folded(principal: str) -> str:
    kind, _, name = principal.partition(":")
    return f"{kind.strip()}:{name.strip()}".casefold()
