r"""Replacement texts of java.util.regex.Matcher: $1, ${name}, and \ before any other character."""

from __future__ import annotations

import re

from aclbroker.broker.auth.mapping.java_regex.cursor import RegexError
from aclbroker.broker.auth.mapping.java_regex.translation import Translation

_PART = re.compile(r"(?s:\\(?P<escaped>.))|\$(?P<digit>[0-9])|\$\{(?P<name>[A-Za-z][A-Za-z0-9]*)\}")
_DIGIT = re.compile(r"[0-9]")


class Replacement:
    """A replacement text for an expression with these groups.

    Raises `RegexError` where Java would raise an exception when it replaces something (a lone
    backslash or dollar, a group that does not exist), and for a group that is repeated.
    """

    def __init__(self, text: str, translation: Translation) -> None:
        groups = translation.groups
        self._parts: list[str | int] = []
        position = 0
        while position < len(text):
            if text[position] not in "\\$":
                self._parts.append(text[position])
                position += 1
                continue
            match = _PART.match(text, position)
            if match is None:
                raise RegexError(position, "neither $n, ${name} nor a backslash with a character")
            position = match.end()
            if match["escaped"] is not None:
                self._parts.append(match["escaped"])
                continue
            if match["name"] is not None:
                number = translation.names.get(match["name"], groups + 1)
            else:
                number, position = _group_number(text, match.start() + 1, groups)
            if number > groups:
                raise RegexError(match.start(), f"{match[0]} is no group of the pattern")
            if number in translation.repeated:
                raise RegexError(
                    match.start(),
                    f"group {number} of the pattern is repeated, and the engines differ about "
                    "what it then holds; put a group around the repetition",
                )
            self._parts.append(number)

    def expand(self, match: re.Match[str]) -> str:
        """The text for a match; a group that took no part in it is empty."""
        return "".join(
            part if isinstance(part, str) else (match[part] or "") for part in self._parts
        )


def _group_number(text: str, position: int, groups: int) -> tuple[int, int]:
    """The number at the position, with as many digits as still name a group, and where it ends."""
    number = int(text[position])
    position += 1
    while digit := _DIGIT.match(text, position):
        longer = number * 10 + int(digit[0])
        if longer > groups:
            break
        number = longer
        position += 1
    return number, position
