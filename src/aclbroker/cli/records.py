"""Which request `aclbroker explain` is asked about by a record of an audit log, in any form.

That is a JSON line of ours, a line that is written for a console, or a line of Kafka's form.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from aclbroker.broker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.reasoning.regions import Request
from aclbroker.broker.reasoning.rules import Rules
from aclbroker.cli.rules_source import SourceError
from aclbroker.pipeline.ingest import json_line, kafka_line
from aclbroker.pipeline.ingest.record import Record

_BLOCK: Final = 1 << 20
_DENIALS: Final = (b'"allowed":false', b'"allowed": false', b" allowed=false ", b" is Denied ")
"""What every record of a denial has somewhere."""

_CONSOLE: Final = re.compile(r"(\S+) \[(\w+) *\] (authorization) ")
_KEY: Final = re.compile(r"(\w+)=")
_CUT: Final = re.compile(r"\.\.\.\(\d+ characters\)$")


class Recorded(NamedTuple):
    """A record of a decision.

    ``others`` are the further principals of the session; None where the form does not tell.
    ``listener`` is "" where it does not. ``said`` is what was decided, when and by what.
    ``notes`` are what makes an explanation doubtful.
    """

    request: Request
    others: tuple[str, ...] | None
    listener: str
    is_allowed: bool
    said: str
    notes: tuple[str, ...] = ()

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
    """Return what a line records. Raises SourceError if it is no record of a decision."""
    found = _recorded(line.encode(errors="surrogateescape"))
    if isinstance(found, str):
        raise SourceError(f"--line: {found}")
    return found


def of_file(place: str) -> Recorded:
    """Return the last denial in a file that did not only filter an answer, ``-`` is stdin.

    Raises SourceError if there is none, or for a file that cannot be read.
    """
    if place == "-":
        found, place = _last_of(sys.stdin.buffer), "standard input"
    else:
        try:
            with Path(place).open("rb") as file:
                found = _last_of(file)
        except OSError as error:
            raise SourceError(f"{place}: {error.strerror or error}") from error
    if found is None:
        raise SourceError(
            f"{place}: there is no record of a denial "
            "(one that only filtered an answer does not count)"
        )
    return found


def _last_of(file: BinaryIO) -> Recorded | None:
    if file.seekable():
        return next(_denials(_from_the_end(file)), None)
    found = None
    for found in _denials(file):  # noqa: B007 # the last one is wanted
        pass
    return found


def _denials(lines: Iterable[bytes]) -> Iterator[Recorded]:
    return (found for line in lines if _is_denial(line) and (found := _denial(line)))


def _is_denial(line: bytes) -> bool:
    """Tell whether a line may record a denial; quick, and never no in vain."""
    return any(each in line for each in _DENIALS)


def _denial(line: bytes) -> Recorded | None:
    found = _recorded(line, loud=True)
    return found if isinstance(found, Recorded) and not found.is_allowed else None


def _from_the_end(file: BinaryIO) -> Iterator[bytes]:
    """Yield the lines of a file, the last one first."""
    end = file.seek(0, os.SEEK_END)
    rest: list[bytes] = []
    while end:
        start = max(0, end - _BLOCK)
        file.seek(start)
        first, *lines = file.read(end - start).split(b"\n")
        end = start
        if lines:
            rest.insert(0, lines.pop())
            yield b"".join(rest)
            yield from reversed(lines)
            rest = [first]
        else:
            rest.insert(0, first)
    yield b"".join(rest)


def _recorded(line: bytes, *, loud: bool = False) -> Recorded | str:
    """Return what a line records, or why it is no record of what is asked for.

    With ``loud`` that is nothing that only filtered an answer.
    """
    line = line.rstrip(b"\r\n")
    text = line.decode(errors="replace")
    if console := _CONSOLE.match(text):
        time, level, event = console.groups()
        found = _of_console(text[console.end() :])
        found |= {"timestamp": time, "level": level, "event": event}
        line = json.dumps(found).encode()
    if not line.startswith(b"{"):
        of_kafka = kafka_line.parse(line, cluster="")
        if of_kafka is None and line.endswith(_RESERVED_TAIL):
            return _OF_RESERVED
        if of_kafka is None:
            return "Kafka asked whether any topic is allowed, and looked at the ACLs after that"
        if isinstance(of_kafka, kafka_line.KafkaReason):
            return of_kafka.value
        time, record = text[1:24], of_kafka[1]
        others, cut = None, _cut_texts(record)
    else:
        of_json = json_line.parse(line)
        if of_json is None:
            is_change = json.loads(line)["event"] == json_line.CHANGE
            return json_line.JsonReason.EVENT.value if is_change else _OF_RESERVED
        if isinstance(of_json, json_line.JsonReason):
            return of_json.value
        keys, record = json.loads(line), of_json.record
        others = tuple(json.loads(record.other_principals or "[]"))
        time, shortened = keys["timestamp"], keys.get("shortened")
        cut = [*shortened] if isinstance(shortened, dict) else []
    if loud and record.quiet:
        return "it only filtered an answer"
    if record.resource_name is None:
        return "the request named no resource, which nobody can be allowed"
    return _of_record(record, time, others, cut)


def _of_record(
    record: Record, time: str, others: tuple[str, ...] | None, cut: Iterable[str]
) -> Recorded:
    name = str(record.resource_name)
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
    said = f"{verdict}{rule} at {time}{api}"
    listener = record.listener or ""
    return Recorded(request, others, listener, record.allowed, said, tuple(notes))


_OF_RESERVED: Final = (
    "the topic keeps the ACLs of the broker's store, and nobody may reach it, whatever ACLs there "
    "are"
)
_RESERVED_TAIL: Final = f"{kafka_line.RULE} {kafka_line.RESERVED}{kafka_line.TAIL}".encode()

_DECISIVE: Final = ("principal", "resource_name")
"""The texts of a record that may be shortened and that a decision depends on."""


def _cut_texts(record: Record) -> list[str]:
    """Return which texts of a line of Kafka's form seem to be shortened, as ours are."""
    return [each for each in _DECISIVE if _CUT.search(getattr(record, each) or "")]


def _of_console(rest: str) -> dict[str, object]:
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
