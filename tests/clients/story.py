"""The story that every client tells: ACLs are added, listed by filters, deleted, and refused.

An ACL is written as its seven fields TYPE,NAME,PATTERN,PRINCIPAL,HOST,OPERATION,PERMISSION, and
so is a filter, in which an empty field is null. What each step answers is written out here, so
that a broker is never judged by a second implementation of the filters.
"""

from typing import Any, NamedTuple

from tests.clients.drivers import Answer, Driver
from tests.support.accounts import PASSWORDS
from tests.support.process import wait_for

EVERYTHING = "ANY,,ANY,,,ANY,ANY"

READ_ORDERS = "TOPIC,orders,LITERAL,User:alice,*,READ,ALLOW"
NOT_MALLORY = "TOPIC,orders,LITERAL,User:mallory,198.51.100.3,READ,DENY"
ANY_TOPIC = "TOPIC,*,LITERAL,User:*,*,DESCRIBE,ALLOW"
BILLING = "GROUP,billing,LITERAL,User:alice,198.51.100.0,READ,ALLOW"
OPERATE = "CLUSTER,kafka-cluster,LITERAL,User:carol,*,ALTER_CONFIGS,ALLOW"
LITERALS = [READ_ORDERS, NOT_MALLORY, ANY_TOPIC, BILLING, OPERATE]

ORDER_TOPICS = "TOPIC,order,PREFIXED,User:alice,*,WRITE,ALLOW"
BILLING_GROUPS = "GROUP,bill,PREFIXED,User:bob,*,ALL,ALLOW"
TRANSACTIONS = "TRANSACTIONAL_ID,tx-,PREFIXED,User:alice,*,WRITE,ALLOW"
PREFIXED = [ORDER_TOPICS, BILLING_GROUPS, TRANSACTIONS]


class Refused(NamedTuple):
    """Expected where a client raises its error for CLUSTER_AUTHORIZATION_FAILED."""


class Step(NamedTuple):
    """One request: a verb of `drivers`, its ACLs or filters, and the expected answer."""

    verb: str
    words: list[str]
    expected: list[object] | Refused


def creates(acls: list[str]) -> Step:
    """All of `acls` are added by one request."""
    return Step("create", acls, [None] * len(acls))


def lists(acl_filter: str, expected: list[str]) -> Step:
    """The ACLs that match a filter are `expected`, in any order."""
    return Step("list", [acl_filter], list(expected))


def deletes(matches: dict[str, list[str]]) -> Step:
    """Each filter deletes, and reports, what stands beside it."""
    return Step("delete", list(matches), list(matches.values()))


STORY = [
    lists(EVERYTHING, []),
    creates([*LITERALS, *PREFIXED]),
    creates([READ_ORDERS]),
    lists(EVERYTHING, [*LITERALS, *PREFIXED]),
    lists("TOPIC,orders,LITERAL,,,ANY,ANY", [READ_ORDERS, NOT_MALLORY]),
    lists("TOPIC,orders,MATCH,,,ANY,ANY", [READ_ORDERS, NOT_MALLORY, ANY_TOPIC, ORDER_TOPICS]),
    lists("TOPIC,order,ANY,,,ANY,ANY", [ORDER_TOPICS]),
    lists("TOPIC,,PREFIXED,,,ANY,ANY", [ORDER_TOPICS]),
    lists("ANY,,ANY,User:alice,,ANY,ANY", [READ_ORDERS, BILLING, ORDER_TOPICS, TRANSACTIONS]),
    lists("ANY,,ANY,User:*,,ANY,ANY", [ANY_TOPIC]),
    lists("ANY,,ANY,,198.51.100.3,ANY,ANY", [NOT_MALLORY]),
    lists("ANY,,ANY,,,READ,ALLOW", [READ_ORDERS, BILLING]),
    lists("CLUSTER,kafka-cluster,LITERAL,,,ANY,ANY", [OPERATE]),
    lists("TOPIC,elsewhere,LITERAL,,,ANY,ANY", []),
    deletes(
        {
            "TOPIC,orders,LITERAL,User:mallory,,ANY,DENY": [NOT_MALLORY],
            "TOPIC,payments,MATCH,,,ANY,ANY": [ANY_TOPIC],
            "TOPIC,elsewhere,LITERAL,,,ANY,ANY": [],
        }
    ),
    lists("TOPIC,,ANY,,,ANY,ANY", [READ_ORDERS, ORDER_TOPICS]),
    deletes({EVERYTHING: [READ_ORDERS, BILLING, OPERATE, *PREFIXED]}),
    lists(EVERYTHING, []),
]

