"""What the reasoning says of regions is what Kafka's own StandardAuthorizer decides about them.

Our authorizer is not asked. Left out is what Kafka does not know or what it decides otherwise on
purpose: groups, subnets and the forms of IPv6 addresses (d4 and d5 in docs/ARCHITECTURE.md), and
names that begin with ``*`` or with a character below it, of which 4.3.0 thinks otherwise
(tests/pipeline/replay/test_oracles.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from tests.support import toolchain

toolchain.require_spark()

import numpy as np

from aclbroker.acl.bindings import WILDCARD, WILDCARD_PRINCIPAL, ResourceType
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.names import LITERAL, PREFIX, ROOT
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from tests.acl.reasoning.random_rules import MORE, PEERS, SUBJECTS, random_request, random_rules
from tests.pipeline.kafka_decides import KafkaAuthorizer
from tests.pipeline.questions import Questions

ROUNDS = range(2 * MORE)
"""Each is a random number's seed; a round has a few dozen sets, and thousands of requests."""

SETS = 40
REQUESTS = 400

Expected = dict[Request, bool]
"""What the reasoning says of requests."""


@pytest.fixture(scope="module")
def kafka_authorizer(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAuthorizer]:
    authorizer = KafkaAuthorizer(tmp_path_factory.mktemp("kafka-decides"))
    yield authorizer
    authorizer.close()


def rules_of_kafka(random: Random, like: Rules | None = None) -> Rules:
    """Random rules of what Kafka knows, too."""
    found = random_rules(random, like)
    acls = [acl for acl in found.acls if ":" not in acl.host]
    return replace(found, acls=acls, groups={}, cidr=False)


def is_asked(request: Request) -> bool:
    """Whether Kafka can be asked: its class fails on a user that is called ``*``."""
    return (
        request.name[:1] > WILDCARD
        and ":" not in request.host
        and request.principal != WILDCARD_PRINCIPAL
    )


def requests_of_kafka(random: Random) -> list[Request]:
    drawn = (random_request(random) for _ in range(REQUESTS))
    return [each for each in drawn if is_asked(each)]


def check(kafka: KafkaAuthorizer, rules: Rules, expected: Expected) -> int:
    """Hold the reasoning to Kafka; return how many requests it was asked about."""
    asked = [request for request in expected if is_asked(request)]
    if not asked:
        return 0
    texts: dict[str, int] = {}

    def number(text: str) -> int:
        return texts.setdefault(text, len(texts))

    rows = [
        (number(principal), number(host), operation, kind, number(name))
        for principal, host, operation, kind, name in asked
    ]
    questions = Questions(list(texts), *np.array(rows, np.int32).T)
    ruleset = Ruleset(
        ordered(rules.acls),
        rules.super_users,
        allow_everyone_if_no_acl_found=rules.allow_everyone_if_no_acl_found,
    )
    answers = kafka.decide(ruleset, questions).allowed.tolist()
    wrong = [
        (request, bool(answer))
        for request, answer in zip(asked, answers, strict=True)
        if expected[request] != bool(answer)
    ]
    assert not wrong, rules
    return len(asked)


@pytest.mark.parametrize("seed", ROUNDS)
def test_what_a_principal_can_is_what_kafka_allows(kafka_authorizer: KafkaAuthorizer, seed: int):
    random = Random(f"what can, says Kafka {seed}")
    count = 0
    for _ in range(SETS):
        rules = rules_of_kafka(random)
        reasoner = Reasoner(rules)
        expected: Expected = {}
        regions = {each: list(reasoner.what_can(each)) for each in SUBJECTS}
        for region in (region for of_one in regions.values() for region in of_one):
            example = region.request()
            for host in region.cut.examples(region.mask):
                for operation in region.operations:
                    expected[example._replace(host=host, operation=operation)] = True
        for request in requests_of_kafka(random):
            expected[request] = any(request in each for each in regions[request.principal])
        count += check(kafka_authorizer, rules, expected)
    assert count > 6_000


@pytest.mark.parametrize("seed", ROUNDS)
def test_what_differs_is_what_kafka_decides_differently(
    kafka_authorizer: KafkaAuthorizer, seed: int
):
    random = Random(f"compare, says Kafka {seed}")
    count = 0
    for _ in range(SETS):
        old = rules_of_kafka(random)
        new = rules_of_kafka(random, like=old if random.random() < 0.7 else None)
        compared = compare(old, new)
        before: Expected = {}
        after: Expected = {}
        for is_gained, region in compared.differences:
            example = region.request(compared.named)
            before[example], after[example] = not is_gained, is_gained
        drawn = requests_of_kafka(random)
        regions = {each: list(Reasoner(old).what_can(each)) for each in SUBJECTS}
        for request in drawn:
            before[request] = any(request in each for each in regions[request.principal])
            differs = any(request in each.region for each in compared.differences)
            after[request] = before[request] is not differs
        count += check(kafka_authorizer, old, before)
        count += check(kafka_authorizer, new, after)
    assert count > 10_000


@pytest.mark.parametrize("seed", ROUNDS)
def test_who_can_are_those_whom_kafka_allows(kafka_authorizer: KafkaAuthorizer, seed: int):
    random = Random(f"who can, says Kafka {seed}")
    count = 0
    for _ in range(SETS):
        rules = rules_of_kafka(random)
        reasoner = Reasoner(rules)
        expected: Expected = {}
        for asked in requests_of_kafka(random)[:10]:
            kind = asked.resource_type
            is_cluster = kind is ResourceType.CLUSTER
            holders = list(
                reasoner.who_can(
                    asked.operation, kind, ROOT if is_cluster else (asked.name, LITERAL)
                )
            )
            for principal in SUBJECTS:
                mine = [each for each in holders if principal in each.principals]
                for peer in PEERS:
                    at = reasoner.cut.at(peer)
                    request = asked._replace(principal=principal, host=peer)
                    expected[request] = any(each.on_all & at for each in mine)
            if not is_cluster:
                for holder in reasoner.who_can(asked.operation, kind, (asked.name[:1], PREFIX)):
                    expected[holder.example] = True
        count += check(kafka_authorizer, rules, expected)
    assert count > 10_000
