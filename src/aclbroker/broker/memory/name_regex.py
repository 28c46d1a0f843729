r"""Regular expressions that choose topics and transactional ids, matched by RE2 in linear time.

Kafka matches whole names with RE2/J. RE2, from which RE2/J was translated, matches the same names.
The syntax differs: RE2 accepts ``\C``, duplicate names of groups, and any letter in such a name. It
refuses nested counts of more than 1,000 in all, and ``\é``.
"""

from __future__ import annotations

import re
from typing import Final

import re2

from aclbroker.turns import pause

_MOST_CHARACTERS: Final = 4_000
_MOST_REPEATS: Final = 256
_MOST_COUNTS: Final = 16
_MOST_COUNTED: Final = 500
_HIGHEST_COUNT: Final = 1_000
"""RE2 refuses an expression with a higher count than this before it compiles anything."""
_MOST_CLASSES: Final = 8
_MOST_BYTES: Final = 256 << 10
_MOST_STEPS: Final = 2_000_000
"""The limit of characters times RE2 instructions for one match, which takes about 5 ms."""

_TOO_LARGE: Final = (
    f"the expression is too large: at most {_MOST_CHARACTERS:,} characters are possible, "
    f"{_MOST_REPEATS} of '*', '+' and '?', {_MOST_COUNTS} of '{{' with counts of "
    f"{_MOST_COUNTED} in all, {_MOST_CLASSES} of '\\p', and about 2,500 characters with all "
    "repetitions"
)
_CLASS: Final = re.compile(r"\\[pP]")
_NUMBER: Final = re.compile(r"(?<=[{,])[0-9]{1,4}(?=[,}])")

_AS_KAFKA: Final = (
    ("invalid perl operator: (?<", "invalid named capture"),
    ("invalid perl operator", "invalid or unsupported Perl syntax"),
    ("invalid named capture group", "invalid named capture"),
    ("invalid repetition size", "invalid repeat count"),
    ("invalid UTF-8", "invalid escape sequence"),
    ("bad repetition operator", "invalid nested repetition operator"),
    ("no argument for repetition operator", "missing argument to repetition operator"),
    ("missing )", "missing closing )"),
    ("missing ]", "missing closing ]"),
    ("trailing \\", "trailing backslash at end of expression"),
    ("unexpected )", "regexp/syntax: internal error"),
    ("pattern too large", _TOO_LARGE),
)
"""The beginnings of RE2's messages, and those of RE2/J, which Kafka sends to its clients."""


class NameRegexError(ValueError):
    """A text is an invalid regular expression, or a too large one."""


def _options() -> re2.Options:
    options = re2.Options()
    options.max_mem = _MOST_BYTES
    options.never_capture = True
    options.log_errors = False
    return options


_OPTIONS: Final = _options()


class NameRegex:
    """A compiled regular expression. Raises NameRegexError if it is invalid or too large.

    RE2 cannot pause while it compiles. The limits keep a compilation below 10 ms; without them RE2
    would take a second for 30 KB. The program of an expression takes 256 KiB at most.
    """

    def __init__(self, pattern: str) -> None:
        pause()
        if _is_large(pattern):
            raise NameRegexError(_TOO_LARGE)
        try:
            self._regex = re2.compile(pattern, _OPTIONS)
        except re2.error as error:
            raise NameRegexError(_as_kafka(error.args[0])) from error
        except UnicodeEncodeError as error:
            raise NameRegexError("the expression has half of a character") from error
        finally:
            re2.purge()  # Its cache would keep 128 expressions of any size.
        pause()

    def matches(self, name: str) -> bool:
        """Return whether the expression matches the whole of a name; may pause.

        Raises NameRegexError for a name that is too long for this expression, because RE2 cannot
        pause within a match. No topic has such a name, but a transactional id has up to 32,767
        bytes.
        """
        pause()
        if len(name) * self._regex.programsize > _MOST_STEPS:
            raise NameRegexError(
                f"the expression is too large for a name of {len(name):,} characters"
            )
        return self._regex.fullmatch(name) is not None


def _is_large(pattern: str) -> bool:
    """Return whether RE2 could take long to compile an expression, by the costliest operators."""
    counts = map(int, _NUMBER.findall(pattern))
    return (
        len(pattern) > _MOST_CHARACTERS
        or sum(map(pattern.count, "*+?")) > _MOST_REPEATS
        or pattern.count("{") > _MOST_COUNTS
        or sum(count for count in counts if count <= _HIGHEST_COUNT) > _MOST_COUNTED
        or len(_CLASS.findall(pattern)) > _MOST_CLASSES
    )


def _as_kafka(message: bytes | str) -> str:
    text = message.decode(errors="replace") if isinstance(message, bytes) else message
    for begin, words in _AS_KAFKA:
        if text.startswith(begin):
            return words
    return text.partition(":")[0]
