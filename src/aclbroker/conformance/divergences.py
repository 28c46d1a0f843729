"""The intended differences, each with its name and its reason.

All but the last two are differences between aclbroker and a real Kafka 4.3. These two appear with
any broker: when it has delegation tokens, and when the super user has not logged in. A difference
that none of them explains fails the comparison. docs/conformance.md lists them for users.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from aclbroker.conformance.codes import TOKEN_KEYS
from aclbroker.conformance.outline import ANSWERED, CLOSED, NO_ANSWER
from aclbroker.conformance.recording import Step
from aclbroker.conformance.resources import TOPICS
from aclbroker.conformance.roles import SUPER
from aclbroker.conformance.rules import MISSING, Difference
from aclbroker.protocol.messages import ApiKey


class Divergence(NamedTuple):
    """A kind of difference that does not fail a comparison."""

    name: str
    reason: str
    explains: Callable[[Step, Difference], bool]


def explanation(step: Step, difference: Difference) -> str | None:
    """Return the name of the divergence that explains a difference, None if there is none."""
    return next((each.name for each in DIVERGENCES if each.explains(step, difference)), None)


def _is_unknown_code(step: Step, difference: Difference) -> bool:
    return (
        step.key in {ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS}
        and "unknown operation" in step.label
        and (difference.recorded, difference.actual) == (CLOSED, ANSWERED)
    )


def _is_old_produce(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.PRODUCE
        and step.version <= 2
        and (difference.recorded, difference.actual) == (CLOSED, ANSWERED)
    )


def _is_unacknowledged(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.PRODUCE
        and "acks 0" in step.label
        and (difference.recorded, difference.actual) == (NO_ANSWER, CLOSED)
    )


def _is_share_session(step: Step, difference: Difference) -> bool:
    return (
        step.key in {ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE}
        and ("in a session" in step.label or "end of a session" in step.label)
        and difference.actual == MISSING
    )


def _is_without_share_groups(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.DELETE_SHARE_GROUP_OFFSETS
        and difference.recorded in {"0", "3", "29", MISSING}
        and difference.actual in {"69", MISSING}
    )


def _is_refused_topic_id(step: Step, difference: Difference) -> bool:
    """Say whether an entry differs because Kafka tells the id of a refused topic and we do not."""
    name, has_id, _ = difference.path.removeprefix("responses[").partition("]")[0].partition("#")
    codes = ("29", MISSING) if has_id else (MISSING, "29")
    return (
        step.key == ApiKey.ALTER_SHARE_GROUP_OFFSETS
        and name in TOPICS
        and (difference.recorded, difference.actual) == codes
    )


def _is_zero_fetch(step: Step, difference: Difference) -> bool:
    return (
        step.key == ApiKey.FETCH
        and step.label == "of a zero topic id beside others"
        and difference.recorded == MISSING
        and difference.actual in {"29", "100"}
    )


def _is_anonymous(step: Step, difference: Difference) -> bool:
    return (
        step.key in TOKEN_KEYS
        and step.role == SUPER
        and (difference.recorded, difference.actual) == ("61", "64")
    )


def _is_with_tokens(step: Step, difference: Difference) -> bool:
    """Say whether what the recorded broker allowed, but had switched off, is answered."""
    return (
        step.key in TOKEN_KEYS and difference.recorded == "61" and difference.actual in {"0", "62"}
    )


DIVERGENCES: Final = (
    Divergence(
        "d2 unknown codes",
        "Kafka closes the connection over an ACL or a filter with the byte 0 (UNKNOWN) in it; "
        "here that one is refused with a message, and the others are answered (KIP-140).",
        _is_unknown_code,
    ),
    Divergence(
        "produce 0-2",
        "Kafka 4 advertises versions 0 to 2 of Produce for the sake of old clients and closes the "
        "connection when one is used (KIP-896); here they are answered as the later ones are.",
        _is_old_produce,
    ),
    Divergence(
        "acks 0",
        "A standalone broker cannot keep records. To a producer that wants no answer it says so "
        "by closing the connection, as Kafka does when it refuses such a request.",
        _is_unacknowledged,
    ),
    Divergence(
        "share sessions",
        "A standalone broker keeps no share sessions, so that what follows on a session's first "
        "request is refused as a whole, with SHARE_SESSION_NOT_FOUND (KIP-932).",
        _is_share_session,
    ),
    Divergence(
        "no share groups",
        "A standalone broker has no share groups, and the recorded Kafka had those of the suite. "
        "Both refuse as a whole, with GROUP_ID_NOT_FOUND, to delete the offsets of a share group "
        "that is not there.",
        _is_without_share_groups,
    ),
    Divergence(
        "d10 refused topic ids",
        "Kafka tells the id of a topic beside the refusal to alter a share group's offsets of it, "
        "and the zero id if there is no such topic; here it is the zero id in both cases.",
        _is_refused_topic_id,
    ),
    Divergence(
        "d11 zero topic ids",
        "A Fetch of a zero topic id beside a topic that is refused fails in Kafka as a whole, with "
        "-1; here the first gets UNKNOWN_TOPIC_ID, the second its refusal.",
        _is_zero_fetch,
    ),
    Divergence(
        "tokens switched on",
        "The Kafka of the recording had no delegation tokens: whom it would have allowed to ask it "
        "told so (61). A broker with delegation.token.secret.key answers (0, or 62 for a token "
        "that is not there); who may not ask is refused by both.",
        _is_with_tokens,
    ),
    Divergence(
        "anonymous super user",
        "Who asks about delegation tokens without having logged in is told that this is not "
        "allowed (64), before anything else; the super user of the recording had logged in.",
        _is_anonymous,
    ),
)
"""All divergences; the first one that explains a difference counts."""
