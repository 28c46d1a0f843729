"""Recognizes lines in a log of decisions that are none: other loggers, stack traces, noise.

Pieces of a decision are quarantined instead. Each piece has at least one of the fixed words, except
for a record that is cut off before the first word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Final

_OLD_BEGINS: Final = rb"(?:No acl found for resource |operation = |principal = )"
_OLD: Final = re.compile(
    rb"(?:No acl found for resource .*, authorized = (?:true|false)"
    rb"|principal = .* is a super user, allowing operation without checking acls\."
    rb"|operation = .* on resource = .* from host = .* is [A-Za-z]+ based on acl = .*)",
    re.DOTALL,
)
"""The lines that the authorizers before KRaft write at DEBUG beside each decision."""

_OLD_HEAD: Final = re.compile(rb"[A-Z]{4,5} (?=" + _OLD_BEGINS + rb")")
_TIME: Final = rb"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} "
_FIRST_WORD: Final = b"Principal ="

LEFT_OUT: Final = b'"event":"left_out"'
"""Our own broker writes this when its log leaves decisions out, also in Kafka's form."""


def _cut_anywhere(text: bytes) -> bytes:
    """Return a regular expression that matches every beginning of a text."""
    return b"(?:".join(re.escape(text[at : at + 1]) for at in range(len(text))) + b")?" * (
        len(text) - 1
    )


_BEGUN_REST: Final = rb" *(?:[A-Z]{1,5} *(?:" + _cut_anywhere(_FIRST_WORD) + rb")?)?"
_BEGUN_BEHIND_TIME: Final = re.compile(_BEGUN_REST)
_BEGUN: Final = re.compile(rb"(?:\[|\[?2[0-9TZ:,. +-]*\]?" + _BEGUN_REST + rb")")
"""Matches beginnings of a record that end before the record's principal."""


def old_debug(rest: bytes, tail: bytes) -> bool | None:
    """Tell whether a text behind a time is one of the old authorizers' lines at DEBUG.

    True if it is a whole such line. False if it begins as one but is not whole, or does not end in
    ``tail``. None if it does not begin as one.
    """
    head = _OLD_HEAD.match(rest)
    if head is None:
        return None
    return rest.endswith(tail) and _OLD.fullmatch(rest[head.end() : -len(tail)]) is not None


def may_be_piece(text: bytes, words: Sequence[bytes], *, is_timed: bool) -> bool:
    """Tell whether a line that does not begin as a record may contain a decision, or a piece of it.

    ``words`` are the fixed words of a record. With ``is_timed``, ``text`` is the part of the line
    behind a time.
    """
    stripped = text.strip()
    if stripped.startswith(b"{") and not is_timed:
        return _is_piece_of_json(stripped)
    if LEFT_OUT in text or _FIRST_WORD in text:
        return True
    if any(word in text for word in words):
        return not _OLD.search(text)
    if is_begun(text, is_timed=is_timed):
        return True
    # A broker that is killed in mid-line appends to that line after its restart.
    glued = re.search(_TIME, text)
    return glued is not None and is_begun(text[: glued.start()], is_timed=is_timed)


def is_begun(text: bytes, *, is_timed: bool = False) -> bool:
    """Tell whether a text is the beginning of a record that is cut off before its principal."""
    form = _BEGUN_BEHIND_TIME if is_timed else _BEGUN
    text = text.strip()
    return bool(text or is_timed) and form.fullmatch(text) is not None


def _is_piece_of_json(text: bytes) -> bool:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return True
    is_event = isinstance(found, dict) and found.get("event") == "authorization"
    return is_event or _FIRST_WORD in text