# For clients that know no pattern types, on a broker that already holds PREFIXED.
STORY_OF_VERSION_ZERO = [
    lists("ANY,,LITERAL,,,ANY,ANY", []),
    creates(LITERALS),
    lists("ANY,,LITERAL,,,ANY,ANY", LITERALS),
    lists("TOPIC,orders,LITERAL,,,ANY,ANY", [READ_ORDERS, NOT_MALLORY]),
    lists("TOPIC,order,LITERAL,,,ANY,ANY", []),
    lists("ANY,,LITERAL,User:alice,,ANY,ANY", [READ_ORDERS, BILLING]),
    lists("ANY,,LITERAL,,198.51.100.3,ANY,ANY", [NOT_MALLORY]),
    deletes(
        {
            "GROUP,,LITERAL,,,ANY,ANY": [BILLING],
            "TRANSACTIONAL_ID,,LITERAL,,,ANY,ANY": [],
        }
    ),
    deletes({"ANY,,LITERAL,,,ANY,ANY": [READ_ORDERS, NOT_MALLORY, ANY_TOPIC, OPERATE]}),
    lists("ANY,,LITERAL,,,ANY,ANY", []),
]

REFUSALS = [
    Step("create", [READ_ORDERS, BILLING], Refused()),
    Step("list", ["ANY,,LITERAL,,,ANY,ANY"], Refused()),
    Step("delete", ["ANY,,LITERAL,,,ANY,ANY", "TOPIC,orders,LITERAL,,,ANY,ANY"], Refused()),
]


def connect(driver: Driver, address: str, user: str) -> None:
    """Let the client talk to the SASL_PLAINTEXT listener at `address` as `user` from now on."""
    assert driver.step("connect", address, user, PASSWORDS[user]) == Answer(None)


def tell(driver: Driver, steps: list[Step], reads_are_late: bool = False) -> None:
    """Do `steps` and compare each answer.

    `reads_are_late`: a Kafka broker answers a creation when its controller has it, and lists it a
    little later; so what it lists is asked for again until it is as expected, for some seconds.
    """
    for step in steps:
        expected = _expected(driver, step)
        answer = _answer(driver, step)
        if step.verb == "list" and reads_are_late and answer != expected:
            answer = _asked_until(driver, step, expected)
        assert (step.verb, step.words, answer) == (step.verb, step.words, expected)


def _asked_until(driver: Driver, step: Step, expected: object) -> object:
    try:
        return wait_for(
            "listed as expected",
            lambda: expected if _answer(driver, step) == expected else None,
            seconds=10,
        )
    except TimeoutError:
        return _answer(driver, step)


def _answer(driver: Driver, step: Step) -> object:
    """What the client answered, with lists of ACLs sorted and a refusal as one error."""
    result, error = driver.step(step.verb, *step.words)
    if error is not None:
        return error
    assert isinstance(result, list)
    if result and all(each == driver.client.refusal for each in result):
        return driver.client.refusal
    return _sorted(step.verb, result)


def _expected(driver: Driver, step: Step) -> object:
    if isinstance(step.expected, Refused):
        hidden = step.verb == "list" and driver.client.hides_refused_lists
        return [] if hidden else driver.client.refusal
    return _sorted(step.verb, step.expected)


def _sorted(verb: str, result: list[Any]) -> object:
    if verb == "list":
        return sorted(result)
    return [sorted(each) if isinstance(each, list) else each for each in result]
