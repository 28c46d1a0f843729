"""The log: structlog events as JSON lines or as text for people, on stderr.

Values come from clients and files: line breaks, control characters and terminal escapes in them are
escaped in both forms. So each event is one line, except for tracebacks, whose lines are indented,
and nobody can forge another.
"""

import json
import logging
import re
import sys
from collections.abc import Callable, Iterable, Iterator, MutableMapping
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import Any, Final, TextIO

import structlog

from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.log_writer import LogWriter

Event = MutableMapping[str, Any]
_Renderer = Callable[[Any, str, Event], str]

# Control characters (C0, DEL, C1), line separators, and changes of the direction of text.
_UNSAFE = re.compile(r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|\\")
_SHORT = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_FLUSH_SECONDS: Final = 2.0
_to_json = json.JSONEncoder(separators=(",", ":"), default=str).encode


class LogOutput:
    """The stream that lines of the log are written to.

    A stream that cannot be written, such as a closed pipe, loses lines but stops nothing.
    """

    def __init__(self, stream: TextIO, render: _Renderer) -> None:
        self._stream = stream
        self._render = render
        self._writer: LogWriter | None = None

    @property
    def is_json(self) -> bool:
        """Whether events are written as JSON."""
        return self._render is _render_json

    @property
    def lost_lines(self) -> int:
        """How many lines could not be written so far."""
        return 0 if self._writer is None else self._writer.lost

    @property
    def is_losing(self) -> bool:
        """Whether lines are lost just now, since nobody reads them or they cannot be written."""
        return self._writer is not None and self._writer.is_losing

    @contextmanager
    def writing(self, lock: LineLock | None = None) -> Iterator[None]:
        """Inside the block, let nobody wait for those who read the lines.

        Other processes that write to the same stream do so with the same ``lock``.

        Where the stream is no file, a few MiB of lines may wait; of more the number is logged when
        there is room again. At the end what waits is written, for two seconds at most, and later
        lines are lost. A stream that has no descriptor is written as before.
        """
        try:
            self._stream.flush()
            descriptor = self._stream.fileno()
        except (OSError, ValueError):
            yield
            return
        self._writer = LogWriter(descriptor, self._notice_of_loss, lock=lock)
        try:
            yield
        finally:
            self._writer.close(_FLUSH_SECONDS)

    def rendered(self, event: Event) -> str:
        """Return the line of an event that has all its keys."""
        return self._render(None, "", event)

    def write_line(self, line: str) -> None:
        """Write a finished line, as it stands."""
        self.write_lines((line,))

    def write_lines(self, lines: Iterable[str]) -> None:
        """Write finished lines at once, as they stand."""
        if self._writer is not None:
            self._writer.write(map(self._encoded, lines))
            return
        try:
            self._stream.write("".join(f"{line}\n" for line in lines))
            self._stream.flush()
        except (OSError, ValueError):
            # ValueError: the stream is closed. Nothing is left to tell it to.
            return

    def _encoded(self, line: str) -> bytes:
        return line.encode(self._stream.encoding or "utf-8", errors="backslashreplace")

    def _notice_of_loss(self, count: int) -> bytes:
        now = datetime.now(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
        event = {"timestamp": now, "level": "warning", "event": "log lines lost", "count": count}
        return self._encoded(self.rendered(event))

    # structlog calls the method that is named like the level.
    debug = info = warning = error = critical = write_line


class _StandardLogging(logging.Handler):
    """Brings what the standard library logs, such as asyncio's warnings, into the log."""

    def emit(self, record: logging.LogRecord) -> None:
        """Write a record at the level of structlog's that is not above its own."""
        level = max(level for level in _STANDARD_LEVELS if level <= max(record.levelno, 10))
        structlog.get_logger().log(
            level, record.getMessage(), logger=record.name, exc_info=record.exc_info
        )


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}
_STANDARD_LEVELS = (*_LEVELS.values(), logging.CRITICAL)


def configure(
    level: str = "info", form: str | None = None, stream: TextIO | None = None
) -> LogOutput:
    """Set structlog and the standard library's logging up, and return where their lines go.

    `level` is debug, info, warning or error. `form` is console or json; None is console if the
    stream is a terminal. The stream is stderr if none is given.
    """
    stream = stream or sys.stderr
    if form is None:
        form = "console" if stream.isatty() else "json"
    output = LogOutput(stream, _render_json if form == "json" else _render_console)
    structlog.configure(
        processors=_processors(output),
        wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]),
        logger_factory=lambda *_: output,
        # A module's logger follows a later configure(); that costs a microsecond for each event.
        cache_logger_on_first_use=False,
    )
    logging.basicConfig(
        handlers=[_StandardLogging()], level=max(_LEVELS[level], logging.WARNING), force=True
    )
    logging.captureWarnings(capture=True)
    return output


