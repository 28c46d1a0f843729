"""The conversion patterns of log4j 1 and 2, such as ``[%d] %p %m (%c)%n``, as regular expressions.

What stands before the message and behind it is matched as a whole: a text that a client chose can
be in the message alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from functools import cache
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from aclbroker.pipeline.ingest.kafka_line import LEVELS


class PatternError(ValueError):
    """A pattern that cannot be read; the message says which part of it, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """How a line begins and ends around its message.

    ``begin`` matches all up to the message's first words, with groups for the time and the level;
    ``end`` what is behind the message, None if nothing is. ``zone``: of the times as `time_of`
    returns them; None if it is the broker's own. In a line, ``end`` matches what is before it, too.
    """

    begin: re.Pattern[bytes]
    end: re.Pattern[bytes] | None
    zone: tzinfo | None

    def time_of(self, begin: re.Match[bytes]) -> str | None:
        """Return ``YYYY-MM-DD hh:mm:ss,mmm``; None if it is no time."""
        found = {name: text.decode() for name, text in begin.groupdict().items() if text}
        try:
            if "unix" in found:
                second, millis = divmod(int(f"{found['unix']:0<13}"), 1000)
                moment = datetime.fromtimestamp(second, UTC).replace(microsecond=millis * 1000)
            elif "offset" in found:
                moment = datetime.fromisoformat(_text(found) + _offset(found["offset"])).astimezone(
                    UTC
                )
            else:
                return _text(found)
        except (ValueError, OverflowError, OSError):
            return None
        return moment.strftime("%Y-%m-%d %H:%M:%S,%f")[:23]

    def level_of(self, begin: re.Match[bytes]) -> str:
        """Return the level; INFO where the pattern has none."""
        return (begin.groupdict().get("level") or b"INFO").decode()


def _text(found: dict[str, str]) -> str:
    month = found["month"]
    if not month.isdigit():
        month = f"{_MONTHS.index(month) + 1:02}"
    clock = f"{found['hour']}:{found['minute']}:{found['second']}"
    return f"{found['year']}-{month}-{found['day']} {clock},{found.get('fraction', '')[:3]:0<3}"


def _offset(text: str) -> str:
    if text == "Z":
        return "+00:00"
    digits = text[1:].replace(":", "")
    return f"{text[0]}{digits[:2]}:{digits[2:] or '00'}"


_MONTHS: Final = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()  # noqa: SIM905

_DATES: Final = {
    "DEFAULT": "yyyy-MM-dd HH:mm:ss,SSS",
    "DEFAULT_PERIOD": "yyyy-MM-dd HH:mm:ss.SSS",
    "ISO8601_PERIOD": "yyyy-MM-dd'T'HH:mm:ss.SSS",
    "ISO8601_BASIC": "yyyyMMdd'T'HHmmss,SSS",
    "ISO8601_OFFSET_DATE_TIME_HH": "yyyy-MM-dd'T'HH:mm:ss,SSSX",
    "ISO8601_OFFSET_DATE_TIME_HHMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXX",
    "ISO8601_OFFSET_DATE_TIME_HHCMM": "yyyy-MM-dd'T'HH:mm:ss,SSSXXX",
    "COMPACT": "yyyyMMddHHmmssSSS",
    "DATE": "dd MMM yyyy HH:mm:ss,SSS",
}
"""The names that log4j has for formats of dates. ISO8601 is not the same in log4j 1 and 2."""

_ISO8601: Final = "yyyy-MM-dd[T ]HH:mm:ss,SSS"

_FIELDS: Final = {
    "yyyy": "(?P<year>20[0-9]{2})",
    "MMM": f"(?P<month>{'|'.join(_MONTHS)})",
    "MM": "(?P<month>[0-9]{2})",
    "dd": "(?P<day>[0-9]{2})",
    "HH": "(?P<hour>[0-9]{2})",
    "mm": "(?P<minute>[0-9]{2})",
    "ss": "(?P<second>[0-9]{2})",
    **dict.fromkeys(("X", "XX", "XXX", "Z"), "(?P<offset>Z|[+-][0-9]{2}(?::?[0-9]{2})?)"),
}
_NEEDED: Final = ("year", "month", "day", "hour", "minute", "second")

# Bounded, and as short as can be: a text of a client that follows must not be gone through.
_WORD: Final = r"[^\s\[\]()]{0,256}?"
_CONVERTERS: Final = {
    **dict.fromkeys(("p", "level"), f"(?P<level>{'|'.join(sorted(LEVELS))})"),
    **dict.fromkeys(("c", "logger"), r"kafka\.authorizer\.logger"),
    **dict.fromkeys(("t", "thread", "threadName", "tn"), r"[^\[\]()]{0,256}?"),
    **dict.fromkeys(
        ("X", "mdc", "MDC", "x", "NDC", "C", "class", "F", "file", "M", "method"), _WORD
    ),
    **dict.fromkeys(("L", "line", "r", "relative", "sn", "T", "tid", "threadId"), "[0-9?]{0,20}"),
    **dict.fromkeys(("pid", "processId", "tp", "threadPriority", "u", "uuid"), "[0-9a-f-]{0,36}"),
    **dict.fromkeys(("ex", "exception", "throwable", "xEx", "rEx", "n"), ""),
    "%": "%",
}
"""What each converter but those of the time and the message may print."""

