"""The regular expressions by which members of a group choose topics, matched by their rights."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Final, NamedTuple

from aclbroker.broker.memory.groups.group import GroupError
from aclbroker.broker.memory.name_regex import NameRegex, NameRegexError
from aclbroker.protocol.errors import ErrorCode, shown_name

Visible = Callable[[Collection[str]], Iterable[str]]
"""Takes names of topics; returns those that the client may describe."""


class Viewer(NamedTuple):
    """All that the rights of a member's client depend on: sessions that are alike share them."""

    principals: tuple[str, ...]
    host: str
    listener: str


NO_VIEWER: Final = Viewer((), "", "")


class TopicPattern(NamedTuple):
    """A regular expression, and the client that it is matched for, by its rights."""

    regex: str
    viewer: Viewer


NO_PATTERN: Final = TopicPattern("", NO_VIEWER)


class MatchedTopics(NamedTuple):
    """The names of the topics that a pattern stands for, and when they were looked up.

    ``version`` is the version of the topics at that time.
    """

    names: frozenset[str]
    at_ms: int
    version: int


def pattern_of(former: TopicPattern, regex: str | None, viewer: Viewer) -> TopicPattern:
    """Return the pattern of a member that sends a heartbeat with an expression, or with None.

    A member whose client has other rights than before has another pattern.
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
