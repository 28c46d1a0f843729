"""Changes of ACLs as command lines of `aclbroker acls`, for answers that propose some."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from aclbroker.acl.bindings import AclBinding


def server_options(options: argparse.Namespace) -> str:
    """Return the options of the cluster that was asked about, quoted, or of any one."""
    from aclbroker.cli.acls.lines import ANY_SERVER

    if options.bootstrap_server is None:
        return ANY_SERVER
    words = ["--bootstrap-server", options.bootstrap_server]
    if options.command_config is not None:
        words += ["--command-config", options.command_config]
    return shlex.join(words)


class Step(NamedTuple):
    """A command line, and the ACLs that it adds or removes."""

    line: str
    acls: Sequence[AclBinding]


def steps(add: Iterable[AclBinding], remove: Iterable[AclBinding], server: str) -> list[Step]:
    """Return the lines that make a change, one after the other; ``server`` is of `server_options`.

    Raises ValueError with the reason if the command cannot say it.
    """
    from aclbroker.cli.acls.lines import add_line, remove_line

    found = []
    for _, group in groupby(sorted(add), key=lambda acl: (acl[:5], acl.permission)):
        acls = list(group)
        found.append(Step(add_line(acls, server), acls))
    return [*found, *(Step(remove_line([acl], server), [acl]) for acl in remove)]