_PART: Final = re.compile(
    r"%(?P<least>-?[0-9]*)(?:\.-?[0-9]+)?(?P<name>%|[A-Za-z]+)(?P<options>(?:\{(?:[^{}]|\{[^{}]*\})*\})*)"
    r"|(?P<text>[^%]+|%)"
)
_OPTION: Final = re.compile(r"\{((?:[^{}]|\{[^{}]*\})*)\}")
_MESSAGE: Final = ("m", "msg", "message")
_ENCODED: Final = [[f"%{name}"] for name in _MESSAGE]


_SHORT_LOGGER: Final = r"(?:[a-z]+\.){0,2}logger"


class _Part(NamedTuple):
    expression: str
    is_message: bool = False
    is_fixed: bool = False
    zone: tzinfo | None = None


@cache
def compiled(pattern: str) -> Pattern:
    """Return a pattern. Raises PatternError if it has no time or message, or what is not known."""
    parts = list(_parts(pattern))
    messages = [number for number, part in enumerate(parts) if part.is_message]
    if len(messages) != 1:
        raise PatternError(f"{pattern!r}: expected the message, %m, once")
    before = "".join(part.expression for part in parts[: messages[0]])
    behind = "".join(part.expression for part in parts[messages[0] + 1 :])
    if "(?P<year>" not in before and "(?P<unix>" not in before:
        raise PatternError(f"{pattern!r}: expected the time, %d, before the message")
    after = [part for part in parts[messages[0] + 1 :] if part.expression]
    if after and not after[0].is_fixed:
        raise PatternError(f"{pattern!r}: expected a fixed text, or nothing, behind the message")
    behind = re.sub(r"\?P<[a-z]+>", "?:", behind)
    try:
        begin = re.compile(f"{before}(?=Principal = )".encode())
        end = re.compile(rf"(?s).*(?={behind}\Z)".encode()) if behind else None
    except re.error as error:
        raise PatternError(f"{pattern!r}: a part of it stands twice ({error})") from error
    return Pattern(begin, end, next((part.zone for part in parts if part.zone is not None), None))


def _parts(pattern: str) -> Iterator[_Part]:
    for match in _PART.finditer(pattern.removesuffix("\n")):
        if match["text"]:
            if match["text"] == "%":
                raise PatternError(f"{pattern!r}: % without the name of a converter")
            yield _Part(re.escape(match["text"]), is_fixed=True)
            continue
        name, options = match["name"], _OPTION.findall(match["options"])
        yield from _converter(pattern, name, options, is_padded=bool(match["least"]))


def _converter(pattern: str, name: str, options: list[str], *, is_padded: bool) -> Iterator[_Part]:
    space = " *" if is_padded else ""
    # A name goes as far as there are letters: in %mfoo, as log4j sees it, it is m.
    known = [*_CONVERTERS, *_MESSAGE, "d", "date", "enc", "encode"]
    found = max((each for each in known if name.startswith(each)), key=len, default=None)
    rest = re.escape(name[len(found or "") :])
    if found in ("d", "date"):
        yield _date(pattern, options)
    elif found in _MESSAGE or (found in ("enc", "encode") and options[:1] in _ENCODED):
        yield _Part("", is_message=True)
    elif found in ("c", "logger") and options:
        yield _Part(f"{space}{_SHORT_LOGGER}{space}")
    elif found in _CONVERTERS:
        yield _Part(f"{space}{_CONVERTERS[found]}{space}")
    else:
        raise PatternError(
            f"{pattern!r}: %{name} is not known here; known are %d, %m, %enc{{%m}}{{CRLF}}, "
            f"{', '.join(f'%{each}' for each in _CONVERTERS if each != '%')}"
        )
    if rest:
        yield _Part(rest, is_fixed=True)


def _date(pattern: str, options: list[str]) -> _Part:
    form = options[0] if options and options[0] else "DEFAULT"
    zone: tzinfo | None = None
    if len(options) > 1:
        try:
            zone = ZoneInfo(options[1])
        except (KeyError, OSError, ValueError):
            raise PatternError(f"{pattern!r}: {options[1]!r} is no time zone known here") from None
    if form in ("UNIX", "UNIX_MILLIS"):
        digits = "[0-9]{13}" if form == "UNIX_MILLIS" else "[0-9]{10}"
        return _Part(f"(?P<unix>{digits})", zone=UTC)
    expression = "".join(_date_parts(pattern, form))
    missing = [each for each in _NEEDED if f"(?P<{each}>" not in expression]
    if missing:
        raise PatternError(f"{pattern!r}: the time lacks the {missing[0]}")
    return _Part(expression, zone=UTC if "(?P<offset>" in expression else zone)


def _date_parts(pattern: str, form: str) -> Iterator[str]:
    if form == "ISO8601":
        form = _ISO8601
    form = _DATES.get(form, form)
    for match in re.finditer(r"\[T \]|'([^']*)'|([A-Za-z])\2*|[^A-Za-z']+", form):
        text = match[0]
        if text == "[T ]":
            yield text
        elif text.startswith("'"):
            yield re.escape(match[1])
        elif text in _FIELDS:
            yield _FIELDS[text]
        elif set(text) == {"S"} and len(text) in (3, 6, 9):
            yield f"(?P<fraction>[0-9]{{{len(text)}}})"
        elif text[0].isalpha():
            known = (*_FIELDS, "SSS", *_DATES, "ISO8601", "UNIX", "UNIX_MILLIS")
            raise PatternError(
                f"{pattern!r}: {text!r} in the time is not known here; known are {', '.join(known)}"
            )
        else:
            yield re.escape(text)
