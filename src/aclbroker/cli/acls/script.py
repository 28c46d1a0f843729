"""Files of commands of kafka-acls.sh and `aclbroker acls`, as the set of ACLs that they make.

The commands are not run. They are taken one after the other, from no ACLs on: --add adds, --remove
takes away of what was added before, --list is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclBinding, AclFilter, PatternType, invalid_reason
from aclbroker.acl.files.policy import PolicyError
from aclbroker.cli.acls.checks import check
from aclbroker.cli.acls.options import Options, UsageError, parse
from aclbroker.cli.acls.shell import ASSIGNMENT, HOLE, Shell, ShellCommand, ShellError
from aclbroker.cli.acls.wanted import to_add, to_remove

_TOOL: Final = re.compile(r"(?:.*/)?kafka-acls(?:\.sh|\.bat)?", re.DOTALL)
_OURS: Final = re.compile(r"(?:.*/)?aclbroker", re.DOTALL)
_OTHER_TOOL: Final = re.compile(r"(?:.*/)?kafka-[a-z-]+(?:\.sh)?")
_BEGINNING: Final = re.compile(
    r"#!|(?:export |set |: |sudo |docker |kubectl )|[A-Za-z_][A-Za-z_0-9]*=|"
    r"(?:\S*/)?kafka-acls(?:\.sh|\.bat)?\s|(?:\S*/)?aclbroker\s+acls\s"
)
"""How the first line of a script begins that is no comment."""

_RUNNERS: Final = frozenset(["docker", "env", "exec", "kubectl", "nice", "podman", "sudo", "time"])
"""Commands that run the one that stands behind them."""

_PASSED_OVER: Final = frozenset(
    [":", "cd", "echo", "export", "printf", "set", "sleep", "true", "yes"]
)
"""Commands that change no ACLs."""

_OF_THE_CLUSTER: Final = (
    *("bootstrap-server", "bootstrap-controller", "command-config"),
    *("authorizer-properties", "zk-tls-config-file"),
)
_HOLE: Final = re.compile(f"{HOLE}([^{HOLE}]*){HOLE}")
_SHOWN: Final = r"\1"
_LEFT_OUT: Final = re.compile(r"^# Not done \(--add\)", re.MULTILINE)
"""A comment of this program in the place of a command that kafka-acls.sh does not have."""


class Script(NamedTuple):
    """The ACLs that a script makes, and how many it names in comments alone."""

    acls: list[AclBinding]
    left_out: int


def is_script(text: str, source: str) -> bool:
    """Tell whether a text is a script, by its file's name or its first line that is no comment."""
    if source.endswith(".sh"):
        return True
    for line in text.split("\n"):
        content = line.lstrip()
        if _BEGINNING.match(content):
            return True
        if content and not content.startswith("#"):
            return False
    return False


def parse_script(text: str, path: str) -> Script:
    """Return the ACLs that the commands of a file make.

    Raises PolicyError, which names the file and the line.
    """
    text = text.replace("\r\n", "\n")
    if HOLE in text:
        raise PolicyError(f"{path}: it has bytes that are 0")
    acls: dict[AclBinding, None] = {}
    shell, place = Shell(text), 0
    try:
        for command in shell.commands():
            place = command.place
            if command.words[0] == "exit" and command.behind in ("\n", ";"):
                break
            words = _words_of_tool(command, shell)
            if words is not None:
                _apply(words, acls)
    except (ShellError, UsageError, ValueError, RecursionError) as error:
        if isinstance(error, ShellError):
            place = error.place
        reason = _HOLE.sub(_SHOWN, str(error)).strip()
        raise PolicyError(f"{path}: line {text.count(chr(10), 0, place) + 1}: {reason}") from None
    return Script(list(acls), len(_LEFT_OUT.findall(text)))


def _words_of_tool(command: ShellCommand, shell: Shell) -> Sequence[str] | None:
    """Return the words behind the tool's name; None for a command that changes no ACLs.

    Notes the variables that it sets. Raises ValueError for a command that may change some.
    """
    words = command.words
    first = 0
    while first < len(words) and ASSIGNMENT.fullmatch(words[first]):
        first += 1
    if first == len(words):
        _assign(words, shell)
        return None
    words = words[first:]
    start = _behind_tool(words)
    if start is not None and (words[0] in _RUNNERS or _is_tool(words, 0)):
        if command.behind == "||":
            raise ValueError("a command behind || runs only if another one fails; leave it out")
        return words[start:]
    name = words[0]
    if name == "export":
        _assign(words[1:], shell)
    tools = words if name in _RUNNERS else words[:1]
    passes = name in _PASSED_OVER or any(map(_OTHER_TOOL.fullmatch, tools))
    if passes or (start is None and command.behind in ("|", "||")):
        return None
    shown = _HOLE.sub(_SHOWN, name)
    raise ValueError(
        f"{shown!r} is not understood; expected commands of kafka-acls.sh or aclbroker acls, "
        "without loops and conditions"
    )


def _assign(words: Sequence[str], shell: Shell) -> None:
    for word in words:
        found = ASSIGNMENT.fullmatch(word)
        if found is not None:
            shell.variables[found[1]] = found[2]


def _is_tool(words: Sequence[str], at: int) -> bool:
    if _TOOL.fullmatch(words[at]):
        return True
    return _OURS.fullmatch(words[at]) is not None and words[at + 1 : at + 2] == ["acls"]


def _behind_tool(words: Sequence[str]) -> int | None:
    """Return the number of the first word behind the name of the tool, None if it is not there."""
    for at, word in enumerate(words):
        if _is_tool(words, at):
            return at + 1 if _TOOL.fullmatch(word) else at + 2
    return None


def _apply(words: Sequence[str], acls: dict[AclBinding, None]) -> None:
    """Do what a command does; raises `UsageError` and ValueError for one that is wrong."""
    options = parse(words)
    _check_known(words, options)
    action = check(options)
    if action == "add":
        for resource, entries in to_add(options).items():
            for entry in entries:
                acl = resource.binding(entry)
                reason = invalid_reason(acl)
                if reason is not None:
                    raise ValueError(reason)
                acls[acl] = None
    elif action == "remove":
        for resource, entries in to_remove(options).items():
            is_one = resource.pattern_type in (PatternType.LITERAL, PatternType.PREFIXED)
            if entries and is_one:
                for entry in entries:
                    acls.pop(resource.binding(entry), None)
            else:
                filters = [resource.filter(entry) for entry in entries]
                _remove_matching(filters or [resource.filter()], acls)


def _remove_matching(filters: Sequence[AclFilter], acls: dict[AclBinding, None]) -> None:
    for acl in [acl for acl in acls if any(each.matches(acl) for each in filters)]:
        del acls[acl]


def _check_known(words: Sequence[str], options: Options) -> None:
    """Raise ValueError if anything is not known but how to reach the cluster."""
    reach = [value for name in _OF_THE_CLUSTER for value in options.all(name)]
    holes = [hole for word in words for hole in _HOLE.findall(word)]
    for value in reach:
        for hole in _HOLE.findall(value):
            holes.remove(hole)
    if holes:
        raise ValueError(f"the file does not say what {holes[0]} is; set it in an earlier line")
