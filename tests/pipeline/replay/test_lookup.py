"""What is looked up in tables of ACLs is what the broker's authorizer decides."""

from random import Random

import numpy as np
import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding, AclOperation, AclPermission, ResourceType
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.replay.deciding import Rules, asked_of, decide
from aclbroker.pipeline.replay.prefixes import PrefixBits, Prefixes
from tests.acl.examples import LITERAL, PREFIXED
from tests.pipeline.random_acls import HOSTS, random_acls
from tests.pipeline.replay.test_difference import SCHEMA, SETTINGS, question, random_questions


def as_the_authorizer(rules: Rules, questions: pa.RecordBatch) -> pa.RecordBatch:
    """To explain what is decided, the authorizer is always asked."""
    columns = [*questions.schema.names, "now_allowed", "now_rule"]
    return decide(questions, {"now": rules}, explain=True).select(columns)


@pytest.mark.parametrize("settings", SETTINGS)
def test_questions_are_decided_as_the_authorizer_does(settings):
    random = Random(str(settings))
    plain = 0
    for _ in range(40):
        rules = Rules(
            {
                name: Ruleset(random_acls(random, random.choice([0, 3, 25]), HOSTS), **settings)
                for name in ("eu", "us")
            }
        )
        questions = random_questions(random, ["eu", "us", "unknown"])
        assert decide(questions, {"now": rules}) == as_the_authorizer(rules, questions)
        plain += rules.are_plain(asked_of(questions)).sum()
    assert plain


def test_names_that_begin_with_many_prefixes_are_decided_as_the_authorizer_does():
    random = Random(7)
    names = ["".join(random.choices("ab", k=random.randrange(1, 9))) for _ in range(300)]
    operations = [each for each in AclOperation if each > AclOperation.ANY]
    acls = ordered(
        AclBinding(
            random.choice([ResourceType.TOPIC, ResourceType.GROUP]),
            random.choice([*names, "*"]),
            random.choice([LITERAL, PREFIXED, PREFIXED]),
            random.choice(["User:a", "User:b", "User:c", "User:*"]),
            random.choice(["*", "*", "10.0.0.1"]),
            random.choice(operations),
            random.choice([AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY]),
        )
        for _ in range(150)
    )
    questions = pa.RecordBatch.from_pylist(
        [
            question(
                principal=random.choice(["User:a", "User:b", "User:d", "User:*"]),
                host=random.choice(["10.0.0.1", "10.0.0.2", None]),
                operation=random.choice(list(AclOperation)).name,
                resource_type=random.choice(["TOPIC", "GROUP", "CLUSTER"]),
                resource_name=random.choice([*names, "*", "", "c"]),
            )
            for _ in range(3000)
        ],
        schema=SCHEMA,
    )
    rules = Rules({"eu": Ruleset(acls)})
    assert rules.are_plain(asked_of(questions)).all()
    decided = decide(questions, {"now": rules})
    assert decided == as_the_authorizer(rules, questions)
    assert set(decided.column("now_rule").to_pylist()) == {"MatchingAcl", "DefaultDeny"}


def test_the_prefixes_of_a_group_are_those_that_a_name_begins_with():
    random = Random(3)
    for _ in range(200):
        words = ["".join(random.choices("ab", k=random.randrange(6))) for _ in range(12)]
        chosen = [(random.randrange(3), random.choice(words)) for _ in range(random.randrange(12))]
        prefixes = Prefixes(word for _, word in chosen)
        of_chosen = [prefixes.in_order.index(word) for _, word in chosen]
        bits = [1 << number for number in range(len(chosen))]
        groups = [group for group, _ in chosen]
        columns = np.array([groups, of_chosen, bits], np.int64)
        grouped = PrefixBits(columns[0], columns[1], columns[2], prefixes.last)
        names = ["".join(random.choices("abc", k=random.randrange(7))) for _ in range(30)]
        for group in range(4):
            found = grouped.bits(np.full(len(names), group), prefixes.longest(names))
            assert found.tolist() == [
                sum(
                    bit
                    for bit, (its_group, prefix) in zip(bits, chosen, strict=True)
                    if its_group == group and name.startswith(prefix)
                )
                for name in names
            ]
