"""Writes docs/gate.md from the table: `python -m aclbroker.broker.gate.docs docs/gate.md`."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path

from aclbroker.broker.gate.need import ALL_VERSIONS, REFUSAL, Each, Keep, Need, Row, Whole
from aclbroker.broker.gate.shown import describe
from aclbroker.broker.gate.table import GATE
from aclbroker.protocol.messages import APIS

_HEAD = """\
<!-- Made by `.venv/bin/python -m aclbroker.broker.gate.docs docs/gate.md`. -->
# The gate

Which operation on which resource each API key needs. A request passes if every line of its key
holds. If a line does not hold, what the column "Refuses" names is refused, with the code beside it.
"Unless" names a broader right that makes the line unnecessary. The last column names the method of
Kafka 4.3.0 that the rule comes from; it is in KafkaApis if no class is named.

Where Kafka 4.3 and its documentation differ, `aclbroker.gate.profile` chooses: a line with the note
"Profile kafka-4.3" (the default) or "Profile documented" holds in that profile only.

A key that is not listed is refused, and so is a request to which no line of its key applies. Nobody
has a right on a resource whose name is null.

A field of a request needs no line if its value reaches no other resource, such as a timeout. The
test `tests/gate/test_every_request_field.py` walks all fields of the requests that a gateway
forwards. For each of them the gate asks for a right, the gateway changes it, or
`gate/harmless_requests.py` lists it with a reason.

A topic in which ACLs are kept is reserved ([topic-store.md](topic-store.md)). Nobody has a right on
it, super users included, with or without an authorizer, and a right on the cluster does not let a
request pass that names it. Such an entry is refused with 29, and others of the request pass. Where
the answer has no place for the code of an entry the request is refused with 29:
ADD_PARTITIONS_TO_TXN from version 4 on, ALTER_REPLICA_LOG_DIRS, DESCRIBE_LOG_DIRS, DESCRIBE_QUORUM,
LIST_PARTITION_REASSIGNMENTS, WRITE_TXN_MARKERS.

| Protocol (API key) | Operation | Resource | Refuses | Code | Note | In Kafka |
|---|---|---|---|---|---|---|
"""


_SHOWN = """
## What answers show

What is left out of an answer, and which of its fields tell about the cluster. In an answer that
this broker makes from its own data, only the reply to a request for everything, such as all topics,
has something to leave out. A reserved topic is left out of every answer.

| Protocol (API key) | Answer |
|---|---|
"""


def text() -> str:
    """Return the text of docs/gate.md."""
    needs = "".join(line for row in GATE.values() for line in _lines(row))
    shown = "".join(_line(_name(row), " ".join(describe(row.key))) for row in GATE.values())
    return _HEAD + needs + _SHOWN + shown


def _lines(row: Row) -> Iterable[str]:
    name = _name(row)
    if row.exempt or not row.needs:
        yield _line(name, "", "", "nothing", "", f"{row.exempt} {row.note}".strip(), row.kafka)
    for position, need in enumerate(row.needs):
        notes = list(_notes(row, need))
        if row.note and position == len(row.needs) - 1:
            notes.append(row.note)
        types = " or ".join(each.name for each in need.types)
        shown = " ".join(notes)
        yield _line(name, need.operation.name, types, need.scope, _code(need), shown, row.kafka)


def _name(row: Row) -> str:
    return f"{row.key.name} ({row.key.value})"


def _code(need: Need) -> str:
    if isinstance(need, Keep):
        return ""
    if isinstance(need, Whole) and need.code is not None:
        return str(int(need.code))
    return ", ".join(sorted({str(int(REFUSAL[each])) for each in need.types}))


def _notes(row: Row, need: Need) -> Iterable[str]:
    if need.versions != ALL_VERSIONS:
        known = [version for version in APIS[row.key].versions if version in need.versions]
        yield f"Versions {known[0]}-{known[-1]}." if known else "In versions that are not offered."
    if isinstance(need, Keep):
        yield f"Shows `{need.shown}`."
    if need.when is not None:
        yield f"Only {need.when.__doc__}."
    if need.unless is not None:
        yield f"Unless {need.unless}."
    if isinstance(need, Each) and need.others is not None:
        yield f"All or nothing: the other entries get {int(need.others)}."
    if need.profile is not None:
        yield f"Profile {need.profile.value}."


def _line(*cells: str) -> str:
    return f"| {' | '.join(cells)} |\n"


def main() -> None:
    """Write the document to the path that the process was given."""
    Path(sys.argv[1]).write_text(text())


if __name__ == "__main__":
    main()
