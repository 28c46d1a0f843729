"""How differences of two sets of rules are told: each once, and for many principals together."""

from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.regions import Request
from aclbroker.acl.reasoning.rules import Rules
from tests.acl.examples import (
    DESCRIBE,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.acl.reasoning.random_rules import (
    MORE,
    SUBJECTS,
)
from tests.acl.reasoning.test_exact import MANY_NAMES, rules_of_many_names


def under(prefix: str, principal: str = "User:alice", operation=READ) -> AclBinding:
    return allow(principal, operation, prefix, pattern_type=PREFIXED)


def told(old, new, **settings):
    """Each difference as a line; the example of each is in it, and decided as it says."""
    rules = [of if isinstance(of, Rules) else Rules(of, **settings) for of in (old, new)]
    compared = compare(*rules)
    for is_gained, region in compared.differences:
        example = region.request(compared.named)
        assert example in region
        assert [example.is_allowed(each) for each in rules] == [not is_gained, is_gained]
    return [f"{'+' if gained else '-'} {region}" for gained, region in compared.differences]


def test_who_keeps_a_right_on_a_name_is_not_meant_there_by_what_everyone_loses():
    kept = [allow("User:alice", READ, "pub-a"), allow("User:bob", READ, "pub-b")]
    assert told([under("pub-", "User:*"), *kept], kept) == [
        "- everyone: READ, DESCRIBE on TOPIC pub-* but User:alice on pub-a, User:bob on pub-b "
        "from any host"
    ]
    assert told([under("pub-", "User:*"), *kept], [*kept, allow("User:*", READ, "pub-c")]) == [
        "- everyone: READ, DESCRIBE on TOPIC pub-* but pub-c, User:alice on pub-a, "
        "User:bob on pub-b from any host"
    ]


def test_who_keeps_a_right_on_all_the_names_is_not_among_everyone_who_loses_it():
    kept = [allow("User:alice", READ, "*")]
    assert told([under("pub-", "User:*"), *kept], kept) == [
        "- everyone but User:alice: READ, DESCRIBE on TOPIC pub-* from any host"
    ]


def test_who_loses_the_same_on_all_the_names_is_one_of_everyone_who_does():
    lost = [
        under("pub-", "User:*"),
        allow(operation=DESCRIBE, name="*"),
        allow("User:alice", WRITE, "pub-a"),
    ]
    assert told(lost, []) == [
        "- User:alice: DESCRIBE on TOPIC * but pub-* from any host",
        "- User:alice: READ, WRITE, DESCRIBE on TOPIC pub-a from any host",
        "- everyone: READ, DESCRIBE on TOPIC pub-* but User:alice on pub-a from any host",
    ]


def test_what_one_principal_loses_is_told_without_naming_it_again():
    lost = [under("pii-"), allow("User:alice", WRITE, "pii-raw")]
    assert told(lost, []) == [
        "- User:alice: READ, DESCRIBE on TOPIC pii-* but pii-raw from any host",
        "- User:alice: READ, WRITE, DESCRIBE on TOPIC pii-raw from any host",
    ]


def test_what_several_principals_lose_alike_is_told_once():
    lost = [under("pii-"), under("pii-", "User:bob"), allow("User:alice", WRITE, "pii-raw")]
    assert told(lost, []) == [
        "- User:alice, User:bob: READ, DESCRIBE on TOPIC pii-* but User:alice on pii-raw "
        "from any host",
        "- User:alice: READ, WRITE, DESCRIBE on TOPIC pii-raw from any host",
    ]


def test_a_right_that_another_acl_gives_as_well_is_not_told():
    kept = [under("a"), under("ab", operation=DESCRIBE)]
    assert told([*kept, allow(name="abc")], kept) == []
    assert told(kept, [under("a")]) == []


def test_what_changes_inside_of_a_prefix_alone_is_told_there_alone():
    """The prefix itself is the same on both sides; what everyone has in it is not."""
    kept = [under("team-"), under("team-a-", operation=WRITE)]
    gained = [allow("User:*", WRITE, "team-x"), deny("User:*", READ, "team-a-y")]
    assert told(kept, [*kept, *gained]) == [
        "- User:alice: READ on TOPIC team-a-y from any host",
        "+ User:alice: WRITE on TOPIC team-x from any host",
        "+ everyone but User:alice: WRITE, DESCRIBE on TOPIC team-x from any host",
    ]


def test_a_prefix_that_lies_in_another_is_told_with_what_everyone_has_in_it():
    old = [
        *(under("a", who) for who in ("User:alice", "User:bob")),
        under("ab", "User:alice", WRITE),
        allow("User:*", DESCRIBE, "abc"),
    ]
    new = [under("ab", "User:alice", WRITE), allow("User:*", DESCRIBE, "abc")]
    assert told(old, new) == [
        "- User:alice, User:bob: READ, DESCRIBE on TOPIC a* but abc, User:alice on ab* "
        "from any host",
        "- User:alice: READ on TOPIC ab* from any host",
        "- User:bob: READ on TOPIC abc from any host",
    ]


def test_a_super_user_of_one_side_loses_all_that_acls_do_not_give():
    old = Rules([allow("User:*", READ, "a")], frozenset({"User:alice"}))
    [line] = [each for each in told(old, Rules(old.acls)) if " on TOPIC a " in each]
    assert line == (
        "- User:alice: WRITE, CREATE, DELETE, ALTER, DESCRIBE_CONFIGS, ALTER_CONFIGS on TOPIC a "
        "from any host"
    )


def test_the_example_is_of_somebody_who_is_meant_wherever_it_is():
    """Each of them has something else on the name that would be the first example."""
    old = [
        *(under("a", who) for who in ("User:alice", "User:bob")),
        allow("User:alice", WRITE, "aexample"),
    ]
    said = "User:alice, User:bob: READ, DESCRIBE on TOPIC a* but User:alice on aexample"
    assert f"- {said} from any host" in told(old, [])
    old.append(allow("User:bob", WRITE, "ax"))
    assert f"- {said}, User:bob on ax from any host" in told(old, [])


def test_what_many_have_in_common_is_not_told_of_each_of_them():
    """Else the answer would grow with the principals times the names that everyone has apart."""
    names = [allow("User:*", WRITE, f"team-{number}") for number in range(50)]
    people = [f"User:{number}" for number in range(60)]
    literals = [allow(each, WRITE, f"team-of-{each[5:]}") for each in people]
    for shared in ([under("team-", "User:*")], [under("team-", each) for each in people]):
        compared = compare(Rules([*names, *shared, *literals]), Rules())
        said = sum(
            1 + len(region.names.excepted) + len(list(region.exceptions()))
            for _, region in compared.differences
        )
        assert said < 4 * (len(names) + len(people))


@pytest.mark.parametrize("seed", range(4 * MORE))
def test_what_differs_on_a_thousand_names_at_edges_is_told_once_each(seed):
    random = Random(f"compare a thousand names {seed}")
    old, new = rules_of_many_names(random), rules_of_many_names(random)
    if seed % 2:
        new = Rules([*old.acls[::2], *new.acls[::20]], old.super_users, cidr=old.cidr)
    compared = compare(old, new)
    authorizers = old.authorizer(), new.authorizer()
    for principal in SUBJECTS:
        for host in ("10.0.0.1", "10.1.0.0"):
            mine = [each for each in compared.differences if principal in each.region.principals]
            for name in MANY_NAMES:
                asked = Request(principal, host, READ, TOPIC, name)
                before = asked.is_allowed(old, authorizers[0])
                after = asked.is_allowed(new, authorizers[1])
                found = [each.is_gained for each in mine if asked in each.region]
                assert found == ([] if before == after else [after]), (old, new, asked)
