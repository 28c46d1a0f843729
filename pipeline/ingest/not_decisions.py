"""Lines that stand in a log of decisions and are none: those of other loggers, stack traces, noise.

They are told from pieces of a decision, which are quarantined: no piece lacks all of the fixed
words, but for the very beginning of a record that was cut off.
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
"""What the authorizers before KRaft write at DEBUG beside each decision."""

_OLD_HEAD: Final = re.compile(rb"[A-Z]{4,5} (?=" + _OLD_BEGINS + rb")")
_TIME: Final = rb"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} "
_FIRST_WORD: Final = b"Principal ="

LEFT_OUT: Final = b'"event":"left_out"'
"""What our own broker writes when its log leaves decisions out, in Kafka's form, too."""


def _cut_anywhere(text: bytes) -> bytes:
    """Return an expression of all beginnings of a text."""
    return b"(?:".join(re.escape(text[at : at + 1]) for at in range(len(text))) + b")?" * (
        len(text) - 1
    )


_BEGUN_REST: Final = rb" *(?:[A-Z]{1,5} *(?:" + _cut_anywhere(_FIRST_WORD) + rb")?)?"
_BEGUN_BEHIND_TIME: Final = re.compile(_BEGUN_REST)
_BEGUN: Final = re.compile(rb"(?:\[|\[?2[0-9TZ:,. +-]*\]?" + _BEGUN_REST + rb")")
"""Beginnings of a record that were cut off before they tell anything of it."""


def old_debug(rest: bytes, tail: bytes) -> bool | None:
    """Tell whether what stands behind a time is one of the old authorizers' lines at DEBUG.

    True if it is one, and whole; False if it begins as one and does not end in ``tail``. None if it
    is none.
    """
    head = _OLD_HEAD.match(rest)
    if head is None:
        return None
    return rest.endswith(tail) and _OLD.fullmatch(rest[head.end() : -len(tail)]) is not None


def may_be_piece(text: bytes, words: Sequence[bytes], *, is_timed: bool) -> bool:
    """Tell whether a line that begins as no record may be a piece of a decision, or hold one.

    ``words``: the fixed words of a record. ``is_timed``: ``text`` stands behind a time.
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
    # A broker that was killed in mid-line goes on behind it when it is started again.
    glued = re.search(_TIME, text)
    return glued is not None and is_begun(text[: glued.start()], is_timed=is_timed)


def is_begun(text: bytes, *, is_timed: bool = False) -> bool:
    """Tell whether a text is the beginning of a record, cut off before its principal."""
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
