"""Whether who applies a policy could not change ACLs any more afterwards.

A cluster does not tell a client who it is, in which groups it is, nor who its super users are. So
the principal is taken from the settings of the client, or told, the groups from a groups file, or
told; and what may be so, and is not known, is refused as well.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from aclbroker.acl.authorizer import Action, Decision, RuleKind, Session
from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.acl.groups import GROUP
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.broker.client.own_principal import brings_groups, own_principal

if TYPE_CHECKING:
    from aclbroker.broker.client.settings import ClientSettings

_NEEDED: Final = (AclOperation.ALTER, AclOperation.DESCRIBE)
"""What it takes on the cluster to change ACLs, and to see them."""


class Applier(NamedTuple):
    """Who applies a policy: the principals of the session that are known, the user's own first.

    ``host`` is its address. ``may_be_in_more`` tells that it may be in other groups as well, and
    ``may_be_super`` that it may be a super user though no rule says so.
    """

    principals: tuple[str, ...]
    host: str
    may_be_in_more: bool = True
    may_be_super: bool = True


def applier(
    told: Sequence[str],
    settings: ClientSettings,
    host: str,
    groups: Mapping[str, Sequence[str]] | None,
) -> Applier | None:
    """Return who applies a policy, None if neither what was told nor the settings name a user.

    ``told`` are principals; a group among them tells that they are all. ``groups`` has those of
    each principal by the broker's groups file; None if that is not known.
    """
    own = [each for each in told if not each.startswith(GROUP)]
    member_of = [each for each in told if each.startswith(GROUP)]
    if not own:
        principal = own_principal(settings)
        if principal is None:
            return None
        own = [principal]
    may_be_in_more = not member_of and (groups is None or brings_groups(settings))
    of_file = {group for each in own for group in (groups or {}).get(each, ())}
    known = (*own, *sorted(of_file.union(member_of)))
    return Applier(known, host, may_be_in_more)


class _Cluster:
    """The rules as far as they decide on the cluster."""

    def __init__(self, rules: Rules) -> None:
        here = rules.on(ResourceType.CLUSTER, CLUSTER_NAME)
        self.has_acls = bool(here.acls)
        self.groups = {acl.principal for acl in here.acls if acl.principal.startswith(GROUP)}
        self._authorizer = here.authorizer()

    def decide(self, who: Applier, operation: AclOperation, *group: str) -> Decision:
        """Decide on an operation of who applies it, as a member of one more group or of none."""
        session = Session((*who.principals, *group), who.host, "")
        action = Action(operation, ResourceType.CLUSTER, CLUSTER_NAME)
        return self._authorizer.decide(session, action)


def lockout(who: Applier, before: Rules, after: Rules) -> str | None:
    """Tell why a principal, at its own address, may not change ACLs any more; None if it may.

    Who may do so though no ACL says it is a super user, or the cluster allows what no ACL is about.
    A super user stays one; but the other loses the right with the first ACL on the cluster, so that
    is told as well. So is what a group gains or loses, if who applies the policy may be in it and
    would lose the right.
    """
    old, new = _Cluster(before), _Cluster(after)
    groups = sorted((old.groups | new.groups) - set(who.principals)) if who.may_be_in_more else []
    for operation in _NEEDED:
        for reason in _losses(who, operation, old, new, groups):
            return reason
    return None


def _losses(
    who: Applier, operation: AclOperation, old: _Cluster, new: _Cluster, groups: list[str]
) -> Iterator[str]:
    """Yield why it may not do an operation afterwards; ``groups`` are those it may be in."""
    name, decision = who.principals[0], new.decide(who, operation)
    could = bool(old.decide(who, operation))
    if not decision:
        unless = _unless([each for each in groups if new.decide(who, operation, each)])
        if could:
            yield f"{name} may {operation.name} the cluster now and may not afterwards{unless}"
        elif _is_denied(decision):
            yield f"an ACL denies {name} {operation.name} on the cluster"
        elif who.may_be_super and not old.has_acls and new.has_acls:
            yield (
                f"no ACL is about the cluster now, and the policy's do not allow {name} "
                f"{operation.name} on it{unless}; unless that is a super user, it cannot change "
                "ACLs then"
            )
    could_by = [each for each in groups if old.decide(who, operation, each)]
    for group in groups:
        after = new.decide(who, operation, group)
        if _is_denied(after) and not _is_denied(old.decide(who, operation, group)):
            # It denies whatever other groups allow.
            if could or could_by:
                yield f"an ACL denies {group} {operation.name} on the cluster then{_in_it(name)}"
        elif group in could_by and not after:
            yield f"{group} may {operation.name} the cluster now and may not then{_in_it(name)}"


def _is_denied(decision: Decision) -> bool:
    """Tell whether an ACL denies it, rather than that none allows it."""
    return not decision and decision.kind is not RuleKind.DEFAULT_DENY


def _unless(groups: list[str]) -> str:
    if not groups:
        return ""
    return f", unless it is in {' or '.join(groups)}, which {_NOT_KNOWN}"


def _in_it(name: str) -> str:
    return f", and whether {name} is in it {_NOT_KNOWN}"


_NOT_KNOWN: Final = "is not known here (--groups-file, or --principal with the group, tells it)"
