r"""Writes text to terminals and tables, for all commands: names may hold any character.

A terminal takes some characters for commands, hides others, and changes the direction of text at
some. Each such character is written as an escape: ``\n``, ``\r``, ``\t``, ``\xNN``, ``\uNNNN`` or
``\UNNNNNNNN``, those of docs/audit.md. A line stays one line, whatever characters it has.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import Final, TextIO

# `str.isprintable` accepts these letters, marks and symbols, but no font shows any of them.
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
_SHORT: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}
_SHORT_MEANT: Final = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}

ESCAPE: Final = re.compile(r"\\(?:([nrt\\])|x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8}))")
"""The escapes that `shown` writes."""

ESCAPED: Final = " (escaped)"
"""The end of a line of `aclbroker acls` whose names are `shown`; kafka-acls.sh never has it."""

_FORMULA: Final = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""A spreadsheet takes a text that begins so for a formula, and would run a client's text."""


def is_plain(text: str) -> bool:
    """Tell whether a terminal shows a text as it is: each character visible, in one line."""
    return text.isprintable() and (text.isascii() or _INVISIBLE.search(text) is None)


def is_encodable(text: str) -> bool:
    """Tell whether standard output can encode a text; `put` writes escapes if it cannot."""
    encoding = _encoding(sys.stdout)
    return text.isascii() or text.encode(encoding, "ignore").decode(encoding) == text


def printable(text: str) -> str:
    """Return a text for people, with an escape for each character that is not plain."""
    return text if is_plain(text) else "".join(map(_escape, text))


def shown(text: str) -> str:
    r"""Return a text as `printable` does, and ``\\`` for a backslash: `meant` undoes it."""
    if "\\" not in text:
        return printable(text)
    return "".join("\\\\" if char == "\\" else _escape(char) for char in text)


def meant(text: str) -> str:
    """Return the text whose `shown` form this is; raises ValueError for an invalid escape."""
    if "\\" in ESCAPE.sub("", text):
        raise ValueError("a backslash in it begins no escape such as \\n, \\x1b or \\\\")
    return ESCAPE.sub(_meant, text)


def _meant(found: re.Match[str]) -> str:
    if found[1] is not None:
        return _SHORT_MEANT[found[1]]
    code = int(found[2] or found[3] or found[4], 16)
    if code > sys.maxunicode:
        raise ValueError(f"{found[0]} is no character")
    return chr(code)


def put(*lines: str, end: str = "\n") -> None:
    """Write lines to standard output."""
    _write(sys.stdout, lines, end)


def put_text(text: str) -> None:
    """Write a text of several lines to standard output; its last line break is optional."""
    put(*text.removesuffix("\n").split("\n"))


def complain(*lines: str) -> None:
    """Write lines to standard error, unless its reader is gone."""
    with suppress(BrokenPipeError):
        _write(sys.stderr, lines, "\n")


def csv_lines(rows: Iterable[Iterable[object]]) -> Iterator[str]:
    """Yield rows as lines of CSV, their cells as `csv_cell` has them."""
    for row in rows:
        yield ",".join(_quoted(csv_cell(each)) for each in row)


def csv_cell(value: object) -> str:
    """Return a value as a cell that neither ends its row nor is a formula."""
    if not isinstance(value, str):
        return "" if value is None else str(value)
    safe = shown(value)
    return f"'{safe}" if safe.lstrip(" ").startswith(_FORMULA) else safe


def _quoted(cell: str) -> str:
    if "," not in cell and '"' not in cell:
        return cell
    doubled = cell.replace('"', '""')
    return f'"{doubled}"'


def _write(stream: TextIO, lines: Iterable[str], end: str) -> None:
    for line in lines:
        # Blanks before a line belong to the layout, as in the output of kafka-acls.sh.
        indented = len(line) - len(line.lstrip(" \t"))
        text = f"{line[:indented]}{printable(line[indented:])}{end}"
        if not text.isascii():
            encoding = _encoding(stream)
            text = text.encode(encoding, "backslashreplace").decode(encoding)
        stream.write(text)


def _encoding(stream: TextIO) -> str:
    return stream.encoding or "utf-8"


def _escape(char: str) -> str:
    if is_plain(char):
        return char
    code = ord(char)
    if code < 0x100:
        return _SHORT.get(char) or f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
