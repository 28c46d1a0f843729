"""Lists of the topics or groups of a cluster, one a line, as Kafka's tools print them.

A list decides which ACLs look useless. So every other text is refused, such as an error message, a
table, or the output of another option of the tool.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Final

from aclbroker.acl.files.text_files import TextFileError, text_of
from aclbroker.acl.topic_names import is_topic_name

_GOING: Final = " - marked for deletion"
"""The mark that Kafka's tool prints behind a topic that still exists and is being deleted."""

_NO_GROUP: Final = re.compile(
    r"(?:Error|Warning|Caused by|Note|Usage)\b.*:|Exception in |\s+at |GROUP\s+\S|Consumer group '"
    r"|\[?20[0-9]{2}-[0-9]{2}-[0-9]{2}[ T]|[A-Za-z_.]+(?:Exception|Error): "
)
_SHOWN: Final = 60


class NameListError(ValueError):
    """A file that is no list of names; the message names the file, the line and what to do."""


def read_topics(path: str) -> frozenset[str]:
    """Return the names of topics in a file. Raises NameListError, and OSError."""
    return _names(
        path,
        lambda line: {line.strip(" \t\r").removesuffix(_GOING)},
        lambda name: is_topic_name(name.strip(" \t\r").removesuffix(_GOING)),
        "no name of a topic; expected one a line, as kafka-topics.sh --list prints them",
    )


def read_groups(path: str) -> frozenset[str]:
    """Return the names of groups in a file. Raises NameListError, and OSError.

    A blank at the end of a line may belong to the name, so the name counts with and without it.
    """
    return _names(
        path,
        lambda line: {line.removesuffix("\r"), line.strip(" \t\r")},
        lambda line: line.removesuffix("\r").isprintable() and not _NO_GROUP.match(line),
        "no name of a group; expected one a line, as kafka-consumer-groups.sh --list prints them",
    )


def _names(
    path: str, names: Callable[[str], set[str]], is_name: Callable[[str], bool], otherwise: str
) -> frozenset[str]:
    try:
        text = text_of(Path(path).read_bytes(), path)
    except TextFileError as error:
        raise NameListError(str(error)) from None
    found: set[str] = set()
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        if not is_name(line):
            raise NameListError(f"{path}: line {number}: {line.strip()[:_SHOWN]!r} is {otherwise}")
        found |= names(line)
    return frozenset(found)
