"""Reads files of ACLs in every supported form, also files of kafka-acls.sh commands."""

from __future__ import annotations

from typing import Final

from aclbroker.acl.files.policy import Policy
from aclbroker.acl.files.reading import Form, Found, acls_of
from aclbroker.cli.acls.script import is_script, parse_script
from aclbroker.terminal import complain


def _read_commands(text: str, source: str) -> Policy:
    """Return the ACLs that commands create; print how many stand in comments alone."""
    script = parse_script(text, source)
    if script.left_out:
        complain(
            f"aclbroker: {source}: {script.left_out} ACLs stand in comments alone "
            "('# Not done'), and are left out"
        )
    return Policy(script.acls)


COMMANDS: Final = Form("a file of kafka-acls.sh commands", _read_commands)


def acls_of_file(content: bytes, source: str) -> Found:
    """Return the ACLs of a file's content. Raises PolicyError, which names ``source``."""
    return acls_of(content, source, lambda text: COMMANDS if is_script(text, source) else None)
