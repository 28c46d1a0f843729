"""Lines of our own audit log in the form in which the broker writes them, many at a time.

The broker (`broker.observability.audit_forms`) writes the keys in one order, without spaces. Lines
of that form without escapes are gone through part by part (`walking`); since every byte of them is
compared with what must stand there, they say what `json_line` says. All others are left to
`json_log`: with other keys, or in another order, or twice, with escapes or spaces, or cut off.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.broker.acl.authorizer import RuleKind
from aclbroker.broker.acl.bindings import AclOperation, AclPermission, PatternType, ResourceType
from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.clocks import Clock
from aclbroker.pipeline.ingest.json_tail import Tails, more_of, taken_roll_up
from aclbroker.pipeline.ingest.memory import (
    Codes,
    Flags,
    Lines,
    Spans,
    canonical_hosts,
    encoded_texts,
    holding,
    mapped,
)
from aclbroker.pipeline.ingest.parsed import (
    MICROSECOND,
    RECORD_SCHEMA,
    Parsed,
    RolledUp,
)
from aclbroker.pipeline.ingest.record import (
    IPV4,
    MOST_REFERENCES,
    PRINCIPAL_FORM,
    canonical_host,
)
from aclbroker.pipeline.ingest.walking import Walk
from aclbroker.pipeline.ingest.words import Words
from aclbroker.pipeline.usage.grouping import spread

_CLOCK: Final = Clock(b'{"timestamp":"', b"T", b"hh:mm:ss.uuuuuuZ")
_SOME: Final = r'([^"\\\x00-\x1f]{1,200})'
_INTEGER: Final = "(?:0|-?[1-9][0-9]{0,17})"


def _one_of(words: frozenset[str] | list[str]) -> str:
    return f"({'|'.join(sorted(words))})"


def _compiled(form: str) -> re.Pattern[bytes]:
    return re.compile(form.encode())


_ORIGIN: Final = _compiled(
    rf'","level":"{_one_of(json_line.LEVELS)}","event":"authorization","cluster_id":"{_SOME}",'
    rf'"node_id":{_INTEGER},"listener":"{_SOME}","principal":"'
)
_HOST: Final = b'","host":"'
_ASKED: Final = _compiled(
    rf'","operation":"{_one_of(json_line.OPERATIONS)}",'
    rf'"resource_type":"{_one_of(json_line.RESOURCE_TYPES)}","pattern_type":"LITERAL",'
    r'"resource_name":"'
)
_REQUEST: Final = _compiled(
    rf'","resource_ref_count":(0|[1-9][0-9]{{0,9}}),"api_name":"{_SOME}",'
    rf'"api_version":{_INTEGER},"client_id":(?:(")|null,"correlation_id":)'
)
_CORRELATION: Final = b'","correlation_id":'
_DECISION: Final = _compiled(rf',"allowed":(true|false),"rule":"{_one_of(json_line.RULES)}","acl":')

_ACL: Final = _compiled(
    rf'{{"resource_type":"{_one_of([each.name for each in ResourceType])}","resource_name":"'
)
_PATTERN: Final = _compiled(
    rf'","pattern_type":"{_one_of([each.name for each in PatternType])}","principal":"'
)
_PERMISSION: Final = _compiled(
    rf'","operation":"{_one_of([each.name for each in AclOperation])}",'
    rf'"permission_type":"{_one_of([each.name for each in AclPermission])}"}}'
)
_NO_ACL: Final = b"null"


class _Found(NamedTuple):
    """The parts of lines that have the form, by line."""

    origin: Codes
    principal: Spans
    host: Spans
    asked: Codes
    name: Spans
    request: Codes
    has_client: Flags
    client: Spans
    decision: Codes
    tails: Tails

    def of(self, rows: NDArray[np.int64]) -> _Found:
        """Return the parts of some of the lines."""
        parts: list[Any] = [
            each.of(rows) if isinstance(each, Spans | Tails) else each[rows] for each in self
        ]
        return _Found(*parts)


class JsonForm:
    """Reads the lines of the form; what it saw before makes it faster."""

    def __init__(self) -> None:
        self._origin = Words(_ORIGIN, ("quiet", "cluster", "listener"), _origin)
        self._asked = Words(_ASKED, ("operation", "resource_type"), _texts)
        self._request = Words(_REQUEST, ("reference_count", "api", "has_client"), _request)
        self._decision = Words(_DECISION, ("allowed", "rule"), _decision)
        self._acl = Words(_ACL, (), _texts)
        self._pattern = Words(_PATTERN, (), _texts)
        self._permission = Words(_PERMISSION, (), _texts)

    def read(self, lines: pa.Array) -> tuple[Parsed | None, pa.Array]:
        """Return what those of some binary lines say that have the form, and the others."""
        if not len(lines) or lines.null_count:
            return None, lines
        try:
            memory = Lines(lines)
        except OverflowError:
            return None, lines
        time, good = _CLOCK.read(memory, memory.starts)
        walk = Walk(memory)
        walk.good &= good & _plain(memory)
        walk.skip(_CLOCK.size)
        if not walk.good.any():
            return None, lines
        found = self._walked(walk)
        rows = np.flatnonzero(walk.good)
        if len(rows) < len(lines):
            found, time = found.of(rows), time[rows]
        parsed, is_read = self._parsed(memory, found, time)
        if parsed is None or (is_read.all() and len(rows) == len(lines)):
            return parsed, lines[:0] if parsed else lines
        is_other = np.ones(len(lines), bool)
        is_other[rows[is_read]] = False
        return parsed, lines.filter(pa.array(is_other))

    def _walked(self, walk: Walk) -> _Found:
        for words in (self._origin, self._asked, self._request, self._decision):
            words.begin()
        for words in (self._acl, self._pattern, self._permission):
            words.begin()
        origin = walk.words(self._origin)
        principal = walk.until(b'"')
        walk.text(_HOST)
        host = walk.until(b'"')
        asked = walk.words(self._asked)
        name = walk.until(b'"')
        request = walk.words(self._request)
        has_client = self._request.flags("has_client", request)
        client = walk.until(b'"', has_client)
        walk.text(_CORRELATION, has_client)
        walk.digits()
        decision = walk.words(self._decision)
        tails = self._tails(walk)
        return _Found(
            origin, principal, host, asked, name, request, has_client, client, decision, tails,
        )  # fmt: skip

    def _tails(self, walk: Walk) -> Tails:
        """Take the rest of the lines, which have an ACL there or null, and may be roll-ups."""
        begin, good = walk.at, walk.good.copy()
        has_acl = walk.lines.codes[begin] == ord("{")
        walk.text(_NO_ACL, ~has_acl)
        for words in (self._acl, self._pattern):
            walk.words(words, has_acl)
            walk.until(b'"', has_acl)
        walk.text(_HOST, has_acl)
        walk.until(b'"', has_acl)
        walk.words(self._permission, has_acl)
        roll_up = taken_roll_up(walk)
        walk.text(b"}")
        walk.end()
        has_more = good & ~walk.good
        walk.good = good
        return Tails(Spans(begin, walk.lines.ends, has_more), has_more, roll_up)

    def _parsed(
        self, lines: Lines, found: _Found, time: NDArray[np.int64]
    ) -> tuple[Parsed | None, Flags]:
        """Return what lines of the form say, and which of them; others have wrong values."""
        principals = encoded_texts(lines, found.principal)
        is_read = found.host.ends > found.host.starts
        is_read &= holding(
            principals, lambda texts: pc.match_substring_regex(texts, f"^{PRINCIPAL_FORM}")
        )
        more = more_of(lines, found.tails, is_read, time, principals)
        is_read = more.is_read
        rows = np.flatnonzero(is_read)
        if not len(rows):
            return None, is_read
        if len(rows) < len(is_read):
            found, time, more = found.of(rows), time[rows], more.of(rows)
            principals = principals.take(pa.array(rows))
        columns = self._columns(lines, found)
        columns["principal"] = principals
        columns["other_principals"] = spread(pa.array(more.others, pa.string()), more.others_of)
        records = pa.table([columns[name] for name in RECORD_SCHEMA.names], RECORD_SCHEMA.names)
        rolled_up = None
        if more.last is not None:
            last = pa.array(more.last).cast(MICROSECOND)
            rolled_up = RolledUp(pa.array(more.decisions), last)
        times = pa.array(time).cast(MICROSECOND)
        return Parsed(records, None, times, (), rolled_up), is_read

    def _columns(self, lines: Lines, found: _Found) -> dict[str, pa.Array]:
        """Return the columns of records but those of principals."""
        hosts = encoded_texts(lines, found.host)
        clients = lines.texts(found.client.starts, found.client.ends).cast(pa.string())
        nobody = np.zeros(len(found.origin), np.int32)
        columns = {
            "host": mapped(hosts, lambda each: canonical_hosts(each, IPV4, canonical_host)),
            "resource_name": encoded_texts(lines, found.name),
            "client_id": pc.if_else(pa.array(found.has_client), clients, None),
            "source": spread(pa.array([json_line.SOURCE]), nobody),
        }
        parts = (
            (self._origin, found.origin),
            (self._asked, found.asked),
            (self._request, found.request),
            (self._decision, found.decision),
        )
        for words, codes in parts:
            for name in words.fields:
                if name in RECORD_SCHEMA.names:
                    columns[name] = words.column(name, codes, RECORD_SCHEMA.field(name).type)
        return columns


def _plain(lines: Lines) -> Flags:
    """Tell which lines are UTF-8 without escapes, and without what JSON must escape."""
    found = lines.are_utf8()
    first, last = int(lines.starts[0]), int(lines.ends[-1])
    if first < last and lines.codes[first:last].min() < _SPACE:
        found &= ~lines.with_byte(lambda codes: codes < _SPACE)
    return found & ~lines.with_byte(lambda codes: codes == _BACKSLASH)


_SPACE: Final = ord(" ")
_BACKSLASH: Final = ord("\\")


def _texts(match: re.Match[bytes]) -> tuple[str, ...]:
    return tuple(each.decode() for each in match.groups())


def _origin(match: re.Match[bytes]) -> tuple[bool, str, str]:
    level, cluster, listener = _texts(match)
    return level == "trace", cluster, listener


def _request(match: re.Match[bytes]) -> tuple[int, str, bool] | None:
    count = int(match[1])
    return (count, match[2].decode(), match[3] is not None) if count <= MOST_REFERENCES else None


def _decision(match: re.Match[bytes]) -> tuple[bool, str] | None:
    allowed, rule = match[1] == b"true", match[2].decode()
    wrong = rule == RuleKind.DEFAULT_DENY.value if allowed else rule in json_line.ALLOWING
    return None if wrong else (allowed, rule)