_own: Final[ContextVar[Any]] = ContextVar("aclbroker_log", default=None)


class _Logger:
    """A module's logger, which asks at each event where events go."""

    def __getattr__(self, name: str) -> Any:
        own = _own.get()
        return getattr(structlog.get_logger() if own is None else own, name)


def get_logger() -> Any:
    """Return the logger of a module.

    Its events go where `configure` said, or where `log_of_its_own` says in the current context.
    """
    return _Logger()


def log_of_its_own(stream: TextIO, level: str = "info", form: str = "json") -> LogOutput:
    """Send the events of the current context, such as a thread, to a stream in a form; return that.

    Other contexts keep their log: this is for a broker, or a store, within another program.
    """
    output = LogOutput(stream, _render_json if form == "json" else _render_console)
    wrapper = structlog.make_filtering_bound_logger(_LEVELS[level])
    _own.set(structlog.wrap_logger(output, processors=_processors(output), wrapper_class=wrapper))
    return output


def say_in_context(**values: Any) -> None:
    """Have all events of the current context, as of a task and those that it begins, say these
    values.
    """
    structlog.contextvars.bind_contextvars(**values)


def _processors(output: LogOutput) -> list[Any]:
    return [
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        structlog.contextvars.merge_contextvars,
        *_of_process,
        output._render,
    ]


_of_process: Final[list[Any]] = []


def name_worker(number: int, output: LogOutput) -> None:
    """Have all events of this process say by which worker they are."""

    def add_number(_logger: Any, _method: str, event: Event) -> Event:
        event["worker"] = number
        return event

    _of_process[:] = [add_number]
    structlog.configure(processors=_processors(output))


def set_level(level: str) -> None:
    """Change the least level that is logged; see `configure`."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(_LEVELS[level]))
    logging.getLogger().setLevel(max(_LEVELS[level], logging.WARNING))


def escape(text: str) -> str:
    r"""The text with control characters written as \n, \x1b, ... and a backslash doubled."""
    return _UNSAFE.sub(_escaped, text)


def _escaped(match: re.Match[str]) -> str:
    char = match[0]
    code = ord(char)
    return _SHORT.get(char) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")


def json_line(value: Any) -> str:
    """The value, such as an event, as one line of JSON, in ASCII without control characters."""
    # The encoder escapes all of them but DEL.
    return _to_json(value).replace("\x7f", "\\u007f")


def _render_json(logger: Any, method: str, event: Event) -> str:
    first = {key: event[key] for key in ("timestamp", "level", "event")}
    return json_line(first | dict(event))


def _render_console(logger: Any, method: str, event: Event) -> str:
    rest = dict(event)
    traceback = rest.pop("exception", None)
    line = f"{rest.pop('timestamp')} [{rest.pop('level'):7}] {escape(str(rest.pop('event')))}"
    line += "".join(f" {key}={_quoted(value)}" for key, value in rest.items())
    if traceback:
        line += "".join(f"\n    {escape(part)}" for part in str(traceback).split("\n"))
    return line


def _quoted(value: Any) -> str:
    if not isinstance(value, str) or not value.isprintable():
        return json_line(value)
    is_word = value and not any(char in value for char in " \"'=\\")
    return value if is_word else json.dumps(value, ensure_ascii=False)
