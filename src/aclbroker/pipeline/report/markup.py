"""Builds HTML and SVG so that all text which is not markup is escaped, without exception."""

from __future__ import annotations

import json
from html import escape
from typing import Final

from aclbroker.pipeline.report.words import shortened
from aclbroker.terminal import ESCAPE, shown

_VOID: Final = frozenset(["meta", "br", "hr", "wbr"])


class Markup(str):
    """Text that is markup already; only this module makes it."""

    __slots__ = ()


def element(name: str, /, *children: str, **attributes: str | float | None) -> Markup:
    """Return an element. Children that are no `Markup` are untrusted text, and are escaped.

    In the names of attributes ``_`` stands for ``-``, one at the end for nothing; None leaves an
    attribute out.
    """
    return Markup(f"{_start(name, attributes)}{joined(*children)}{_end(name)}")


def joined(*parts: str) -> Markup:
    """Return parts one after the other; those that are no `Markup` are escaped."""
    return Markup("".join(part if isinstance(part, Markup) else text(part) for part in parts))


def text(content: str, room: int | None = None) -> Markup:
    """Return an untrusted text as markup, shortened to ``room`` columns."""
    return Markup(escape(_fitted(content, room)))


def name_of(content: str, room: int | None = None) -> Markup:
    """Return `text` in which the escapes can be told from what only looks like one."""
    safe, last, parts = _fitted(content, room), 0, []
    for match in ESCAPE.finditer(safe):
        parts += [escape(safe[last : match.start()]), f'<span class="esc">{match[0]}</span>']
        last = match.end()
    return Markup("".join([*parts, escape(safe[last:])]))


def breakable(content: str) -> Markup:
    """Return `text` that may go on in a new line behind each underscore."""
    return Markup(text(content).replace("_", "_<wbr>"))


def style(css: str) -> Markup:
    """Return a style sheet that comes with this program."""
    return Markup(f"<style>{css}</style>")


def script(code: str) -> Markup:
    """Return a program that comes with this program."""
    return Markup(f"<script>{code}</script>")


def data(content: object, class_: str) -> Markup:
    """Return values for a program on the page, which browsers neither show nor run.

    No text in it can end the element or begin a comment: JSON needs none of these characters
    outside of texts, where they are written as their numbers.
    """
    text = json.dumps(content, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for char in "<>&":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return Markup(f'<script type="application/json" class="{class_}">{text}</script>')


def document(*children: str) -> Markup:
    """Return a whole document."""
    return Markup(f"<!doctype html>\n{joined(*children)}\n")


def _fitted(content: str, room: int | None) -> str:
    safe = shown(content)
    return safe if room is None else shortened(safe, room)


def _start(name: str, attributes: dict[str, str | float | None]) -> str:
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>"


def _end(name: str) -> str:
    return "" if name in _VOID else f"</{name}>"


def _value(value: str | float) -> str:
    if isinstance(value, str):
        return shown(value)
    return f"{value:.2f}".rstrip("0").rstrip(".")
