"""ACLs as one line of text, for tables that people read."""

from __future__ import annotations

import json
import re
from typing import Final

from broker.acl.bindings import WILDCARD, AclBinding

_PLAIN: Final = re.compile(r"[^\s\"\\]+")


def acl_text(acl: AclBinding) -> str:
    """Return an ACL as one line, such as ``ALLOW READ on TOPIC LITERAL orders to User:a from *``.

    Different ACLs are different texts: what holds a space, a quote or an unprintable character is
    written as a JSON string.
    """
    return (
        f"{acl.permission.name} {acl.operation.name} on {acl.resource_type.name} "
        f"{acl.pattern_type.name} {_word(acl.resource_name)} to {_word(acl.principal)} "
        f"from {_word(acl.host)}"
    )


def host_text(host: str | None) -> str:
    """Return the host of a question, which is None if no ACL tells hosts apart."""
    return WILDCARD if host is None else host


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text)
