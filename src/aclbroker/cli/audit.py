"""The arguments of `aclbroker audit JOB`.

The pipeline and Spark are imported only when the command runs, so that the server starts fast.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclbroker.acl.files.policy import Policy
    from aclbroker.pipeline.acls.history import AclHistory
    from aclbroker.pipeline.command.options import AuditOptions


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """Answer a question from the authorization logs of a cluster."""

    options: AuditOptions

    def run(self) -> int:
        """Run the job and return an exit status of `pipeline.command.run`."""
        from aclbroker.pipeline.command.run import run

        return run(self.options, _described, _history)


def _described(url: str, command_config: str | None) -> Policy:
    # The client of a cluster is imported only where one is asked.
    from aclbroker.acl.files.policy import Policy
    from aclbroker.cli.acl_source import described, of_place
    from aclbroker.cli.rules_source import KAFKA

    if url.startswith(KAFKA):
        return described(url.removeprefix(KAFKA), command_config)
    return Policy(of_place(url))


def _history(url: str, command_config: str | None) -> AclHistory:
    from aclbroker.broker.stores.reading import PastChange
    from aclbroker.cli.rules_source import SourceError
    from aclbroker.cli.store_source import past_of
    from aclbroker.pipeline.acls.history import AclChange, Maker, history_of
    from aclbroker.pipeline.errors import InputError

    def change(each: PastChange) -> AclChange:
        position, acl, removed, origin = each
        if origin is None:
            return AclChange(position, acl, removed, None, None)
        made_by = Maker(origin.principal, origin.host)
        return AclChange(position, acl, removed, made_by, origin.time_ms)

    try:
        found = past_of(url, command_config=command_config).history()
    except SourceError as error:
        raise InputError(f"--history {url}: {error}") from error
    return history_of(
        map(change, found.changes),
        horizon=found.horizon,
        last=found.position,
        cluster=found.cluster_id,
    )


def add_audit(commands: Any, *, with_options: bool) -> None:
    """Add the command to the subparsers of `aclbroker`, with its options only if asked for."""
    audit = commands.add_parser(
        "audit",
        help="analyse who used which rights, and which are not needed",
        description="Analyse the authorization logs of this broker or of a Kafka.",
        allow_abbrev=False,
    )
    if with_options:
        from aclbroker.pipeline.command.arguments import add_jobs

        add_jobs(audit)


def audit_command(options: argparse.Namespace, words: Sequence[str]) -> AuditCommand:
    """Return the command that parsed arguments describe; ``words`` are all arguments, unparsed."""
    from aclbroker.pipeline.command.arguments import audit_options

    return AuditCommand(audit_options(options, ["aclbroker", *words]))
