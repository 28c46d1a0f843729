"""ACLs as one line of text, for people."""

from __future__ import annotations

import json
import re
from typing import Final

from aclbroker.acl.bindings import AclBinding

_PLAIN: Final = re.compile(r"[^\s\"\\]+")


def acl_text(acl: AclBinding) -> str:
    """Return an ACL as one line, such as ``ALLOW READ on TOPIC LITERAL orders to User:a from *``.

    Different ACLs are different texts: see `word`.
    """
    return (
        f"{acl.permission.name} {acl.operation.name} on {acl.resource_type.name} "
        f"{acl.pattern_type.name} {word(acl.resource_name)} to {word(acl.principal)} "
        f"from {word(acl.host)}"
    )


def word(text: str) -> str:
    """Return a text as one word: as a JSON string if it has a space, a quote or the like."""
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text)
