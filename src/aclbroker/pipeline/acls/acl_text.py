"""ACLs and resources as one line of text, for tables that people read."""

from __future__ import annotations

from aclbroker.acl.acl_text import acl_text as acl_text
from aclbroker.acl.acl_text import word as word


def resource_text(resource_type: str, name: str | None) -> str:
    """Return a resource as one line, such as ``TOPIC orders``; without a name the request had none.

    Names are written as `acl_text` writes them.
    """
    return resource_type if name is None else f"{resource_type} {word(name)}"
