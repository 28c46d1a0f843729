"""A compiled Java regular expression: whole matches, and replacing."""

from __future__ import annotations

import re
from collections.abc import Iterator

from aclbroker.broker.auth.mapping.java_regex.cursor import RegexError
from aclbroker.broker.auth.mapping.java_regex.replacement import Replacement
from aclbroker.broker.auth.mapping.java_regex.translation import translate

_LAST_OF_UTF16_UNIT = "\uffff"


LONGEST_TEXT = 1000
"""How many characters a text may have."""

MOST_LOOKED_AT = 100_000
"""How many characters of a text the engine may have to look at, those it looks at again included.

To count them takes at most 15 ms, and the engine then a few. The documented rule with six `(.*?)`
needs a few thousand for a name as authorities sign them.
"""


class UndecidableError(Exception):
    """The text is too long, or could be matched in too many ways, or has characters that are two
    for Java where that may matter.
    """


class JavaRegex:
    """An expression of java.util.regex; raises `RegexError` if it cannot be had in Python."""

    def __init__(self, pattern: str) -> None:
        translation = translate(pattern)
        self.pattern = pattern
        self.groups = translation.groups
        """How many capturing groups there are."""
        self._translation = translation
        try:
            self._search = re.compile(translation.expression)
            self._whole = re.compile(rf"(?:{translation.expression})\Z")
        except (re.error, OverflowError, RecursionError) as error:
            raise RegexError(0, f"Python cannot compile it: {error}") from None

    def replacement(self, text: str) -> Replacement:
        """A replacement text for this expression; raises `RegexError`."""
        return Replacement(text, self._translation)

    def matches(self, text: str) -> bool:
        """Whether the expression matches all of the text, as Matcher.matches."""
        self._check(text)
        self._refuse_effort(text)
        return self._whole.match(text) is not None

    def replace(self, text: str, replacement: Replacement, *, first_only: bool = False) -> str:
        """The text with its matches replaced, as Matcher.replaceAll or replaceFirst."""
        self._check(text)
        parts = []
        end = 0
        for match in self._found(text):
            parts += [text[end : match.start()], replacement.expand(match)]
            end = match.end()
            if first_only:
                break
        return "".join([*parts, text[end:]])

    def _refuse_effort(self, text: str, position: int = 0, *, anywhere: bool = False) -> None:
        if self._translation.effort.exceeds(MOST_LOOKED_AT, text, position, anywhere=anywhere):
            raise UndecidableError("there are too many ways to match it; make the rule stricter")

    def _check(self, text: str) -> None:
        if len(text) > LONGEST_TEXT:
            raise UndecidableError(f"longer than {LONGEST_TEXT} characters")
        if self._translation.looks_behind:
            _refuse_pairs(text)

    def _found(self, text: str) -> Iterator[re.Match[str]]:
        """The matches as Matcher.find finds them.

        Python's own loop differs: after an empty match it tries the same place again.
        """
        position = 0
        searching = False
        while position <= len(text):
            match = None
            if position == 0:
                # Mostly it matches from the beginning, and there is nothing to search for.
                self._refuse_effort(text)
                match = self._search.match(text)
            if match is None:
                if not searching:
                    self._refuse_effort(text, position, anywhere=True)
                    searching = True
                match = self._search.search(text, position)
            # To Java the second half of a surrogate pair is a place of its own.
            skipped_to = len(text) if match is None else match.start()
            if self._translation.may_begin_inside_a_pair:
                _refuse_pairs(text[position:skipped_to])
            if match is None:
                return
            yield match
            position = match.end()
            if match.start() == match.end():
                _refuse_pairs(text[position : position + 1])
                position += 1


def _refuse_pairs(text: str) -> None:
    if not text.isascii() and max(text) > _LAST_OF_UTF16_UNIT:
        raise UndecidableError("a character beyond U+FFFF where the rule depends on its halves")
