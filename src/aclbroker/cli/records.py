"""Which request `aclbroker explain` is asked about by a record of an audit log, in any form.

That is a JSON line of ours, a line that is written for a console, or a line of Kafka's form.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.cli.rules_source import SourceError
from aclbroker.pipeline.ingest import json_line, kafka_line
from aclbroker.pipeline.ingest.envelopes import JsonEnvelope, json_object, opened
from aclbroker.pipeline.ingest.layouts import JSON, has_logger
from aclbroker.pipeline.ingest.record import Record

_BLANKS: Final = "\ufeff \t\r\n"
_PRINCIPAL: Final = f"{kafka_line.PRINCIPAL} ".encode()
_AROUND: Final = re.compile(rb" \(kafka\.authorizer\.logger\)(?: \[[^\[\]()]{0,256}\])?\r?\Z")
"""The text behind a message: the logger, and in Strimzi's layout the thread."""

_ANY_TIME: Final = b"[2000-01-01 00:00:00,000] INFO"
_TIME: Final = re.compile(
    rb"20[0-9]{2}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    rb"(?:Z|[+-][0-9]{2}:?[0-9]{2})?"
)
_CONSOLE: Final = re.compile(r"(\S+) \[(\w+) *\] (authorization) ")
_KEY: Final = re.compile(r"(\w+)=")
_CUT: Final = re.compile(r"\.\.\.\(\d+ characters\)$")


class Recorded(NamedTuple):
    """A record of a decision.

    ``others`` are the further principals of the session; None if the form lacks them.
    ``listener`` is "" if the form lacks it. ``said`` is the decision in words, with its time and
    rule. ``notes`` are reasons to doubt an explanation. ``is_quiet``: it only filtered an answer.
    """

    request: Request
    others: tuple[str, ...] | None
    listener: str
    is_allowed: bool
    said: str
    notes: tuple[str, ...] = ()
    is_quiet: bool = False

    def session_rules(self, rules: Rules) -> Rules:
        """Return rules under which its principal's sessions are as the one of the record."""
        principal = self.request.principal
        if self.others is not None:
            rules = replace(rules, groups={**rules.groups, principal: self.others})
        users, principals = rules.broker_users, rules.principals_of(principal)
        if self.listener == users.listener and not users.principals.isdisjoint(principals):
            return replace(rules, super_users=rules.super_users | users.principals)
        return rules


def of_line(line: str) -> Recorded:
    """Return the decision that a line with any prefix, or a message alone, records.

    Raises SourceError if it is no record of a decision.
    """
    found = recorded(line.strip(_BLANKS).encode(errors="surrogateescape"))
    if isinstance(found, str):
        raise SourceError(f"--line: {found}")
    return found


def recorded(line: bytes) -> Recorded | str:
    """Return the decision that a line records, or why it is no record."""
    console = of_console(line)
    if console is not None:
        return of_json(console)
    keys = json_object(line)
    if keys is None and not line.startswith(b"{"):
        wrapped = _within(line)
        return _of_message(line) if wrapped is None else recorded(wrapped)
    inner = None if keys is None else JsonEnvelope().opened(line)
    if keys is None or inner is None:
        return of_json(line)
    if has_logger(line):
        own = JSON.brought(line, UTC)
        return of_kafka(kafka_line.parse(own, cluster=""), f"{own[1:24].decode()} UTC")
    return recorded(inner)


def _within(line: bytes) -> bytes | None:
    """Return the record of our own log that a line has behind a prefix."""
    for _, inner in opened(line):
        if inner.startswith(b"{") or of_console(inner) is not None:
            return inner
    return None


def _of_message(line: bytes) -> Recorded | str:
    """Return the decision in a line with a message of Kafka's authorizer, whatever surrounds it.

    A name may hold the words of a record, so a line that has these words twice is refused.
    """
    before, word, rest = (b" " + line).partition(_PRINCIPAL)
    if not word:
        return kafka_line.KafkaReason.HEAD.value
    message = _AROUND.sub(b"", word + rest)
    found = kafka_line.parse(_ANY_TIME + message + kafka_line.TAIL.encode(), cluster="")
    if found is None and message.endswith(_RESERVED_RULE):
        return _OF_RESERVED
    times = _TIME.findall(before)
    return of_kafka(found, times[-1].decode() if times else "")


