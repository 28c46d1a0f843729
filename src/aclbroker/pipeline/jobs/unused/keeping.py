"""The keep-list of a user: ACLs of some principals, or on some resources, that stay in any case."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from aclbroker.acl.bindings import AclBinding, ResourceType
from aclbroker.pipeline.ingest.record import RESOURCES


class Keep(NamedTuple):
    """An entry of a keep-list; ``text`` is the entry as the user wrote it.

    ``name`` matches names of resources of ``resource_type``, or principals if that is None.
    """

    text: str
    resource_type: ResourceType | None
    name: re.Pattern[str]

    def keeps(self, acl: AclBinding) -> bool:
        """Tell whether the entry keeps an ACL."""
        if self.resource_type is None:
            return self.name.fullmatch(acl.principal) is not None
        is_of = acl.resource_type is self.resource_type
        return is_of and self.name.fullmatch(acl.resource_name) is not None


def kept_principals(text: str) -> list[Keep]:
    """Return the entries for principals ``Type:name``, where ``*`` stands for any characters.

    ``@FILE`` names a file with one principal a line. Raises ArgumentTypeError, which argparse
    shows.
    """
    found = []
    for each in _entries(text):
        type_, colon, name = each.partition(":")
        if not (type_ and colon and name):
            reason = f"{each!r} is no principal such as User:app, or User:dr-*"
            raise argparse.ArgumentTypeError(reason)
        found.append(Keep(each, None, _pattern(each)))
    return found


def kept_resources(text: str) -> list[Keep]:
    """Return the entries for resources ``TYPE:NAME``, where ``*`` stands for any characters.

    ``@FILE`` names a file with one resource a line. Raises ArgumentTypeError, which argparse shows.
    """
    known = {each.name.lower(): each for each in RESOURCES}
    found = []
    for each in _entries(text):
        type_, colon, name = each.partition(":")
        resource_type = known.get(type_.lower())
        if resource_type is None or not (colon and name):
            raise argparse.ArgumentTypeError(
                f"{each!r} is no resource such as topic:dr.*; the type is one of {', '.join(known)}"
            )
        found.append(Keep(each, resource_type, _pattern(name)))
    return found


def _entries(text: str) -> list[str]:
    """Return the value itself as the only entry, or the lines of the file that it names."""
    if not text.startswith("@"):
        return [text]
    try:
        lines = Path(text[1:]).read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise argparse.ArgumentTypeError(f"{text[1:]} cannot be read: {error}") from None
    stripped = (line.strip() for line in lines)
    return [line for line in stripped if line and not line.startswith("#")]


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, text.split("*"))), re.DOTALL)


def kept(acls: Sequence[AclBinding], keeps: Iterable[Keep]) -> list[int]:
    """Return the positions of the ACLs that an entry keeps."""
    entries = list(keeps)
    if not entries:
        return []
    return [at for at, acl in enumerate(acls) if any(each.keeps(acl) for each in entries)]
