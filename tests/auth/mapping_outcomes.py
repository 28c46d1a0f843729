"""What becomes of a name under mapping rules, at Kafka's hands and at ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from aclbroker.broker.auth.mapping.mapping_rules import MappingFailed, RuleError

NAMED, NOBODY, INVALID, EXCEPTION = "named", "nobody", "invalid rules", "exception"

# Kafka takes such rules, and then fails when a name comes that a rule is for.
STRICTER = (
    "neither $n, ${name} nor a backslash with a character",
    "is no group of the pattern",
    "is too big a number",
    "is repeated, and the engines differ",
    "expected $ and a number from 0 to",
)
_UNDECIDED = "releases differ about the lower case"


class Outcome(NamedTuple):
    """How it ended, and the name or what was said of it."""

    kind: str
    text: str


def of_kafka(answer: list[str]) -> Outcome:
    """What the answer of `JavaNames` to "ssl" or "kerberos" means."""
    last = answer[-1]
    if not last.startswith("!"):
        return Outcome(NAMED, last)
    if len(answer) == 1:
        return Outcome(INVALID, last)
    return Outcome(NOBODY if last == "!NoMatchingRule" else EXCEPTION, last)


def of_ours(name: Callable[[], str]) -> Outcome:
    """What becomes of parsing and asking."""
    try:
        return Outcome(NAMED, name())
    except RuleError as error:
        return Outcome(INVALID, str(error))
    except MappingFailed as error:
        return Outcome(NOBODY, str(error))


def agree(ours: Outcome, kafka: Outcome) -> bool:
    """Whether ours is Kafka's outcome, or we refuse where Kafka fails later, or Java's releases
    differ.
    """
    if ours.kind == NOBODY and _UNDECIDED in ours.text:
        return kafka.kind == NAMED
    if ours.kind == INVALID:
        return kafka.kind in (INVALID, EXCEPTION) or any(why in ours.text for why in STRICTER)
    if kafka.kind == EXCEPTION:
        return ours.kind == NOBODY
    return ours == kafka if ours.kind == NAMED else ours.kind == kafka.kind
