"""What mapping rules for certificates and for Kerberos names have in common."""

from collections.abc import Callable

JAVA_BLANKS = "".join(map(chr, range(0x21)))
"""What String.trim() of Java removes."""

INT_MAX = 2**31 - 1

_SHOWN = 200
_SIGMA = "\N{GREEK CAPITAL LETTER SIGMA}"
_EDGES = " ,=+@/"


class MappingFailed(Exception):
    """A name has no principal: it is malformed, no rule matches it, or the rules cannot decide."""


class RuleError(ValueError):
    """A rule does not parse; the text names it and the place in the setting, counted from 1."""

    def __init__(self, rule: str, position: int, reason: str) -> None:
        super().__init__(f"{shown(rule)} is no rule: at character {position + 1}: {reason}")


def shown(text: str) -> str:
    """A name or a rule for a message: shortened if it is long."""
    return repr(text if len(text) <= _SHOWN else text[:_SHOWN] + "...")


def _lower(text: str) -> str:
    """The text in lower case, as String.toLowerCase(Locale.ENGLISH); raises MappingFailed.

    A capital sigma has two lower cases, one of them at the end of words, and Java's words are not
    Python's. It is taken where both agree: among letters, and at the edges of a name's parts.
    """
    for index, char in enumerate(text):
        if char == _SIGMA:
            beside = text[:index][-1:], text[index + 1 : index + 2]
            if not all(not each or each in _EDGES or _has_case(each) for each in beside):
                raise MappingFailed(
                    f"{shown(text)}: releases differ about the lower case of {_SIGMA}"
                )
    return text.lower()


def _has_case(char: str) -> bool:
    return char.isalpha() and char <= "\uffff" and char.lower() != char.upper()


CASES: dict[str, Callable[[str], str]] = {"": str, "L": _lower, "U": str.upper}
"""What the options L and U at the end of a rule do; they may raise MappingFailed."""
