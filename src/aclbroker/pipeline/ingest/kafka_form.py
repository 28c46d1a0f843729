"""Lines of Kafka's log in the form in which most of them come, many at a time.

That is the form of StandardAuthorizer, with a request and a rule. Such lines are cut where a space
stands before an equals sign, which is where all fixed words but one end, and each different slice
is read once. So a line that is read here has each of the words once, and says what `kafka_line`
says. Whatever is doubtful is left to it: lines that are none, that were forged or cut off, of older
authorizers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache, reduce
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.clocks import HOUR, MINUTE, hour_of
from aclbroker.pipeline.ingest.cuts import Cuts
from aclbroker.pipeline.ingest.kafka_apis import APIS
from aclbroker.pipeline.ingest.kafka_cuts import APART, CLOCK, CUT, At, bounds, formed
from aclbroker.pipeline.ingest.kafka_line import Dialect
from aclbroker.pipeline.ingest.memory import (
    Codes,
    Flags,
    Lines,
    are_hosts,
    bytes_of,
    canonical_hosts,
    mapped,
)
from aclbroker.pipeline.ingest.parsed import RECORD_SCHEMA
from aclbroker.pipeline.ingest.record import PRINCIPAL_FORM, canonical_host
from aclbroker.pipeline.ingest.slices import Rows, Sliced, Slices
from aclbroker.pipeline.ingest.words import Words
from aclbroker.pipeline.usage.grouping import spread


class Formed(NamedTuple):
    """The lines that have the form: their numbers, what each says, and its time in UTC."""

    rows: NDArray[np.int64]
    records: pa.Table
    micros: NDArray[np.int64]


def _compiled(form: str) -> re.Pattern[bytes]:
    return re.compile(form.encode(), re.DOTALL)


def _one_of(words: Any) -> str:
    return f"({'|'.join(sorted(words))})"


def _stem(word: str) -> bytes:
    """Return what stands of a fixed word before the cut in it."""
    return word.removesuffix(" =").encode()


_BEGIN: Final = b" = "
_RULE: Final = kafka_line.RULE.encode()
_TAIL: Final = re.escape(kafka_line.TAIL)

_LEVEL: Final = _compiled(f"{_one_of(kafka_line.LEVELS)}{kafka_line.PRINCIPAL.removesuffix(' =')}")
_ALLOWED, _DENIED = _stem(kafka_line.ALLOWED), _stem(kafka_line.DENIED)
_OPERATION: Final = _compiled(
    f" = {_one_of(kafka_line.OPERATIONS)}{kafka_line.HOST.removesuffix(' =')}"
)
_HOST: Final = _stem(kafka_line.RESOURCE)
_TYPES: Final = tuple(kafka_line.RESOURCE_TYPES.items())
_RESOURCES: Final = tuple(f" = {printed}:LITERAL:".encode() for printed, _ in _TYPES)
_NAME: Final = _stem(kafka_line.REQUEST)
_REQUEST: Final = _compiled(f" = {_one_of(APIS)}{kafka_line.COUNT.removesuffix(' =')}")
_COUNT: Final = rf" = ([0-9]{{1,9}}){kafka_line.RULE} "
_SIMPLE: Final = rf"{_one_of(kafka_line.SIMPLE_RULES)}{_TAIL}"
_ACL: Final = rf"{kafka_line.MATCHING_ACL}\(acl=StandardAcl([(\[])resourceType="
_DECIDED: Final = _compiled(f"{_COUNT}(?:{_SIMPLE}|{_ACL}.*)")
_PERMISSION: Final = _compiled(rf".?, permissionType=(ALLOW|DENY)([)\]])\){_TAIL}")

_HOST_FORM: Final = f"^{_BEGIN.decode()}.*{_HOST.decode()}$"


class _Found(NamedTuple):
    """The parts of lines that have the form, by line."""

    hour: Codes
    level: Codes
    operation: Codes
    request: Codes
    decided: Codes
    asker: Slices
    host: Slices
    resource: Slices
    allowed: Flags

    def of(self, rows: Rows) -> _Found:
        """Return the parts of some of the lines."""
        parts: list[Any] = [
            each.of(rows) if isinstance(each, Slices) else each[rows] for each in self
        ]
        return _Found(*parts)


class KafkaForm:
    """Reads the lines of the form in one cluster's log; what it saw before makes it faster."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._hour = Words(CLOCK.hour_form, ("micros",), hour_of)
        self._level = Words(_LEVEL, ("quiet",), lambda match: (match[1] == b"TRACE",))
        self._operation = Words(_OPERATION, ("operation",), _operation)
        self._request = Words(_REQUEST, ("api", "is_probing"), _request)
        self._decided = Words(_DECIDED, _DECIDED_FIELDS, _decided)
        self._permission = Words(_PERMISSION, ("permits", "is_square"), _permission)

    def read(self, lines: Lines, zone: tzinfo) -> Formed | None:
        """Return what those of some lines say that have the form; None if none has it.

        ``zone``: that of the times in them.
        """
        if not len(lines) or not lines.are_few_bytes:
            return None
        cuts = Cuts(lines, CUT, _RULE[:2], apart=APART)
        rows = formed(lines, cuts)
        rows = rows[lines.are_utf8()[rows]]
        if not len(rows):
            return None
        found, good = self._found(lines, cuts, rows)
        micros, are_right = CLOCK.rest_of(lines, lines.starts[rows] + CLOCK.hour_size)
        kept = np.flatnonzero(good & are_right)
        if cuts.others != len(kept):
            kept = kept[_have_one_rule(lines, rows[kept])]
        if not len(kept):
            return None
        if len(kept) < len(rows):
            found, micros, rows = found.of(kept), micros[kept], rows[kept]
        columns = self._columns(found)
        arrays = [
            columns.get(field.name, pa.nulls(len(rows), _encoded_type(field.type)))
            for field in RECORD_SCHEMA
        ]
        records = pa.Table.from_arrays(arrays, RECORD_SCHEMA.names)
        return Formed(rows, records, self._in_utc(found.hour, micros, zone))

    def _found(self, lines: Lines, cuts: Cuts, rows: Rows) -> tuple[_Found, Flags]:
        """Return the parts of some lines, and which of them have all parts as they must be."""
        sliced = Sliced(lines, bounds(lines, cuts, rows), (At.MINUTES,))
        asker = sliced.at(At.ASKER)
        found = _Found(
            sliced.words(At.HOUR, self._hour),
            sliced.words(At.LEVEL, self._level),
            sliced.words(At.OPERATION, self._operation),
            sliced.words(At.REQUEST, self._request),
            sliced.words(At.DECIDED, self._decided),
            *(asker, sliced.at(At.HOST), sliced.at(At.RESOURCE)),
            asker.each(pc.ends_with(asker.texts, _ALLOWED)),
        )
        good = asker.each(_are_askers(asker.texts))
        is_host = _match(found.host.texts, _HOST_FORM)
        hosts = pc.binary_slice(found.host.texts, len(_BEGIN), -len(_HOST))
        good &= found.host.each(pc.and_(is_host, are_hosts(hosts)))
        good &= found.resource.each(_are_resources(found.resource.texts))
        for part in found[:5]:
            good &= part >= 0
        decided = self._decided
        names_acl = decided.flags("names_acl", found.decided)
        permission = sliced.words(At.PERMISSION, self._permission)
        permits = self._permission.flags("permits", permission)
        is_square = self._permission.flags("is_square", permission)
        good &= ~names_acl | (permission >= 0)
        good &= ~names_acl | (is_square == decided.flags("is_square", found.decided))
        allows = np.where(names_acl, permits, decided.flags("allows", found.decided))
        good &= allows == found.allowed
        good &= ~names_acl | _name_askers(asker, sliced.at(At.INNER))
        # What this asks for depends on the name, for `kafka_line` to see.
        is_probe = self._request.flags("is_probing", found.request)
        good &= ~(is_probe & decided.flags("is_zero", found.decided))
        return found, good

    def _in_utc(self, codes: Codes, micros: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
        """Return the times of lines in UTC, in microseconds; ``micros``: those since the hour."""
        hours = self._hour.values("micros")
        in_utc = np.zeros(len(hours), np.int64)
        changing = []
        for number in np.unique(codes).tolist():
            in_utc[number] = first = _in_utc(hours[number], zone)
            if _in_utc(hours[number] + HOUR - MINUTE, zone) - first != HOUR - MINUTE:
                changing.append(number)
        found: NDArray[np.int64] = in_utc[codes] + micros
        # The zone's clock is put forward or back within the hour.
        for row in np.flatnonzero(np.isin(codes, changing)).tolist() if changing else ():
            since, rest = divmod(int(micros[row]), MINUTE)
            found[row] = _in_utc(hours[codes[row]] + since * MINUTE, zone) + rest
        return found

    def _columns(self, found: _Found) -> dict[str, pa.Array]:
        """Return the columns of records."""
        nobody = np.zeros(len(found.level), np.int32)
        hosts = found.host.inner(len(_BEGIN), len(_HOST))
        columns = {
            "cluster": spread(pa.array([self._cluster]), nobody),
            "host": mapped(hosts, lambda each: canonical_hosts(each, canonical_host)),
            "principal": _principals(found.asker),
            "allowed": pa.array(found.allowed),
            **_resources(found.resource),
        }
        parts = (
            (self._level, found.level),
            (self._operation, found.operation),
            (self._request, found.request),
            (self._decided, found.decided),
        )
        for words, codes in parts:
            for name in words.fields:
                if name in RECORD_SCHEMA.names:
                    kind = RECORD_SCHEMA.field(name).type
                    columns[name] = words.column(name, codes, kind)
        return columns


def _are_askers(slices: pa.Array) -> pa.Array:
    """Tell which slices are a principal and a verdict."""
    is_one = _match(slices, f"^{_BEGIN.decode()}{PRINCIPAL_FORM}")
    is_told = pc.or_(pc.ends_with(slices, _ALLOWED), pc.ends_with(slices, _DENIED))
    return _without_rule(slices, pc.and_(is_one, is_told))


def _name_askers(askers: Slices, acls: Slices) -> Flags:
    """Tell for which lines the ACL in the rule may have decided (`kafka_line.is_of`)."""
    pairs = askers.codes.astype(np.int64) * len(acls.texts) + acls.codes
    different, codes = np.unique(pairs, return_inverse=True)
    asker, acl = np.divmod(different, len(acls.texts))
    principals = _named(askers.texts).take(pa.array(asker)).to_pylist()
    rules = acls.texts.take(pa.array(acl)).to_pylist()
    pairs_of = zip(rules, principals, strict=True)
    found = np.array([kafka_line.is_of(rule, principal) for rule, principal in pairs_of], bool)
    return found[codes]


def _named(askers: pa.Array) -> pa.Array:
    texts = pc.binary_slice(askers, len(_BEGIN), -len(_DENIED))
    # One of the verdicts is a letter longer.
    shorter = pc.binary_slice(askers, len(_BEGIN), -len(_ALLOWED))
    return pc.if_else(pc.ends_with(askers, _ALLOWED), shorter, texts)


def _principals(askers: Slices) -> pa.DictionaryArray:
    return spread(_named(askers.texts).cast(pa.string()), askers.codes)


def _are_resources(slices: pa.Array) -> pa.Array:
    """Tell which slices are a type and a name."""
    is_one = pc.ends_with(slices, _NAME)
    starts = [pc.starts_with(slices, begin) for begin in _RESOURCES]
    is_one = pc.and_(is_one, reduce(pc.or_, starts))
    return _without_rule(slices, is_one)


def _without_rule(slices: pa.Array, flags: pa.Array) -> pa.Array:
    """Return flags of slices without those that hold the one fixed word that has no cut in it."""
    if _RULE not in bytes_of(slices).tobytes():
        return flags
    return pc.and_not(flags, pc.match_substring(slices, _RULE))


def _resources(slices: Slices) -> dict[str, pa.Array]:
    """Return the columns of types and names."""
    types = np.zeros(len(slices.texts), np.int32)
    for number, begin in enumerate(_RESOURCES):
        is_one = pc.starts_with(slices.texts, begin)
        types[is_one.to_numpy(zero_copy_only=False)] = number
    lines = Lines.of(slices.texts)
    begins = np.array([len(begin) for begin in _RESOURCES])[types]
    names = lines.texts(lines.starts + begins, lines.ends - len(_NAME))
    return {
        "resource_type": spread(pa.array([name for _, name in _TYPES]), types[slices.codes]),
        "resource_name": spread(names.cast(pa.string()), slices.codes),
    }


def _have_one_rule(lines: Lines, rows: Rows) -> Flags:
    """Tell which of some lines have the one fixed word once that has no cut in it.

    All of these have it once at least, behind the others.
    """
    found = np.ones(len(rows), bool)
    suspects = np.flatnonzero(Cuts(lines, _RULE[:2], apart=APART).counts[rows] > 1)
    if len(suspects):
        texts = lines.some(rows[suspects])
        found[suspects] = pc.less(pc.count_substring(texts, _RULE), 2)
    return found


def _match(texts: pa.Array, form: str) -> pa.Array:
    return pc.match_substring_regex(texts, form)


def _encoded_type(kind: pa.DataType) -> pa.DataType:
    return pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind


def _operation(match: re.Match[bytes]) -> tuple[str]:
    return (kafka_line.OPERATIONS[match[1].decode()],)


def _request(match: re.Match[bytes]) -> tuple[str, bool]:
    api = match[1].decode()
    return api, api == kafka_line.PROBING


_DECIDED_FIELDS: Final = (
    *("reference_count", "is_zero", "rule", "source", "names_acl", "is_square", "allows"),
)


def _decided(match: re.Match[bytes]) -> tuple[Any, ...]:
    count = int(match[1])
    if match[2] is not None:
        rule, source = match[2].decode(), Dialect.ROUND.value
        return count, count == 0, rule, source, False, False, kafka_line.SIMPLE_RULES[rule]
    is_square = match[3] == b"["
    source = Dialect.SQUARE if is_square else Dialect.ROUND
    return count, count == 0, kafka_line.MATCHING_ACL, source.value, True, is_square, False


def _permission(match: re.Match[bytes]) -> tuple[bool, bool]:
    return match[1] == b"ALLOW", match[2] == b"]"


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=100_000)
def _in_utc(micros: int, zone: tzinfo) -> int:
    """Return when a minute of a zone's clock is in UTC, both in microseconds."""
    local = (_EPOCH + timedelta(microseconds=micros)).strftime("%Y-%m-%d %H:%M:00")
    found = kafka_line.second_of(local, zone)
    # Years are those that every zone has.
    return micros if found is None else (found - _EPOCH) // timedelta(microseconds=1)
