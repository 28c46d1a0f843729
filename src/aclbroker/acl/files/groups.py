"""Groups files: who is in which group, as YAML that people write (docs/principals.md).

version: 1
groups:
  staff: [User:alice, User:bob]
  payments:
  - User:alice
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from aclbroker.acl.bindings import WILDCARD_PRINCIPAL
from aclbroker.acl.files.yaml_events import Mark, YamlError, YamlReader
from aclbroker.acl.groups import GROUP, Groups, invalid_group

VERSION: Final = "1"

MOST_BYTES: Final = 33_554_432
"""How large a groups file may be; that is a million and a half members with names of 16 letters."""

LONGEST_MEMBER: Final = 1_024
"""How many characters a member's principal may have; names of certificates have fewer."""

_BETWEEN_PAUSES: Final = 200
"""How many members are read in a millisecond or so."""


class GroupsError(YamlError):
    """A file that is no groups file; the message names file, line, column and what is wrong."""


def read_groups(path: str, pause: Callable[[], None] | None = None) -> Groups:
    """Read a groups file, and call ``pause`` after every millisecond or so of that.

    Raises GroupsError for what is no groups file, OSError if it cannot be read.
    """
    # Others than regular files may have no end, or none in sight.
    if not stat.S_ISREG(os.stat(path).st_mode):
        raise GroupsError(f"{path}: not a regular file")
    with open(path, "rb") as file:
        text = file.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise GroupsError(f"{path}: more than {MOST_BYTES:,} bytes, which is the limit")
    return parse_groups(text, path, pause)


def parse_groups(
    text: str | bytes, source: str = "groups", pause: Callable[[], None] | None = None
) -> Groups:
    """Return the groups of a text. Raises GroupsError, which names ``source`` as the file."""
    reader = _GroupsReader(text, source, "groups file", GroupsError)
    memberships = reader.memberships()
    try:
        return Groups(memberships if pause is None else _with_pauses(memberships, pause))
    except GroupsError:
        raise
    except ValueError as error:
        reader.fail(str(error), reader.member_at)


def _with_pauses(
    memberships: Iterable[tuple[str, str]], pause: Callable[[], None]
) -> Iterator[tuple[str, str]]:
    for number, membership in enumerate(memberships, 1):
        yield membership
        if number % _BETWEEN_PAUSES == 0:
            pause()


class _GroupsReader(YamlReader):
    """Reads one document; ``member_at`` is where the last member stands."""

    member_at: Mark | None = None

    def memberships(self) -> Iterator[tuple[str, str]]:
        """Yield the name of a group and the principal of a member, for each of both."""
        for key in self.document(VERSION, ("groups",), needed="groups"):
            for name, at in self.entries(f"'{key}'"):
                reason = invalid_group(name)
                if reason is None and name.startswith(GROUP):
                    reason = f"a group is named without {GROUP}, which its principal begins with"
                if reason is not None:
                    self.fail(reason, at)
                for member, at in self.texts(name):
                    if reason := _invalid_member(member):
                        self.fail(reason, at)
                    self.member_at = at
                    yield name, member


def _invalid_member(principal: str) -> str | None:
    if len(principal) > LONGEST_MEMBER:
        return f"a member has {len(principal):,} characters; {LONGEST_MEMBER:,} are allowed"
    if not all(principal.partition(":")):
        return f"a member is written Type:name, such as User:alice; {principal!r} is not"
    if principal == WILDCARD_PRINCIPAL:
        return f"{WILDCARD_PRINCIPAL} is no member: ACLs of {WILDCARD_PRINCIPAL} are for everyone"
    if principal.startswith(GROUP):
        return f"{principal!r} is a group, and groups have no groups as members: name its members"
    return None
