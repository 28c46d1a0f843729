"""The arguments of `aclbroker audit JOB`.

The pipeline and Spark are imported when it runs and not before, so that the server starts as fast
without them.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aclbroker.pipeline.command.options import AuditOptions


@dataclass(frozen=True, slots=True)
class AuditCommand:
    """Answer a question from the authorization logs of a cluster."""

    options: AuditOptions

    def run(self) -> int:
        """Return the exit status, one of `pipeline.command.run`'s."""
        from aclbroker.cli.acl_source import described
        from aclbroker.pipeline.command.run import run

        return run(self.options, described)


def add_audit(commands: Any, *, with_options: bool) -> None:
    """Add the command to the subparsers of `aclbroker`; its options only if it is asked for."""
    audit = commands.add_parser(
        "audit",
        help="analyse who used which rights, and which are not needed",
        description="Analyse the authorization logs of this broker or of a Kafka with Spark.",
        allow_abbrev=False,
    )
    if with_options:
        from aclbroker.pipeline.command.arguments import add_jobs

        add_jobs(audit)


def audit_command(options: argparse.Namespace, words: Sequence[str]) -> AuditCommand:
    """The command that parsed arguments ask for; ``words`` are the process's."""
    from aclbroker.pipeline.command.arguments import audit_options

    return AuditCommand(audit_options(options, ["aclbroker", *words]))
