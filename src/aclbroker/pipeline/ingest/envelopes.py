"""The envelopes that log collectors put around a line: container runtimes, syslog, shippers.

A prefix must match whole from the beginning of the line, and it contains no text of a client. So a
name that looks like a wrapped record stays a name.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import tzinfo
from typing import Any, Final, Protocol

from aclbroker.pipeline.ingest.kafka_line import NO_END

_STAMP: Final = (
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}"
    r"(?:[.,][0-9]{1,9})?(?:Z|[+-][0-9]{2}:?[0-9]{2})"
)
_WORD: Final = r"[A-Za-z0-9_.:/@-]{1,256}"
_TAG: Final = r"[A-Za-z0-9_./@-]{1,128}(?:\[[0-9]{1,10}\])?: "

PREFIXES: Final = {
    "CRI": rf"{_STAMP} (?:stdout|stderr) [FP] ",
    "docker compose": r"[A-Za-z0-9_.-]{1,128} +\| ",
    "kubectl logs --prefix": r"\[pod/[A-Za-z0-9_.-]{1,253}/[A-Za-z0-9_.-]{1,253}\] ",
    "syslog (RFC 3164)": (
        r"(?:<[0-9]{1,3}>)?[A-Z][a-z]{2} [ 0-9][0-9] [0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,6})? "
        rf"{_WORD} {_TAG}"
    ),
    "syslog with ISO times": rf"(?:<[0-9]{{1,3}}>)?{_STAMP} {_WORD} {_TAG}",
    "syslog (RFC 5424)": (
        rf"(?:<[0-9]{{1,3}}>)?1 {_STAMP} {_WORD} {_WORD} {_WORD} {_WORD} "
        r'(?:-|(?:\[(?:[^\]"]|"(?:[^"\\]|\\.)*")*\])+) (?:\xef\xbb\xbf)?'
    ),
    "a stream with times": rf"{_STAMP}[ \t](?:{_WORD}[ \t]|\{{[^{{}}]*\}} )?",
}
"""Regular expressions of the text before a line, by the program that writes it."""

KEYS: Final = (
    *("log", "message", "MESSAGE", "msg", "textPayload", "_raw", "line"),
    *("short_message", "full_message"),
)
"""The keys that hold the line in the JSON of Docker, Fluent Bit, Beats, journald and others."""

ENVELOPES: Final = (
    "also within JSON of a collector (Docker, Fluent Bit, Filebeat, journald), or behind a prefix "
    "of CRI (Kubernetes), docker compose, kubectl or syslog"
)
"""The kinds of envelopes, for messages."""


class Envelope(Protocol):
    """A wrapping that a collector puts around each line of a log."""

    def opened(self, line: bytes) -> bytes | None:
        """Return the line inside; None if a line does not have this envelope."""
        ...


@dataclass(frozen=True, slots=True)
class Prefix:
    """A text before each line."""

    form: re.Pattern[bytes]

    def opened(self, line: bytes) -> bytes | None:
        """Return the text behind the prefix; None if the line does not have it."""
        match = self.form.match(line)
        return None if match is None else line[match.end() :]


@dataclass(frozen=True, slots=True)
class JsonEnvelope:
    """A JSON object around each line. The line is the value of one of `KEYS`."""

    def opened(self, line: bytes) -> bytes | None:
        """Return the first text among `KEYS`, without its line feed; None without any."""
        found = json_object(line)
        if found is None:
            return None
        inner = found.get("_source")
        objects = [found, inner] if isinstance(inner, dict) else [found]
        for each in objects:
            for key in KEYS:
                text = each.get(key)
                if isinstance(text, str):
                    return text.removesuffix("\n").encode()
        return None


_ALL: Final[tuple[Envelope, ...]] = (
    JsonEnvelope(),
    *(Prefix(re.compile(form.encode())) for form in PREFIXES.values()),
)


def opened(line: bytes) -> Iterator[tuple[Envelope, bytes]]:
    """Yield each envelope that a line has, with the line inside."""
    for envelope in _ALL:
        inner = envelope.opened(line)
        if inner is not None:
            yield envelope, inner


class _Inner(Protocol):
    def is_breakable(self) -> bool: ...

    def zone(self, given: tzinfo) -> tzinfo: ...

    def brought(self, line: bytes, given: tzinfo) -> bytes: ...

    def size(self, line: bytes) -> int: ...


@dataclass(frozen=True, slots=True)
class WrappedLayout:
    """A layout of lines that each have an envelope.

    The collector wraps each piece of a broken record by itself. So records break as they do without
    envelopes.
    """

    envelope: Envelope
    inner: _Inner

    def is_breakable(self) -> bool:
        """Tell whether a line break in a name breaks an inner line."""
        return self.inner.is_breakable()

    def zone(self, given: tzinfo) -> tzinfo:
        """Return the zone of the inner lines' times."""
        return self.inner.zone(given)

    def brought(self, line: bytes, given: tzinfo) -> bytes:
        """Return the inner line in Kafka's own layout. A line without envelope is no record."""
        inner = self.envelope.opened(line)
        return b" " + line + NO_END if inner is None else self.inner.brought(inner, given)

    def size(self, line: bytes) -> int:
        """Return the size of the inner line, because the collector wrote the envelope.

        A line without envelope is not the broker's. It counts as one byte, so that the reach of a
        broken record goes past it, and any number of such lines still ends that reach.
        """
        inner = self.envelope.opened(line)
        return 1 if inner is None else self.inner.size(inner)


def json_object(line: bytes) -> dict[str, Any] | None:
    """Return a line's JSON object; None if the line is no object, or if it has a key twice."""
    if not line.lstrip(b" \t").startswith(b"{"):
        return None
    try:
        found = json.loads(line.decode(), object_pairs_hook=_unique)
        # A lone surrogate cannot be encoded, and raises UnicodeEncodeError, a ValueError.
        json.dumps(found, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return None
    return dict(found)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found