def of_kafka(
    found: tuple[datetime, Record] | kafka_line.KafkaReason | None, time: str
) -> Recorded | str:
    """Return the decision that `kafka_line.parse` found, with the time as the line has it."""
    if found is None:
        return "Kafka asked whether any topic is allowed, and looked at the ACLs after that"
    if found is kafka_line.KafkaReason.WORDS:
        return f"{found.value} (if a name holds such words, explain the request itself)"
    if isinstance(found, kafka_line.KafkaReason):
        return found.value
    return _of_record(found[1], time, None, _cut_texts(found[1]))


def of_console(line: bytes) -> bytes | None:
    """Return the JSON that a line for a console stands for; None for other lines."""
    text = line.decode(errors="replace")
    console = _CONSOLE.match(text)
    if console is None:
        return None
    time, level, event = console.groups()
    found = _keys_of_console(text[console.end() :])
    return json.dumps(found | {"timestamp": time, "level": level, "event": event}).encode()


def of_json(line: bytes) -> Recorded | str:
    """Return the decision that a JSON line of our own log records, or why it is no record."""
    found = json_line.parse(line)
    if found is None:
        is_change = json.loads(line)["event"] == json_line.CHANGE
        return json_line.JsonReason.EVENT.value if is_change else _OF_RESERVED
    if isinstance(found, json_line.JsonReason):
        return found.value
    keys, record = json.loads(line), found.record
    others = tuple(json.loads(record.other_principals or "[]"))
    shortened = keys.get("shortened")
    cut = [*shortened] if isinstance(shortened, dict) else []
    return _of_record(record, keys["timestamp"], others, cut)


def _of_record(
    record: Record, time: str, others: tuple[str, ...] | None, cut: Iterable[str]
) -> Recorded | str:
    if record.resource_name is None:
        return "the request named no resource, which nobody can be allowed"
    name = record.resource_name
    notes = [
        f"the record has only the beginning of its {each}" for each in cut if each in _DECISIVE
    ]
    request = Request(
        record.principal,
        record.host,
        AclOperation[record.operation],
        ResourceType[record.resource_type],
        name,
    )
    verdict = "allowed" if record.allowed else "denied"
    rule = f" ({record.rule})" if record.rule else ""
    api = f" for {record.api}" if record.api else ""
    at = f" at {time}" if time else ""
    said = f"{verdict}{rule}{at}{api}"
    listener = record.listener or ""
    is_quiet = record.quiet
    return Recorded(request, others, listener, record.allowed, said, tuple(notes), is_quiet)


_OF_RESERVED: Final = (
    "the topic keeps the ACLs of the broker's store, and nobody may reach it, whatever ACLs there "
    "are"
)
_RESERVED_RULE: Final = f"{kafka_line.RULE} {kafka_line.RESERVED}".encode()

_DECISIVE: Final = ("principal", "resource_name")
"""The texts of a record that may be shortened and that a decision depends on."""


def _cut_texts(record: Record) -> list[str]:
    """Return which texts of a line of Kafka's form seem to be shortened, as ours are."""
    return [each for each in _DECISIVE if _CUT.search(getattr(record, each) or "")]


def _keys_of_console(rest: str) -> dict[str, object]:
    """Return the keys of a line for a console, behind its event, as far as it is one."""
    found: dict[str, object] = {}
    decoder = json.JSONDecoder()
    place = 0
    while key := _KEY.match(rest, place):
        place = key.end()
        word = rest[place:].partition(" ")[0]
        value: object = word
        if key[1] not in json_line.TEXTS or word.startswith('"'):
            try:
                value, place = decoder.raw_decode(rest, place)
            except (ValueError, RecursionError):
                place += len(word)
        else:
            place += len(word)
            value = None if key[1] in ("client_id", "resource_name") and word == "null" else word
        found[key[1]] = value
        place += 1
    return found
