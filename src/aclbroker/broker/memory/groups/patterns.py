"""Regular expressions by which group members subscribe, resolved with their clients' rights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from aclbroker.broker.memory.groups.group import GroupError
from aclbroker.broker.memory.name_regex import NameRegex, NameRegexError
from aclbroker.protocol.errors import ErrorCode, shown_name

Visible = Callable[[Collection[str]], Iterable[str]]
"""Takes names of topics; returns those that the client may describe."""


class Viewer(NamedTuple):
    """The properties of a session that its rights depend on: equal viewers have equal rights."""

    principals: tuple[str, ...]
    host: str
    listener: str


NO_VIEWER: Final = Viewer((), "", "")


class TopicPattern(NamedTuple):
    """A regular expression, and the viewer whose rights limit its matches."""

    regex: str
    viewer: Viewer


NO_PATTERN: Final = TopicPattern("", NO_VIEWER)


class MatchedTopics(NamedTuple):
    """The names of the topics that a pattern matches, and the time of the match.

    ``version`` is the version of the topics at that time.
    """

    names: frozenset[str]
    at_ms: int
    version: int


def pattern_of(former: TopicPattern, regex: str | None, viewer: Viewer) -> TopicPattern:
    """Return the pattern of a member after a heartbeat with an expression, or with None.

    None keeps the former expression. Another viewer makes another pattern.
    """
    if regex is None:
        regex = former.regex
    return TopicPattern(regex, viewer) if regex else NO_PATTERN


def compiled(regex: str) -> NameRegex:
    """Return a compiled expression; raises GroupError with INVALID_REGULAR_EXPRESSION."""
    try:
        return NameRegex(regex)
    except NameRegexError as error:
        raise GroupError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{shown_name(regex)}` is not a valid regular expression: "
            f"{error}.",
        ) from error
