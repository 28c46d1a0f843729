"""Lines of Kafka's log in the form in which most of them come, many at a time.

That is the form of StandardAuthorizer, with a request and a rule. Such lines are gone through part
by part (`walking`). Free texts end at a space, behind which the next fixed word must stand; one
that holds spaces itself is looked through for fixed words. So a line that is read here has each of
them once, and says what `kafka_line` says. Whatever is doubtful is left to it: lines that are none,
that were forged or cut off, of older authorizers.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from aclbroker.broker.acl.bindings import AclOperation, AclPermission, PatternType, ResourceType
from aclbroker.pipeline.ingest import kafka_line
from aclbroker.pipeline.ingest.clocks import MINUTE, Clock, of_runs
from aclbroker.pipeline.ingest.kafka_line import Dialect
from aclbroker.pipeline.ingest.memory import (
    Codes,
    Lines,
    Spans,
    canonical_hosts,
    encoded_texts,
    holding,
    mapped,
)
from aclbroker.pipeline.ingest.parsed import RECORD_SCHEMA
from aclbroker.pipeline.ingest.record import IPV4, PRINCIPAL_FORM, canonical_host
from aclbroker.pipeline.ingest.walking import Walk
from aclbroker.pipeline.ingest.words import Words
from aclbroker.pipeline.usage.grouping import spread


class Formed(NamedTuple):
    """The lines that have the form: their numbers, what each says, and its time in UTC."""

    rows: NDArray[np.int64]
    records: pa.Table
    micros: NDArray[np.int64]


_CLOCK: Final = Clock(b"[", b" ", b"hh:mm:ss,uuu] ")
_TRIES: Final = 8
"""So many words of a text that holds spaces are looked at to find its end."""


def _compiled(form: str) -> re.Pattern[bytes]:
    return re.compile(form.encode())


def _one_of(words: Any) -> str:
    return f"({'|'.join(sorted(words))})"


_LEVEL: Final = _compiled(rf"{_one_of(kafka_line.LEVELS)}{kafka_line.PRINCIPAL} ")
_ASKED: Final = _compiled(
    rf"( is (?:Allowed|Denied) operation =) {_one_of(kafka_line.OPERATIONS)}{kafka_line.HOST} "
)
_RESOURCE: Final = _compiled(
    rf"{kafka_line.RESOURCE} {_one_of(kafka_line.RESOURCE_TYPES)}:LITERAL:"
)
_ACL: Final = (
    rf"{kafka_line.MATCHING_ACL}\(acl=StandardAcl([(\[])"
    rf"resourceType={_one_of([each.name for each in ResourceType])}, resourceName="
)
_REQUEST: Final = _compiled(
    rf"{kafka_line.REQUEST} {_one_of(kafka_line.APIS)}{kafka_line.COUNT} ([0-9]{{1,9}})"
    rf"{kafka_line.RULE} (?:{_one_of(kafka_line.SIMPLE_RULES)}{re.escape(kafka_line.TAIL)}|{_ACL})"
)
_PATTERN: Final = _compiled(
    rf", patternType={_one_of([each.name for each in PatternType])}, principal="
)
_ACL_HOST: Final = b", host="
_PERMISSION: Final = _compiled(
    rf", operation={_one_of([each.name for each in AclOperation])}, permissionType="
    rf"{_one_of([each.name for each in AclPermission if each.name in ('ALLOW', 'DENY')])}"
    rf"([)\]])\){re.escape(kafka_line.TAIL)}"
)


class _Found(NamedTuple):
    """The parts of lines that have the form, by line."""

    level: Codes
    principal: Spans
    asked: Codes
    host: Spans
    resource: Codes
    name: Spans
    request: Codes


class KafkaForm:
    """Reads the lines of the form in one cluster's log; what it saw before makes it faster."""

    def __init__(self, cluster: str) -> None:
        self._cluster = cluster
        self._level = Words(_LEVEL, ("quiet",), lambda match: (match[1] == b"TRACE",))
        self._asked = Words(_ASKED, ("allowed", "operation"), _asked)
        self._resource = Words(_RESOURCE, ("resource_type",), _resource)
        self._request = Words(_REQUEST, _REQUEST_FIELDS, _request)
        self._pattern = Words(_PATTERN, (), lambda _: ())
        self._permission = Words(_PERMISSION, ("permits", "is_square"), _permission)

    def read(self, lines: pa.Array, zone: tzinfo) -> Formed | None:
        """Return what those of some binary lines say that have the form; None if none has it.

        ``zone``: that of the times in them.
        """
        if not len(lines) or lines.null_count:
            return None
        try:
            memory = Lines(lines)
        except OverflowError:
            return None
        time, good = _CLOCK.read(memory, memory.starts)
        walk = Walk(memory)
        walk.good &= good & memory.are_utf8()
        walk.skip(_CLOCK.size)
        found = self._walked(walk)
        rows = np.flatnonzero(walk.good)
        if not len(rows):
            return None
        principals = encoded_texts(memory, found.principal.of(rows))
        hosts = encoded_texts(memory, found.host.of(rows))
        good = holding(principals, lambda each: _match(each, f"^{PRINCIPAL_FORM}"))
        good &= holding(hosts, lambda each: _match(each, f"^(?:{kafka_line.HOST_FORM})$"))
        kept = np.flatnonzero(good)
        if not len(kept):
            return None
        if len(kept) < len(rows):
            rows = rows[kept]
            principals, hosts = principals.take(pa.array(kept)), hosts.take(pa.array(kept))
        columns = self._columns(found, rows)
        columns["principal"] = principals
        columns["host"] = mapped(hosts, lambda each: canonical_hosts(each, IPV4, canonical_host))
        columns["resource_name"] = encoded_texts(memory, found.name.of(rows))
        arrays = [
            columns.get(field.name, pa.nulls(len(rows), _encoded_type(field.type)))
            for field in RECORD_SCHEMA
        ]
        records = pa.Table.from_arrays(arrays, RECORD_SCHEMA.names)
        return Formed(rows, records, _in_utc(time[rows], zone))

    def _walked(self, walk: Walk) -> _Found:
        some = (self._level, self._asked, self._resource, self._request)
        for words in (*some, self._pattern, self._permission):
            words.begin()
        level = walk.words(self._level)
        principal = walk.until(b" is ", tries=_TRIES)
        asked = walk.words(self._asked)
        host = walk.until(b" ")
        resource = walk.words(self._resource)
        name = walk.until(kafka_line.REQUEST.encode(), tries=_TRIES)
        request = walk.words(self._request)
        self._rule(walk, asked, request)
        for text in (principal, name):
            _leave_words_out(walk, text)
        return _Found(level, principal, asked, host, resource, name, request)

    def _rule(self, walk: Walk, asked: Codes, request: Codes) -> None:
        """Take the rest of the lines, and leave those out whose rule decides otherwise."""
        names_acl = self._request.flags("names_acl", request)
        acl_name = walk.until(b" patternType=", names_acl, tries=_TRIES)
        walk.back(1, names_acl)
        walk.words(self._pattern, names_acl)
        acl_principal = walk.until(b" host=", names_acl, tries=_TRIES)
        walk.back(1, names_acl)
        walk.text(_ACL_HOST, names_acl)
        acl_host = walk.until(b" ", names_acl)
        walk.back(1, names_acl)
        permission = walk.words(self._permission, names_acl)
        walk.end()
        for text in (acl_name, acl_principal, acl_host):
            _leave_words_out(walk, text)
        permits = self._permission.flags("permits", permission)
        is_square = self._permission.flags("is_square", permission)
        walk.good &= ~names_acl | (is_square == self._request.flags("is_square", request))
        allows = np.where(names_acl, permits, self._request.flags("allows", request))
        walk.good &= allows == self._asked.flags("allowed", asked)
        walk.good &= ~self._request.flags("probes", request)

    def _columns(self, found: _Found, rows: NDArray[np.int64]) -> dict[str, pa.Array]:
        """Return the columns of records that are found in parts of few different texts."""
        cluster = spread(pa.array([self._cluster]), np.zeros(len(rows), np.int32))
        columns = {"cluster": cluster}
        parts = (
            (self._level, found.level),
            (self._asked, found.asked),
            (self._resource, found.resource),
            (self._request, found.request),
        )
        for words, codes in parts:
            for name in words.fields:
                if name in RECORD_SCHEMA.names:
                    kind = RECORD_SCHEMA.field(name).type
                    columns[name] = words.column(name, codes[rows], kind)
        return columns


