"""Recognizes lines in a log of decisions that are none: other loggers, stack traces, noise.

Pieces of a decision are quarantined instead. Each piece has at least one of the fixed words, except
for a record that is cut off before the first word.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Final

_OLD_BEGINS: Final = rb"(?:No acl found for resource |operation = |principal = )"
_OLD_DENIAL: Final = (rb"No acl found for resource ", rb", authorized = (?:true|false)")
_OLD_SUPER: Final = (
    rb"principal = ",
    rb" is a super user, allowing operation without checking acls\.",
)
_OLD_ACL: Final = (
    *(rb"operation = ", rb" on resource = ", rb" from host = "),
    rb" is [A-Za-z]+ based on acl = ",
)
_OLD: Final = [
    [re.compile(part) for part in parts] for parts in (_OLD_DENIAL, _OLD_SUPER, _OLD_ACL)
]
"""The fixed parts, in order, of lines that authorizers before KRaft write at DEBUG."""

_OLD_WHOLE: Final = re.compile(
    b"|".join([b".*".join(_OLD_DENIAL), b".*".join(_OLD_SUPER), rb"operation = (?P<acl>.*)"]),
    re.DOTALL,
)
"""Has at most one ``.*`` in each form, because more make the time grow with a power of the text."""

_OLD_HEAD: Final = re.compile(rb"[A-Z]{4,5} (?=" + _OLD_BEGINS + rb")")
_TIME: Final = rb"\[20[0-9]{2}-[0-9]{2}-[0-9]{2} "
_FIRST_WORD: Final = b"Principal ="

_OWN_RECORD: Final = re.compile(rb'"event\\{0,9}"\s{0,9}:\s{0,9}\\{0,9}"authorization')
"""Matches in a record of our own log, also where an envelope escapes its quotation marks."""

LEFT_OUT: Final = b'"event":"left_out"'
"""Our own broker writes this when its log leaves decisions out, also in Kafka's form."""


def _cut_anywhere(text: bytes) -> bytes:
    """Return a regular expression that matches every beginning of a text."""
    return b"(?:".join(re.escape(text[at : at + 1]) for at in range(len(text))) + b")?" * (
        len(text) - 1
    )


_BEGUN_LEVEL: Final = rb"(?:[A-Z]{1,5} *(?:" + _cut_anywhere(_FIRST_WORD) + rb")?)?"
_BEGUN_BEHIND_TIME: Final = re.compile(rb" *" + _BEGUN_LEVEL)
_BEGUN: Final = re.compile(rb"(?:\[|\[?2[0-9TZ:,. +-]*(?:\] *)?" + _BEGUN_LEVEL + rb")")
"""Matches beginnings of a record that end before the record's principal.

A repetition that may begin with spaces never follows the time without a bracket between them. The
time may end with spaces, too, so the two could share out spaces in many ways.
"""


def old_debug(rest: bytes, tail: bytes) -> bool | None:
    """Tell whether a text behind a time is one of the old authorizers' lines at DEBUG.

    True if it is a whole such line. False if it begins as one but is not whole, or does not end in
    ``tail``. None if it does not begin as one.
    """
    head = _OLD_HEAD.match(rest)
    if head is None:
        return None
    if not rest.endswith(tail):
        return False
    text = rest[head.end() : -len(tail)]
    whole = _OLD_WHOLE.fullmatch(text)
    return whole is not None and (whole["acl"] is None or _has_in_order(text, _OLD[-1]))


def may_be_piece(text: bytes, words: Sequence[bytes], *, is_timed: bool) -> bool:
    """Tell whether a line that does not begin as a record may contain a decision, or a piece of it.

    ``words`` are the fixed words of a record. With ``is_timed``, ``text`` is the part of the line
    behind a time.
    """
    stripped = text.strip()
    if stripped.startswith(b"{") and not is_timed:
        return _is_piece_of_json(stripped)
    if LEFT_OUT in text or _FIRST_WORD in text or _OWN_RECORD.search(text):
        return True
    if any(word in text for word in words):
        return not any(_has_in_order(text, parts) for parts in _OLD)
    if is_begun(text, is_timed=is_timed):
        return True
    # A broker that is killed in mid-line appends to that line after its restart.
    glued = re.search(_TIME, text)
    return glued is not None and is_begun(text[: glued.start()], is_timed=is_timed)


def _has_in_order(text: bytes, parts: Iterable[re.Pattern[bytes]]) -> bool:
    """Tell whether a text contains all parts in their order. Takes one pass over the text."""
    at = 0
    for part in parts:
        # The first match leaves the most text to the parts behind it.
        found = part.search(text, at)
        if found is None:
            return False
        at = found.end()
    return True


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
    return is_event or _FIRST_WORD in text or _OWN_RECORD.search(text) is not None
