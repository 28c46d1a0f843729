"""Text files of users: UTF-8, also with a byte order mark, or UTF-16 with one."""

from __future__ import annotations

import codecs
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_LOOKED_AT: Final = 64


class TextFileError(ValueError):
    """Bytes that are no text; the message names the file, the line and what to do."""


def text_of(content: bytes, source: str) -> str:
    """Return the text of a file's bytes. Raises TextFileError, which names ``source``."""
    mark, encoding = next((each for each in _MARKS if content.startswith(each[0])), (b"", "utf-8"))
    content = content[len(mark) :]
    if not mark and content[:_LOOKED_AT].count(0) > _LOOKED_AT // 4:
        raise TextFileError(
            f"{source}: line 1: it has bytes that are 0, as UTF-16 does; save it as UTF-8"
        )
    try:
        return content.decode(encoding)
    except UnicodeDecodeError as error:
        line = content[: error.start].decode(encoding, errors="replace").count("\n") + 1
        raise TextFileError(f"{source}: line {line}: {error}; save it as UTF-8") from None


def properties_of(content: bytes, source: str) -> str:
    """Return the text of a properties file as Java reads it: bytes are ISO-8859-1.

    Raises TextFileError for a byte order mark, which Java takes for a part of the first name, so
    that a setting is lost, and for bytes that are 0. Before a comment the mark does no harm.
    """
    if content.startswith(codecs.BOM_UTF8):
        content = content.removeprefix(codecs.BOM_UTF8)
        if not content.lstrip().startswith((b"#", b"!")):
            raise TextFileError(
                f"{source}: line 1: it begins with a byte order mark, which Java takes for a part "
                "of the first name; save it without the mark"
            )
    if b"\0" in content:
        raise TextFileError(
            f"{source}: is no properties file: it has bytes that are 0, as UTF-16 does"
        )
    return content.decode("iso-8859-1")
