"""Lines of our own audit log in the form in which the broker writes them, many at a time.

The broker (`broker.observability.audit_forms`) writes the keys in one order, without spaces. Lines
without escapes are cut where a comma stands before a quotation mark, and each different slice is
compared with what must stand there; since that is so of every byte, they say what `json_line` says.
All others are left to `json_log`: with other keys, or in another order, or twice, with escapes or
spaces, or cut off.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.acl.authorizer import RuleKind
from aclbroker.acl.bindings import AclOperation, AclPermission, PatternType, ResourceType
from aclbroker.pipeline.ingest import json_line
from aclbroker.pipeline.ingest.clocks import hour_of
from aclbroker.pipeline.ingest.cuts import Cuts
from aclbroker.pipeline.ingest.json_cuts import ACLS_KEY, CLOCK, CUT, At, Tail, bounds, formed
from aclbroker.pipeline.ingest.json_tail import Tails, more_of, taken_roll_up
from aclbroker.pipeline.ingest.memory import (
    Codes,
    Flags,
    Lines,
    Spans,
    are_hosts,
    bytes_of,
    canonical_hosts,
    mapped,
)
from aclbroker.pipeline.ingest.parsed import (
    MICROSECOND,
    RECORD_SCHEMA,
    Parsed,
    RolledUp,
)
from aclbroker.pipeline.ingest.record import (
    MOST_REFERENCES,
    PRINCIPAL_FORM,
    canonical_host,
    is_cluster,
)
from aclbroker.pipeline.ingest.slices import Rows, Sliced, Slices
from aclbroker.pipeline.ingest.words import Words
from aclbroker.pipeline.usage.grouping import spread

_SOME: Final = r'([^"]{1,200})'
_INTEGER: Final = "(?:0|-?[1-9][0-9]{0,17})"


def _one_of(words: frozenset[str] | list[str]) -> str:
    return f"({'|'.join(sorted(words))})"


def _compiled(form: str) -> re.Pattern[bytes]:
    return re.compile(form.encode())


_ORIGIN: Final = _compiled(
    rf',"level":"{_one_of(json_line.LEVELS)}","event":"authorization","cluster_id":"{_SOME}",'
    rf'"node_id":({_INTEGER}),"listener":"{_SOME}"'
)
_ASKED: Final = _compiled(
    rf',"operation":"{_one_of(json_line.OPERATIONS)}",'
    rf'"resource_type":"{_one_of(json_line.RESOURCE_TYPES)}","pattern_type":"LITERAL"'
)
_REQUEST: Final = _compiled(
    rf',"resource_ref_count":(0|[1-9][0-9]{{0,9}}),"api_name":"{_SOME}","api_version":{_INTEGER}'
)
_PRINCIPAL, _HOST, _NAME = b',"principal":"', b',"host":"', b',"resource_name":"'
_CLIENT, _NO_CLIENT = b',"client_id":"', b',"client_id":null'
_CORRELATION: Final = b',"correlation_id":'
_DECISION: Final = _compiled(rf',"allowed":(true|false),"rule":"{_one_of(json_line.RULES)}"')

_DIGITS: Final = 18
"""Any number of so many digits fits into a column."""

_ACL_KEY: Final = b',"acl":'
_ACL: Final = _compiled(
    rf',"acl":(?:null|({{)"resource_type":"{_one_of([each.name for each in ResourceType])}")(}})?'
)
_PATTERN: Final = _compiled(rf',"pattern_type":"{_one_of([each.name for each in PatternType])}"')
_PERMISSION: Final = _compiled(
    rf',"host":"[^"]*","operation":"{_one_of([each.name for each in AclOperation])}",'
    rf'"permission_type":"{_one_of([each.name for each in AclPermission])}"}}(}})?'
)


class _Found(NamedTuple):
    """The parts of lines that have the form, by line."""

    hour: Codes
    origin: Codes
    asked: Codes
    request: Codes
    decision: Codes
    principal: Slices
    host: Slices
    name: Slices
    client: Slices
    has_client: Flags
    has_acls: Flags
    acls: Spans
    tails: Tails

    def of(self, rows: Rows) -> _Found:
        """Return the parts of some of the lines."""
        kinds = Slices | Spans | Tails
        parts: list[Any] = [
            each.of(rows) if isinstance(each, kinds) else each[rows] for each in self
        ]
        return _Found(*parts)


class JsonForm:
    """Reads the lines of the form; what it saw before makes it faster."""

    def __init__(self) -> None:
        self._hour = Words(CLOCK.hour_form, ("micros",), hour_of)
        self._origin = Words(_ORIGIN, ("quiet", "cluster", "broker", "listener"), _origin)
        self._asked = Words(_ASKED, ("operation", "resource_type"), _texts)
        self._request = Words(_REQUEST, ("reference_count", "api"), _request)
        self._decision = Words(_DECISION, ("allowed", "rule"), _decision)
        self._acl = Words(_ACL, ("has_acl", "closes"), _acl)
        self._pattern = Words(_PATTERN, (), _texts)
        self._permission = Words(_PERMISSION, ("closes",), lambda match: (match[3] is not None,))

    def read(self, lines: Lines) -> tuple[Parsed | None, Rows]:
        """Return what those of some lines say that have the form, and which the others are."""
        every = np.arange(len(lines))
        if not len(lines) or not lines.are_few_bytes:
            return None, every
        cuts = Cuts(lines, CUT)
        rows = formed(lines, cuts)
        if not len(rows):
            return None, every
        found, is_good = self._found(lines, cuts, rows)
        micros, are_right = CLOCK.rest_of(lines, lines.starts[rows] + CLOCK.hour_size)
        good = np.flatnonzero(is_good & are_right)
        if len(good) < len(rows):
            found, micros, rows = found.of(good), micros[good], rows[good]
        if not len(rows):
            return None, every
        time = self._hour.numbers("micros", found.hour) + micros
        parsed, is_read = self._parsed(lines, found, time)
        return parsed, np.delete(every, rows[is_read]) if parsed else every

    def _found(self, lines: Lines, cuts: Cuts, rows: Rows) -> tuple[_Found, Flags]:
        """Return the parts of some lines, and in which of them all that must be there are right."""
        places, tail = bounds(lines, cuts, rows)

        sliced = Sliced(lines, places, (At.MINUTES, At.CORRELATION, At.ACLS), _are_plain)
        principal, host, name = sliced.at(At.PRINCIPAL), sliced.at(At.HOST), sliced.at(At.NAME)
        client = sliced.at(At.CLIENT)
        has_client = client.each(_is_quoted(client.texts, _CLIENT))
        found = _Found(
            sliced.words(At.HOUR, self._hour),
            sliced.words(At.ORIGIN, self._origin),
            sliced.words(At.ASKED, self._asked),
            sliced.words(At.REQUEST, self._request),
            sliced.words(At.DECISION, self._decision),
            *(principal, host, name, client, has_client, tail.has_acls),
            Spans(places[At.ACLS] + len(ACLS_KEY), places[At.ACL]),
            self._tails(lines, sliced, places[At.ACL], tail),
        )
        good = lines.have_number(places[At.CORRELATION], places[At.DECISION], _CORRELATION)
        named = np.flatnonzero(tail.has_acls)
        begins, behind = places[At.ACLS][named], places[At.ACL][named]
        good[named] &= lines.have_number(begins, behind, ACLS_KEY)
        good[named] &= behind - begins <= len(ACLS_KEY) + _DIGITS
        for part in found[:5]:
            good &= part >= 0
        good &= principal.each(_is_principal(principal.texts))
        good &= host.each(
            pc.and_(
                _is_quoted(host.texts, _HOST),
                are_hosts(pc.binary_slice(host.texts, len(_HOST), -1)),
            )
        )
        good &= name.each(_is_quoted(name.texts, _NAME))
        good &= has_client | client.each(pc.equal(client.texts, _NO_CLIENT))
        more = np.flatnonzero(found.tails.has_more)
        good[more] &= lines.have(places[At.ACL][more], _ACL_KEY)
        return found, good

    def _tails(self, lines: Lines, sliced: Sliced, begin: Codes, tail: Tail) -> Tails:
        """Take the rest of the lines, which have an ACL there or null, and may be roll-ups."""
        acl = sliced.words(At.ACL, self._acl)
        has_acl = self._acl.flags("has_acl", acl)
        permission = sliced.words(At.PERMISSION, self._permission)
        closes = self._acl.flags("closes", acl)
        is_whole = ~closes & (permission >= 0) & (sliced.words(At.PATTERN, self._pattern) >= 0)
        for number, key in ((At.ACL_NAME, _NAME), (At.ACL_PRINCIPAL, _PRINCIPAL)):
            found = sliced.at(number)
            is_whole &= found.each(_is_quoted(found.texts, key))
        closes = np.where(has_acl, self._permission.flags("closes", permission), closes)
        good = tail.is_known & (acl >= 0) & (has_acl == tail.has_acl) & (is_whole | ~has_acl)
        good &= closes != tail.is_roll_up
        roll_up = taken_roll_up(lines, good & tail.is_roll_up, tail.how_many, tail.last, tail.ends)
        if roll_up is not None:
            good &= roll_up.is_roll_up | ~tail.is_roll_up
        return Tails(Spans(begin + len(_ACL_KEY), tail.ends), ~good, roll_up)

    def _parsed(
        self, lines: Lines, found: _Found, time: NDArray[np.int64]
    ) -> tuple[Parsed | None, Flags]:
        """Return what lines of the form say, and which of them; others have wrong values."""
        principals = _inner(found.principal, _PRINCIPAL)
        is_read = np.ones(len(time), bool)
        more = more_of(lines, found.tails, is_read, time, principals)
        is_read = more.is_read
        rows = np.flatnonzero(is_read)
        if not len(rows):
            return None, is_read
        if len(rows) < len(is_read):
            found, time, more = found.of(rows), time[rows], more.of(rows)
            principals = _inner(found.principal, _PRINCIPAL)
        columns = self._columns(found)
        columns["acls"] = _positions(lines, found)
        columns["first_acls"] = pa.array(more.first_acls, mask=more.first_acls < 0)
        columns["principal"] = principals
        columns["other_principals"] = spread(pa.array(more.others, pa.string()), more.others_of)
        records = pa.table([columns[name] for name in RECORD_SCHEMA.names], RECORD_SCHEMA.names)
        rolled_up = None
        if more.last is not None:
            last = pa.array(more.last).cast(MICROSECOND)
            rolled_up = RolledUp(pa.array(more.decisions), last)
        times = pa.array(time).cast(MICROSECOND)
        return Parsed(records, None, times, (), rolled_up), is_read

    def _columns(self, found: _Found) -> dict[str, pa.Array]:
        """Return the columns of records but those of principals."""
        nobody = np.zeros(len(found.origin), np.int32)
        hosts = _inner(found.host, _HOST)
        columns = {
            "host": mapped(hosts, lambda each: canonical_hosts(each, canonical_host)),
            "resource_name": _inner(found.name, _NAME),
            "client_id": _inner(found.client, _CLIENT, found.has_client),
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


def _positions(lines: Lines, found: _Found) -> pa.Array:
    """Return the position of the ACLs that decided, null where a line does not tell."""
    rows = np.flatnonzero(found.has_acls)
    if not len(rows):
        return pa.nulls(len(found.has_acls), pa.int64())
    texts = lines.texts(found.acls.starts[rows], found.acls.ends[rows])
    positions = np.zeros(len(found.has_acls), np.int64)
    positions[rows] = texts.cast(pa.string()).cast(pa.int64()).to_numpy()
    return pa.array(positions, mask=~found.has_acls)


def _is_quoted(slices: pa.Array, before: bytes) -> pa.Array:
    """Tell which slices are a text of JSON behind a key, so far as they hold no escapes."""
    good = pc.and_(pc.starts_with(slices, before), pc.ends_with(slices, b'"'))
    good = pc.and_(good, pc.greater(pc.binary_length(slices), len(before)))
    # A slice begins with a quotation mark behind the comma. Those which are good up to here have
    # four of them at least, so that all together tell soon whether one has more.
    kept = slices if pc.all(good).as_py() else slices.filter(good)
    if np.count_nonzero(bytes_of(kept) == _QUOTE) == 4 * len(kept):
        return good
    return pc.and_(good, pc.equal(pc.count_substring(slices, b'"'), 4))


def _is_principal(slices: pa.Array) -> pa.Array:
    has_type = pc.match_substring_regex(slices, f"^{_PRINCIPAL.decode()}{PRINCIPAL_FORM}")
    return pc.and_(_is_quoted(slices, _PRINCIPAL), has_type)


def _inner(slices: Slices, before: bytes, where: Flags | None = None) -> pa.DictionaryArray:
    return slices.inner(len(before), 1, where)


def _are_plain(slices: Lines) -> Flags:
    """Tell which slices are UTF-8 without escapes, and without what JSON must escape."""
    others = slices.with_controls() | slices.with_byte(lambda codes: codes == _BACKSLASH)
    return slices.are_utf8() & ~others


_BACKSLASH, _QUOTE = ord("\\"), ord('"')


def _texts(match: re.Match[bytes]) -> tuple[str, ...]:
    return tuple(each.decode() for each in match.groups())


def _origin(match: re.Match[bytes]) -> tuple[bool, str, str, str] | None:
    level, cluster, node, listener = _texts(match)
    if not is_cluster(cluster):
        return None
    return level == "trace", cluster, json_line.node_name(node), listener


def _request(match: re.Match[bytes]) -> tuple[int, str] | None:
    count = int(match[1])
    return (count, match[2].decode()) if count <= MOST_REFERENCES else None


def _acl(match: re.Match[bytes]) -> tuple[bool, bool]:
    return match[1] is not None, match[3] is not None


def _decision(match: re.Match[bytes]) -> tuple[bool, str] | None:
    allowed, rule = match[1] == b"true", match[2].decode()
    wrong = rule == RuleKind.DEFAULT_DENY.value if allowed else rule in json_line.ALLOWING
    return None if wrong else (allowed, rule)
