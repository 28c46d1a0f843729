"""Applies a policy file to a running cluster, after it has shown what that changes."""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from aclbroker.cli.cluster import add_cluster_options, confirmed, failed, on_cluster, told
from aclbroker.cli.rules_source import add_beside, principal

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding
    from aclbroker.acl.files.policy import Policy
    from aclbroker.acl.reasoning.rules import Rules
    from aclbroker.broker.client.session import Session
    from aclbroker.cli.policy.plan import Plan

_RIGHTS_SHOWN: Final = 20
"""How many regions of rights are shown that are gained or lost, a line each."""

_AT_ONCE: Final = 1000
"""How many ACLs one request creates."""


@dataclass(frozen=True, slots=True)
class PolicyCommand:
    """Have a cluster have the ACLs of a policy file."""

    file: str
    bootstrap_server: str
    command_config: str | None = None
    principals: Sequence[str] = ()
    broker_properties: str | None = None
    groups_file: str | None = None
    prune: bool = False
    dry_run: bool = False
    force: bool = False
    may_lock_out: bool = False

    def run(self) -> int:
        """Run the command; return 0 if the cluster has the ACLs, or the plan was shown, else 1.

        It is 1 also if the question was not answered with y.
        """
        from aclbroker.acl.files.policy import PolicyError
        from aclbroker.cli.acl_files import acls_of_file
        from aclbroker.cli.rules_source import SourceError, rules_beside

        try:
            policy = acls_of_file(Path(self.file).read_bytes(), self.file).policy
            beside = rules_beside(self.broker_properties, self.groups_file)
        except (PolicyError, SourceError) as error:
            return failed(*str(error).splitlines())
        except OSError as error:
            return failed(f"{self.file}: cannot be read: {error.strerror or error}")
        return on_cluster(
            self.bootstrap_server,
            self.command_config,
            lambda session: self._apply(policy, beside, session),
        )

    def _apply(self, policy: Policy, beside: Rules, session: Session) -> int:
        from aclbroker.broker.client.acls import describe_acls
        from aclbroker.broker.client.cluster_info import cluster_id
        from aclbroker.cli.policy.plan import plan

        if policy.cluster is not None and cluster_id(session) != policy.cluster:
            return failed(f"{self.file} is of the cluster {policy.cluster}, and this is another")
        there = describe_acls(session)
        changes = plan(policy.acls, there, prune=self.prune)
        if not changes:
            told("The cluster has these ACLs already.")
            return 0
        before = replace(beside, acls=there)
        after = replace(beside, acls=list(changes.outcome(there)))
        told(*changes.lines(), *_rights(before, after))
        reason = None if self.may_lock_out else self._lockout(session, before, after)
        if reason is not None:
            return failed(f"{reason}. Nothing was changed; --may-lock-out applies it all the same.")
        if self.dry_run:
            return 0
        if not self.force and not confirmed(f"Make these {_count(changes)} changes?"):
            return failed("nothing was changed")
        _make(changes, session)
        told(f"{len(changes.create)} ACLs created, {len(changes.remove)} removed.")
        return 0

    def _lockout(self, session: Session, before: Rules, after: Rules) -> str | None:
        from aclbroker.broker.client.settings import read_settings
        from aclbroker.cli.policy.lockout import applier, lockout

        tells_groups = self.groups_file is not None or self.broker_properties is not None
        groups = before.groups if tells_groups else None
        settings = read_settings(self.command_config)
        who = applier(self.principals, settings, session.own_host, groups)
        if who is None:
            return "the settings do not tell as which principal they log in; --principal tells it"
        if self.broker_properties is not None:
            return lockout(who._replace(may_be_super=False), before, after)
        # Whether the cluster takes hosts for subnets is not known either.
        return lockout(who, replace(before, cidr=True), replace(after, cidr=True))


def _rights(before: Rules, after: Rules) -> Iterable[str]:
    """Return lines that say which rights are gained and lost, shown below the plan.

    Super users, groups, and settings that decide where no ACL does, may not be known here.
    """
    from aclbroker.acl.groups import GROUP
    from aclbroker.acl.reasoning.difference import compare
    from aclbroker.cli.answers import differences

    compared = compare(before, after)
    asks_groups = not before.groups and any(
        acl.principal.startswith(GROUP) for acl in (*before.acls, *after.acls)
    )
    but = ["Who is in a group is not known here: members may gain or lose more."] * asks_groups
    if not compared.differences:
        return ["This changes no right of anybody.", *but]
    regions = differences(compared).lines[::2]  # an example stands behind each
    lines = [f"  {line}" for line in regions[:_RIGHTS_SHOWN]]
    left_out = len(regions) - len(lines)
    more = [f"  and {left_out} more, which aclbroker diff shows"] if left_out else []
    return ["Rights gained (+) and lost (-):", *lines, *more, *but]


def _make(changes: Plan, session: Session) -> None:
    """Make the changes in their order; raises `ClientError` at the first that is refused."""
    from aclbroker.broker.client.acls import MOST_FILTERS, create_acls, delete_acls, exactly

    for part in _parts(changes.create, _AT_ONCE):
        create_acls(session, part)
    for part in _parts(changes.remove, MOST_FILTERS):
        delete_acls(session, [exactly(acl) for acl in part])


def _parts(acls: Sequence[AclBinding], at_once: int) -> Iterable[Sequence[AclBinding]]:
    """Return ACLs in pieces, of which none has DENYs and ALLOWs: one request has no order."""
    from itertools import groupby

    for _, group in groupby(acls, key=lambda acl: acl.permission):
        same = list(group)
        for start in range(0, len(same), at_once):
            yield same[start : start + at_once]


def _count(changes: Plan) -> int:
    return len(changes.create) + len(changes.remove)


def add_policy(commands: Any) -> None:
    """Add the command to the subparsers of `aclbroker`."""
    policy = commands.add_parser(
        "policy",
        help="bring the ACLs of a policy file into a cluster",
        description="Bring sets of ACLs, as files, into clusters.",
        allow_abbrev=False,
    )
    actions = policy.add_subparsers(dest="action", required=True)
    apply = actions.add_parser(
        "apply",
        help="create what a cluster lacks of a file's ACLs",
        description="Show what a cluster lacks of a policy file's ACLs, ask, and create it.",
        allow_abbrev=False,
    )
    apply.add_argument(
        "file", metavar="FILE", help="a policy file (docs/policy.md), or another file of ACLs"
    )
    add_cluster_options(apply)
    apply.add_argument(
        "--principal",
        dest="principals",
        metavar="TYPE:NAME",
        type=principal,
        action="append",
        default=[],
        help="who applies it, where the settings of the login do not tell, and, as Group:NAME, in "
        "which groups that is; may be repeated",
    )
    add_beside(apply)
    apply.add_argument(
        "--prune", action="store_true", help="remove the cluster's other ACLs as well"
    )
    apply.add_argument("--dry-run", action="store_true", help="show what would change, and end")
    apply.add_argument("--force", action="store_true", help="ask nothing")
    apply.add_argument(
        "--may-lock-out",
        action="store_true",
        help="apply it even if who applies it could not change ACLs any more",
    )


def policy_command(options: argparse.Namespace) -> PolicyCommand:
    """Return the command that parsed arguments describe."""
    given = vars(options)
    names = ("command", "action")
    return PolicyCommand(**{name: given[name] for name in given if name not in names})
