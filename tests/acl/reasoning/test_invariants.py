"""Statements hold, or a request shows that they do not: what the model says of many requests."""

from dataclasses import replace
from itertools import product
from random import Random

import pytest

from aclbroker.acl.bindings import AclPermission, ResourceType
from aclbroker.acl.reasoning.invariants import (
    May,
    NoAllow,
    NobodyBut,
    Resources,
    WhoeverMay,
    counterexample,
)
from aclbroker.acl.reasoning.names import (
    LITERAL,
    PREFIX,
    ROOT,
    TOPIC_CHARACTERS,
    is_topic_name,
)
from aclbroker.acl.reasoning.questions import Reasoner
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules, operations_of
from aclbroker.acl.reasoning.sentences import SentenceError, parse_sentence
from tests.acl.examples import (
    ALTER,
    CLUSTER,
    DESCRIBE,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.acl.reasoning.random_rules import MORE, PEERS, SUBJECTS, by_model, random_rules
from tests.acl.reasoning.test_exact import edge_names

KINDS = [ResourceType.TOPIC, ResourceType.GROUP]


def random_what(random):
    kind = random.choice(KINDS)
    key = random.choice([("a", LITERAL), ("abc", LITERAL), ("a", PREFIX), ("ab", PREFIX), ROOT])
    return (random.choice(operations_of(kind)),), Resources(kind, key)


def random_invariant(random):
    operations, resources = random_what(random)
    host = random.choice((None, None, "10.0.0.1", "fe80::1%eth0"))
    kind = random.randrange(4)
    principal = random.choice(SUBJECTS)
    if kind == 0:
        but = tuple(random.sample(SUBJECTS, random.randrange(6)))
        return NobodyBut(but, operations, resources, host)
    may = May(principal, operations, resources, random.random() < 0.5, host)
    if kind == 1:
        return may
    if kind == 2:
        return NoAllow(principal, random.choice((None, resources)))
    first = random_what(random)
    return WhoeverMay(first[0], first[1], may, host)


def names_of(rules, resources):
    name, is_literal = resources.key
    return [name] if is_literal else sorted(edge_names(rules, name))


def possible_names_of(edges, resources):
    """Names that there can be a resource of, at the edges of some rules' patterns."""
    found = names_of(edges, resources)
    if resources.resource_type is not TOPIC:
        return found
    prefix, is_literal = resources.key
    if not is_literal:
        named = {prefix, *(acl.resource_name for acl in edges.acls)}
        ends = {name + end for name in named for end in ("x", ".zz", "-z") if name != "*"}
        found = sorted({*found, *(name for name in ends if name.startswith(prefix))})
    return [name for name in found if is_topic_name(name)]


def allowed(rules, edges, principal, host, operations, resources, on_every):
    """Whether somebody may do all of the operations, each on every name or on some."""
    kind = resources.resource_type
    quantified = all if on_every else any
    return all(
        quantified(
            by_model(rules, Request(principal, host, operation, kind, name))
            for name in possible_names_of(edges, resources)
        )
        for operation in operations
    )


def is_true(rules, reasoner, invariant, edges=None):
    """What the model says, of names at the edges of some rules' patterns, by default of all."""
    edges = edges or rules
    if isinstance(invariant, NoAllow):
        return not any(
            acl.permission is AclPermission.ALLOW
            and acl.principal == invariant.principal
            and _meets(rules, acl, invariant.resources)
            for acl in rules.acls
        )
    hosts = [invariant.host] if invariant.host else [*PEERS, *every_host(reasoner)]
    people = [*SUBJECTS, *rules.super_users]
    if isinstance(invariant, May):
        what = invariant.operations, invariant.resources, invariant.on_every
        return all(allowed(rules, edges, invariant.principal, host, *what) for host in hosts)
    if isinstance(invariant, NobodyBut):
        others = [
            each
            for each in people
            if not rules.is_super_user(each)
            and not set(rules.principals_of(each)) & set(invariant.principals)
            # Who is called like an ACL for everyone is anybody to the authorizer.
            and each != "User:*"
        ]
        what = invariant.operations, invariant.resources, False
        others.append("User:who-has-no-name")
        return not any(allowed(rules, edges, *each, *what) for each in product(others, hosts))
    implied = invariant.implied
    first = invariant.operations, invariant.resources, False
    then = implied.operations, implied.resources, implied.on_every
    return all(
        allowed(rules, edges, *each, *then)
        for each in product([*people, "User:who-has-no-name"], hosts)
        if allowed(rules, edges, *each, *first)
    )


def every_host(reasoner):
    return reasoner.cut.examples(reasoner.cut.everywhere)


def _meets(rules, acl, resources):
    if resources is None:
        return True
    names = names_of(rules, resources)
    matching = (name for name in names if name.startswith(acl.resource_name))
    if acl.resource_type != resources.resource_type:
        return False
    if acl.pattern_type.name == "PREFIXED":
        return any(matching)
    return acl.resource_name == "*" or acl.resource_name in names


@pytest.mark.parametrize("seed", range(12 * MORE))
def test_a_statement_holds_if_no_request_is_against_it(seed):
    random = Random(f"invariants {seed}")
    held = 0
    for _ in range(60):
        rules = random_rules(random)
        reasoner = Reasoner(rules)
        invariant = random_invariant(random)
        found = counterexample(reasoner, invariant)
        assert (found is None) == is_true(rules, reasoner, invariant), (rules, invariant)
        held += found is None
        if found is not None and found.request is not None:
            assert by_model(rules, found.request) is found.is_allowed
            assert found.request.resource_type is not TOPIC or is_topic_name(found.request.name)
    assert 5 < held < 55


def using_up(random, prefix):
    """ACLs that leave, for some of their principals, few names that begin so, or none."""
    principal, other = random.choice(SUBJECTS), random.choice(SUBJECTS)
    operation = random.choice((READ, WRITE, DESCRIBE))
    permits = random.choice((allow, deny))
    left_out = random.choice(("", "", "x", "-", "."))
    found = [
        permits(principal, operation, prefix + each, pattern_type=PREFIXED)
        for each in TOPIC_CHARACTERS
        if each not in left_out
    ]
    if random.random() < 0.7:
        found.append(permits(principal, operation, prefix or "x"))
    around = random.choice((allow, deny))(other, operation, prefix or "*")
    if prefix:
        around = around._replace(pattern_type=PREFIXED)
    return [*found, around]


@pytest.mark.parametrize("seed", range(3 * MORE))
def test_names_that_no_topic_can_have_are_against_no_statement(seed):
    random = Random(f"possible {seed}")
    held = 0
    for _ in range(10):
        edges = random_rules(random)
        more = [
            *using_up(random, random.choice(("", "a", "ab"))),
            *(allow(random.choice(SUBJECTS), WRITE, name) for name in ("a b", "é", "x" * 250)),
            allow(random.choice(SUBJECTS), READ, "a b", pattern_type=PREFIXED),
        ]
        # All that use up a prefix are alike: a few of them show what the others do.
        edges = replace(edges, acls=sorted({*edges.acls, *more[:3], *more[64:]}))
        rules = replace(edges, acls=sorted({*edges.acls, *more}))
        reasoner = Reasoner(rules)
        for _ in range(4):
            invariant = random_invariant(random)
            if isinstance(invariant, NoAllow):
                continue
            invariant = replace(invariant, host="10.0.0.1")
            found = counterexample(reasoner, invariant)
            expected = is_true(rules, reasoner, invariant, edges)
            assert (found is None) == expected, (rules, invariant)
            held += found is None
            if found is not None:
                assert found.request is not None
                assert by_model(rules, found.request) is found.is_allowed
                kind, name = found.request[3:]
                assert kind is not TOPIC or is_topic_name(name)
    assert held > 5


@pytest.mark.parametrize(
    ("acls", "sentence", "name"),
    [
        ([allow(name="a b")], "nobody may READ topics *", None),
        ([allow(name="a b", pattern_type=PREFIXED)], "nobody may READ topics a*", None),
        ([allow(name="a b"), allow(name="b")], "nobody may READ topics *", "b"),
        ([allow(name="*"), deny(name="a b")], "User:alice may READ every topic *", None),
        ([allow(name="a b")], "User:alice may READ some topic a*", "aexample"),
        ([allow(name="x" * 250)], "nobody may READ topics x*", None),
        ([allow(name="x" * 249, pattern_type=PREFIXED)], "nobody may READ topics x*", "x" * 249),
        (
            [
                allow(name="x" * 249, pattern_type=PREFIXED),
                deny(name="x" * 249),
            ],
            "nobody may READ topics x*",
            None,
        ),
        ([allow(name=".")], "nobody may READ topics .*", None),
        ([allow(name=".", pattern_type=PREFIXED)], "nobody may READ topics .*", ".example"),
        ([allow(name="a b")], "whoever may READ topics a* may WRITE topic b", None),
        (
            [allow(name="a b", resource_type=GROUP)],
            "nobody may READ groups a*",
            "a b",
        ),
    ],
)
def test_a_counterexample_is_about_a_topic_that_there_can_be(acls, sentence, name):
    found = counterexample(Reasoner(Rules(acls)), parse_sentence(sentence))
    told = found.request if found is not None else None
    assert (told and told.name) == name


def on_each(permits, operation=READ):
    """ACLs of User:alice on all topics that begin with a, by what comes next."""
    longer = (f"a{each}" for each in TOPIC_CHARACTERS)
    found = [permits(operation=operation, name=name, pattern_type=PREFIXED) for name in longer]
    return [permits(operation=operation, name="a"), *found]


READS_A = allow(name="a", pattern_type=PREFIXED)


@pytest.mark.parametrize(
    ("acls", "sentence", "holds"),
    [
        ([READS_A, *on_each(deny)], "nobody may READ topics a*", True),
        ([READS_A, *on_each(deny)[1:]], "nobody may READ topics a*", False),
        ([READS_A, *on_each(deny)], "User:alice may READ some topic a*", False),
        ([READS_A, *on_each(deny)[:-1]], "User:alice may READ some topic a*", True),
        (on_each(allow), "User:alice may READ every topic a*", True),
        (on_each(allow)[:-1], "User:alice may READ every topic a*", False),
        ([READS_A, *on_each(deny)], "whoever may READ topics a* may WRITE topic b", True),
        ([READS_A, *on_each(deny)[1:]], "whoever may READ topics a* may WRITE topic b", False),
        ([allow(name="b"), *on_each(allow)], "whoever may READ topic b may READ topics a*", True),
    ],
)
def test_a_prefix_whose_names_are_all_taken_by_longer_ones_counts_for_nothing(
    acls, sentence, holds
):
    found = counterexample(Reasoner(Rules(acls)), parse_sentence(sentence))
    assert (found is None) is holds
    if found is not None:
        assert found.request is not None
        assert is_topic_name(found.request.name)


@pytest.mark.parametrize(
    ("sentence", "problem"),
    [
        ('nobody may READ topic "a b"', "no topic can be called 'a b': names of topics have"),
        ('nobody may READ topic "a*"', "no topic can be called 'a[*]'"),
        ("User:a may READ every topic é*", "no topic can have a name that begins with 'é'"),
        ("whoever may READ topic a may WRITE topic ..", "no topic can be called '[.][.]'"),
    ],
)
def test_a_statement_about_topics_that_cannot_be_is_refused(sentence, problem):
    with pytest.raises(ValueError, match=problem):
        counterexample(Reasoner(Rules([allow()])), parse_sentence(sentence))
    of_groups = parse_sentence(sentence.replace("topic", "group").replace("WRITE", "DESCRIBE"))
    counterexample(Reasoner(Rules([allow()])), of_groups)


@pytest.mark.parametrize(
    ("sentence", "invariant"),
    [
        (
            "nobody but User:payments may WRITE topics pii-*",
            NobodyBut(("User:payments",), (WRITE,), Resources(TOPIC, ("pii-", PREFIX))),
        ),
        (
            "User:etl may READ every topic landing-*",
            May("User:etl", (READ,), Resources(TOPIC, ("landing-", PREFIX))),
        ),
        ("no ALLOW for User:* on the cluster", NoAllow("User:*", Resources(CLUSTER, ROOT))),
        (
            "whoever may READ group g may DESCRIBE every topic g-*",
            WhoeverMay(
                (READ,),
                Resources(GROUP, ("g", LITERAL)),
                May("", (DESCRIBE,), Resources(TOPIC, ("g-", PREFIX))),
            ),
        ),
        (
            "nobody but User:a, User:b and User:c may ALTER the cluster from 10.0.0.1",
            NobodyBut(
                ("User:a", "User:b", "User:c"), (ALTER,), Resources(CLUSTER, ROOT), "10.0.0.1"
            ),
        ),
        ("nobody may alter cluster", NobodyBut((), (ALTER,), Resources(CLUSTER, ROOT))),
        ("no ALLOW for User:a on anything", NoAllow("User:a", None)),
        (
            '"User:CN=a, O=b" may READ, WRITE some topic "a*"',
            May("User:CN=a, O=b", (READ, WRITE), Resources(TOPIC, ("a*", LITERAL)), False),
        ),
    ],
)
def test_a_sentence_says_what_it_reads_like(sentence, invariant):
    assert parse_sentence(sentence) == invariant


@pytest.mark.parametrize(
    ("sentence", "offset", "problem"),
    [
        ("nobody but User:a can WRITE topic a", 18, "expected 'may' here"),
        ("User:a may REED topic a", 11, "'REED' is no operation; there are READ, WRITE"),
        ("User:a may READ topik a", 16, "'topik' is no resource type; there are topic, group"),
        ("User:a may WRITE group a", 11, "a GROUP has no operation WRITE, only READ, DELETE"),
        ("alice may READ topic a", 0, "'alice' is no principal; write Type:name"),
        ("User:a may READ topic", 21, "expected a name here"),
        ("User:a may READ topic a b", 24, "'b' is too much"),
        ('User:a may READ topic "a', 22, "a quotation mark is not closed"),
        ("no DENY for User:a on anything", 3, "expected 'ALLOW' here"),
        ("nobody but , may READ topic a", 11, "expected a principal here"),
    ],
)
def test_a_sentence_with_a_mistake_says_where(sentence, offset, problem):
    with pytest.raises(SentenceError, match=problem) as raised:
        parse_sentence(sentence)
    assert raised.value.offset == offset


def test_a_statement_from_a_host_that_is_no_address_is_refused():
    reasoner = Reasoner(Rules([allow()]))
    with pytest.raises(ValueError, match="'laptop' is no address"):
        counterexample(reasoner, parse_sentence("User:a may READ topic a from laptop"))


def test_statements_are_checked_one_after_the_other():
    reasoner = Reasoner(Rules([allow(), allow(operation=WRITE, name="a")]))
    for sentence in ("nobody but User:alice may WRITE topic a", "nobody may WRITE topics o*"):
        for _ in range(2):
            assert counterexample(reasoner, parse_sentence(sentence)) is None
    for _ in range(2):
        assert counterexample(reasoner, parse_sentence("no ALLOW for User:bob on anything")) is None
        assert counterexample(reasoner, parse_sentence("nobody may READ topic orders")) is not None
