"""The formats of files of ACLs: policies, JSON, CSV, and what ``kafka-acls.sh --list`` prints."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from itertools import groupby
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.listing import parse_listing
from aclbroker.acl.files.policy import PolicyError, policy_text
from aclbroker.acl.files.reading import CSV, JSON, LISTING, POLICY, Form
from aclbroker.acl.files.tables import VERSION
from aclbroker.acl.files.words import FIELDS
from aclbroker.cli.acls.texts import entry_lines, pattern_line


class Format(NamedTuple):
    """A format of files that are written, and the form in which they are read.

    ``text`` returns the text of sorted ACLs. ``refusal`` returns why a file of the format cannot
    hold an ACL; None if it can.
    """

    form: Form
    text: Callable[[Sequence[AclBinding], str | None], Iterable[str]]
    refusal: Callable[[AclBinding], str | None] = lambda _: None


_QUOTED: Final = re.compile(r'[,"\r\n\0]|\A\s|\s\Z')


def _words(acl: AclBinding) -> Iterator[str]:
    return (each.name if isinstance(each, IntEnum) else each for each in acl)


def _json_text(acls: Sequence[AclBinding], cluster: str | None) -> Iterator[str]:
    yield f'{{"version": {VERSION},\n'
    if cluster is not None:
        yield f'"cluster": {json.dumps(cluster)},\n'
    yield '"acls": ['
    for number, acl in enumerate(acls):
        fields = dict(zip(FIELDS, _words(acl), strict=True))
        yield f"{',' * bool(number)}\n{json.dumps(fields, ensure_ascii=False)}"
    yield "\n]}\n"


def _csv_text(acls: Sequence[AclBinding], _: str | None) -> Iterator[str]:
    yield f"{','.join(FIELDS)}\n"
    for acl in acls:
        yield f"{','.join(map(_cell, _words(acl)))}\n"


def _cell(text: str) -> str:
    if text and not _QUOTED.search(text):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _listing_text(acls: Sequence[AclBinding], _: str | None) -> Iterator[str]:
    for pattern, theirs in groupby(acls, key=lambda acl: acl[:3]):
        head = pattern_line("Current ACLs for resource `{}`:", *pattern)
        yield "\n".join((head, *entry_lines(acl[3:] for acl in theirs), "\n"))


def _not_in_listing(acl: AclBinding) -> str | None:
    try:
        if list(parse_listing("".join(_listing_text([acl], None)), "")) == [acl]:
            return None
    except PolicyError:
        pass
    return "what kafka-acls.sh lists would have more than one meaning"


_POLICY: Final = Format(POLICY, policy_text)
FORMATS: Final[Mapping[str, Format]] = {
    ".yaml": _POLICY,
    ".yml": _POLICY,
    ".json": Format(JSON, _json_text),
    ".csv": Format(CSV, _csv_text),
    ".txt": Format(LISTING, _listing_text, _not_in_listing),
}
"""The formats by the end of a file's name."""
