"""ACLs and resources as one line of text, for tables that people read."""

from __future__ import annotations

import json
import re
from typing import Final

from aclbroker.broker.acl.bindings import AclBinding

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


def resource_text(resource_type: str, name: str | None) -> str:
    """Return a resource as one line, such as ``TOPIC orders``; without a name the request had none.

    Names are written as `acl_text` writes them.
    """
    return resource_type if name is None else f"{resource_type} {_word(name)}"


def _word(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.isprintable():
        return text
    return json.dumps(text)
