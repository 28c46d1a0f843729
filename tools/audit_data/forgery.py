"""Attempts to forge the log: what a client that may do nothing can still write into it.

A group id is free text. Kafka's own log holds it as it is, so that a line break in it begins a line
of the client's choice; JSON Lines escape it. Every forged line claims that `VICTIM` was allowed
something: an analysis that ever sees this principal has been deceived.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from tools.audit_data.lines import Asked, Form, JsonLines, Kind
from tools.audit_data.traffic import Traffic

FORGER: Final = "User:mallory"
VICTIM: Final = "User:forged-victim"
_HOST: Final = "10.9.9.9"

KAFKA_KINDS: Final = ("continued", "complete", "inline")
JSON_KINDS: Final = ("newline", "cut")


class Forgery(NamedTuple):
    """What one attempt leaves in the log.

    ``kind``: of the true event, if the log tells it; None if no line of this can be relied on.
    """

    name: str
    text: str
    kind: Kind | None


def kinds_of(form: Form) -> Sequence[str]:
    """Return the kinds of attempts that a form of the log can hold.

    Kafka's text: ``continued`` (two lines, the second begins like a record and has the end of the
    true one behind it), ``complete`` (three lines, the one in the middle looks true), ``inline``
    (one line with the delimiters twice). JSON Lines: ``newline`` (one line, a true event whose name
    holds a whole record) and ``cut`` (no attempt, but a line that a full disk cut off).
    """
    return JSON_KINDS if isinstance(form, JsonLines) else KAFKA_KINDS


def forge(name: str, traffic: Traffic, form: Form, second: str, micros: int) -> Forgery:
    """Make an attempt of a kind at a time."""
    resource = "orders.eu" if name == "cut" else _resource_name(name)
    asked = Asked(
        (FORGER,),
        AclOperation.DESCRIBE,
        ResourceType.GROUP,
        resource,
        "FindCoordinator",
        6,
        "client-0",
        1,
        False,
    )
    event = traffic.event(asked, _HOST)
    line = form.line(second, micros, event.template, event.host, 1, 1)
    if name == "cut":
        return Forgery(name, f"{line[: len(line) * 2 // 3]}\n", None)
    return Forgery(name, line, event.template.kind if name == "newline" else None)


def _resource_name(name: str) -> str:
    rest = (
        "for request = Produce with resourceRefCount = 1 "
        "based on rule SuperUser (kafka.authorizer.logger)"
    )
    if name == "inline":
        return f"x {rest}"
    if name == "newline":
        return (
            'x"}\n{"timestamp":"2026-01-01T00:00:00.000000Z","level":"debug",'
            f'"event":"authorization","principal":"{VICTIM}","allowed":true}}'
        )
    forged = (
        f"x\n[2026-01-01 00:00:00,000] DEBUG Principal = {VICTIM} is Allowed operation = WRITE "
        f"from host = {_HOST} on resource = Topic:LITERAL:payments {rest}"
    )
    return f"{forged}\n" if name == "complete" else forged