def _leave_words_out(walk: Walk, spans: Spans) -> None:
    """Leave the lines out that have a fixed word in a text; without a space there is none in it."""
    rows = np.flatnonzero(spans.is_doubtful & walk.good)
    if len(rows):
        texts = encoded_texts(walk.lines, spans.of(rows))
        walk.good[rows] &= holding(texts, lambda each: pc.invert(_match(each, _WORD)))


_WORD: Final = f" =|{re.escape(kafka_line.RULE)}"
"""What texts that have a fixed word match; all but one end so."""


def _match(texts: pa.Array, form: str) -> pa.Array:
    return pc.match_substring_regex(texts, form)


def _encoded_type(kind: pa.DataType) -> pa.DataType:
    return pa.dictionary(pa.int32(), kind) if pa.types.is_string(kind) else kind


def _asked(match: re.Match[bytes]) -> tuple[bool, str]:
    operation = kafka_line.OPERATIONS[match[2].decode()]
    return match[1].decode() == kafka_line.ALLOWED, operation


def _resource(match: re.Match[bytes]) -> tuple[str]:
    return (kafka_line.RESOURCE_TYPES[match[1].decode()],)


_REQUEST_FIELDS: Final = (
    *("api", "reference_count", "rule", "source", "names_acl", "is_square", "allows", "probes"),
)


def _request(match: re.Match[bytes]) -> tuple[Any, ...]:
    api, count = match[1].decode(), int(match[2])
    # What this asks for depends on the name, for `kafka_line` to see.
    probes = api == kafka_line.PROBING and count == 0
    if match[3] is not None:
        rule = match[3].decode()
        allows = kafka_line.SIMPLE_RULES[rule]
        return api, count, rule, Dialect.ROUND.value, False, False, allows, probes
    is_square = match[4] == b"["
    source = Dialect.SQUARE if is_square else Dialect.ROUND
    return api, count, kafka_line.MATCHING_ACL, source.value, True, is_square, False, probes


def _permission(match: re.Match[bytes]) -> tuple[bool, bool]:
    return match[2] == b"ALLOW", match[3] == b"]"


def _in_utc(micros: NDArray[np.int64], zone: tzinfo) -> NDArray[np.int64]:
    """Return times of a zone in UTC."""
    if zone is UTC or str(zone) == "UTC":
        return micros
    minutes, seconds = np.divmod(micros, MINUTE)
    found, _ = of_runs(minutes, lambda each: _minute(int.from_bytes(each, "little"), zone))
    return found + seconds


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@lru_cache(maxsize=100_000)
def _minute(minute: int, zone: tzinfo) -> int | None:
    """Return when a minute of a zone's clock is in UTC, in microseconds."""
    local = (_EPOCH + timedelta(minutes=minute)).strftime("%Y-%m-%d %H:%M:00")
    found = kafka_line.second_of(local, zone)
    return None if found is None else (found - _EPOCH) // timedelta(microseconds=1)
