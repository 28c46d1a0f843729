"""The default realm of Kerberos: `default_realm` of `[libdefaults]` in krb5.conf (MIT's format)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

DEFAULT_PATH = "/etc/krb5.conf"

_DEEPEST_INCLUDE = 10
_SECTION = re.compile(r"\[([^]]*)\].*")
_DEFAULT_REALM = re.compile(r'default_realm\s*=\s*(?:"([^"]*)"|(.+))')
_INCLUDE = re.compile(r"(include|includedir)\s+(\S.*)")
_INCLUDED_NAME = re.compile(r"[\w-]+|[^.].*\.conf", re.ASCII)


def default_realm(environment: Mapping[str, str]) -> str:
    """The realm, "" if there is none (as Kafka takes it where Java finds none).

    The files are those of the variable KRB5_CONFIG, separated by colons, or /etc/krb5.conf. Of a
    realm that is there twice the first counts, as for MIT's library. Raises OSError for a file or
    directory that cannot be read, ValueError for a file that is not UTF-8 or includes itself.
    """
    paths = (environment.get("KRB5_CONFIG") or DEFAULT_PATH).split(":")
    for section, line in _lines((Path(path) for path in paths if path), depth=0):
        found = _DEFAULT_REALM.fullmatch(line) if section == "libdefaults" else None
        if found is not None:
            return str(found[1] if found[1] is not None else found[2])
    return ""


def _lines(paths: Iterable[Path], depth: int) -> Iterator[tuple[str, str]]:
    """The lines of the files that there are, and those that they include, with their sections.

    What stands in braces is left out.
    """
    if depth > _DEEPEST_INCLUDE:
        raise ValueError("krb5.conf includes files too deeply")
    for path in paths:
        section, braces = "", 0
        for line in map(str.strip, _text(path).splitlines()):
            if included := _INCLUDE.fullmatch(line):
                yield from _lines(_included(included[1], Path(included[2])), depth + 1)
            elif heading := _SECTION.fullmatch(line):
                section = heading[1].strip()
            elif line and line[0] not in "#;":
                braces = max(0, braces + line.endswith("{") - (line == "}"))
                if not braces:
                    yield section, line


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8")
    except FileNotFoundError:
        return ""


def _included(directive: str, path: Path) -> list[Path]:
    if directive == "include":
        return [path]
    return sorted(each for each in path.iterdir() if _INCLUDED_NAME.fullmatch(each.name))
