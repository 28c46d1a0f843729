"""The layouts in which log4j writes the lines of Kafka's authorizer.

`kafka_line` reads one layout, ``[%d] %p %m (%c)%n``, that of Kafka's own configuration. Lines of
other layouts are converted to it. A line that is no record in its own layout stays none: it gets a
blank in front if it does not begin as a record, and `NO_END` behind if it does not end as one.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from typing import Any, Final, Protocol

from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.conversion_pattern import Pattern, compiled
from aclbroker.pipeline.ingest.envelopes import ENVELOPES, json_object

KAFKAS_OWN: Final = "[%d] %p %m (%c)%n"
LOOKED_FOR: Final = (
    *(KAFKAS_OWN, "[%d] %p %m%n", "%d %p %m%n", "%d %p %m (%c)%n"),
    *("%d{ISO8601} %p %m (%c) [%t]%n", "[%d{ISO8601}] %p %m (%c)%n"),
)
"""The patterns that are recognized without --pattern; the last but one is Strimzi's."""

LAYOUTS: Final = (
    f"{', '.join(LOOKED_FOR)} and JSON (JsonLayout, or JsonTemplateLayout with the templates of "
    f"ECS, Logstash or JsonLayout), {ENVELOPES}; others with --pattern"
)
"""The layouts that can be read, for messages."""

_TAIL: Final = kafka_line.TAIL.encode()
_NO_END: Final = kafka_line.NO_END
_NO_SUCH_TIME: Final = "2000-00-00 00:00:00,000"

# Where nothing stands behind a message, it must end as a record does. Before Kafka 2.4 it ends with
# a name, which a client may choose: such lines cannot be read without the logger behind them.
_MESSAGE_END: Final = re.compile(
    rb" with resourceRefCount = [0-9]{1,9}\Z"
    rb"| based on rule (?:SuperUser|DefaultAllow|DefaultDeny|ReservedTopic)\Z"
    rb"| based on rule MatchingAcl\(acl=null\)\Z"
    rb"|, permissionType=(?:ALLOW\]|DENY\]|ALLOW\)|DENY\))\)\Z"
)


class Layout(Protocol):
    """Brings lines into the layout that `kafka_line` reads."""

    def is_breakable(self) -> bool:
        """Tell whether a line break in a name breaks a line of this layout."""
        ...

    def zone(self, given: tzinfo) -> tzinfo:
        """Return the zone of the times in the lines as they are then. ``given``: the broker's."""
        ...

    def brought(self, line: bytes, given: tzinfo) -> bytes:
        """Return a line, without its line feed, in that layout."""
        ...

    def size(self, line: bytes) -> int:
        """Return the number of bytes (`kafka_line.sent_size`) of a line without its envelopes.

        The line feed counts, too.
        """
        ...


@dataclass(frozen=True, slots=True)
class TextLayout:
    """The layout of a conversion pattern (`conversion_pattern`)."""

    pattern: Pattern

    def is_breakable(self) -> bool:
        """Line breaks in names break lines."""
        return True

    def zone(self, given: tzinfo) -> tzinfo:
        """Return the zone that the pattern names, or the broker's."""
        return self.pattern.zone or given

    def brought(self, line: bytes, given: tzinfo) -> bytes:
        """Return a line, whose beginning and end are those of the pattern or none."""
        line = line.removesuffix(b"\r")
        begin = self.pattern.begin.match(line)
        if begin is None:
            head, rest = b" ", line
        else:
            time = self.pattern.time_of(begin) or _NO_SUCH_TIME
            head, rest = f"[{time}] {self.pattern.level_of(begin)} ".encode(), line[begin.end() :]
        if self.pattern.end is None:
            return head + rest + (_TAIL if _MESSAGE_END.search(rest) else _NO_END)
        end = self.pattern.end.match(rest)
        return head + (rest + _NO_END if end is None else end[0] + _TAIL)

    def size(self, line: bytes) -> int:
        """Return the size of a line with its line feed."""
        return kafka_line.sent_size(line) + 1


OWN: Final = TextLayout(compiled(KAFKAS_OWN))


@dataclass(frozen=True, slots=True)
class JsonLayout:
    """One object a line, with the message in a key. Nothing in a message can end such a line."""

    def is_breakable(self) -> bool:
        """Line breaks are escaped."""
        return False

    def zone(self, given: tzinfo) -> tzinfo:
        """Return the zone of the times as they are brought: that of all of them is told."""
        return UTC

    def brought(self, line: bytes, given: tzinfo) -> bytes:
        """Return the message with its time and level."""
        said = _said(line)
        if said is None:
            return b" " + line + _NO_END
        time, level, message = said
        moment = _moment(time, given)
        clock = moment.strftime("%Y-%m-%d %H:%M:%S,%f")[:23] if moment else _NO_SUCH_TIME
        return f"[{clock}] {level} {message}".encode() + _TAIL

    def size(self, line: bytes) -> int:
        """Return the size of a line with its line feed."""
        return kafka_line.sent_size(line) + 1


JSON: Final = JsonLayout()

_LOGGER: Final = "kafka.authorizer.logger"
_KEYS: Final = {
    "time": ("@timestamp", "timestamp", "instant", "timeMillis"),
    "level": ("level", "log.level", "severity"),
    "logger": ("loggerName", "logger_name", "log.logger", "logger"),
    "message": ("message",),
}
"""What a key of a JSON layout says, whichever layout it is."""


def has_logger(line: bytes) -> bool:
    """Tell whether a line is an object of a JSON layout, of any logger."""
    found = _object(line) or {}
    return "message" in found and any(key in found for key in _KEYS["logger"])


def _said(line: bytes) -> tuple[Any, str, str] | None:
    """Return time, level and message of a line; None if it is none of the authorizer."""
    found = _object(line)
    if found is None:
        return None
    values = {what: [found[key] for key in keys if key in found] for what, keys in _KEYS.items()}
    if any(len(each) != 1 for each in values.values()):
        return None
    ((time,), (level,), (logger,), (message,)) = values.values()
    if logger != _LOGGER or not isinstance(level, str) or not isinstance(message, str):
        return None
    return time, level.upper(), message


def _object(line: bytes) -> dict[str, Any] | None:
    """Return the object that a line is, with the keys of an inner ``log`` as ECS may have it."""
    found = json_object(line)
    inner = None if found is None else found.get("log")
    if found is not None and isinstance(inner, dict):
        return {f"log.{key}": value for key, value in inner.items()} | found
    return found


def _moment(time: Any, given: tzinfo) -> datetime | None:
    """Return the time in UTC of a value in one of the forms in which JSON layouts write it."""
    try:
        if isinstance(time, dict):
            nanos = int(time["epochSecond"]) * 1_000_000_000 + int(time["nanoOfSecond"])
            return datetime.fromtimestamp(nanos // 1_000_000_000, UTC).replace(
                microsecond=nanos % 1_000_000_000 // 1000
            )
        if type(time) is int:
            second, millis = divmod(time, 1000)
            return datetime.fromtimestamp(second, UTC).replace(microsecond=millis * 1000)
        if not isinstance(time, str):
            return None
        found = datetime.fromisoformat(time)
        return (found if found.tzinfo else found.replace(tzinfo=given)).astimezone(UTC)
    except (ValueError, KeyError, TypeError, OverflowError, OSError):
        return None
