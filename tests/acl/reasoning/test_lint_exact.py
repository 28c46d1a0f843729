"""What lint says of random sets of ACLs is so: for all requests, and as the authorizer decides."""

from dataclasses import replace
from random import Random

import pytest

from aclbroker.acl.bindings import (
    WILDCARD_PRINCIPAL,
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.reasoning.difference import compare
from aclbroker.acl.reasoning.lint.findings import CODES, NEVER_MATCHING, REMOVABLE, Fix
from aclbroker.acl.reasoning.lint.linting import lint
from aclbroker.acl.reasoning.lint.orphans import Live
from aclbroker.acl.reasoning.lint.scopes import is_named_user, kafka_form
from aclbroker.acl.reasoning.rules import TYPES, Rules, operations_of
from aclbroker.cli.acls.checks import check
from aclbroker.cli.acls.options import parse
from aclbroker.cli.acls.wanted import to_add, to_remove
from aclbroker.cli.lint import mending
from tests.acl.reasoning.random_rules import (
    PEERS,
    SUBJECTS,
    decided,
    random_acl,
    random_request,
    random_rules,
)

ROUNDS = [*range(4), *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(4, 20))]
SETS = 20
REQUESTS = 40
LIVE = Live(["ab", "abcd"], [])
SERVER = "--bootstrap-server broker:9092"
ALLOW, DENY = AclPermission.ALLOW, AclPermission.DENY


TILES = [
    "*",
    "*",
    "0.0.0.0/0",
    "::/0",
    "0.0.0.0/1",
    "128.0.0.0/1",
    "::fffe:0:0/95",
    "::fffe:0:0/96",
]
"""Hosts of which some are all of another together."""


def rules_to_lint(random: Random) -> Rules:
    """Random rules; some of ACLs that say alike, so that several together make one superfluous."""
    rules = random_rules(random)
    if random.random() < 0.6:
        return rules
    kind = random.choice((ResourceType.TOPIC, ResourceType.GROUP, ResourceType.CLUSTER))
    acls = [
        random_acl(random)._replace(
            resource_type=kind,
            resource_name=(
                "kafka-cluster" if kind is ResourceType.CLUSTER else random.choice(("a", "ab", "*"))
            ),
            principal=random.choice(("User:carol", "User:carol", "Group:staff", "User:*")),
            host=random.choice(TILES),
            operation=random.choice((AclOperation.ALL, *operations_of(kind))),
        )
        for _ in range(random.choice((8, 16, 40)))
    ]
    return replace(rules, acls=sorted(set(acls)), cidr=True)


def applied(rules: Rules, *fixes: Fix | None) -> Rules:
    """The rules after all of the fixes."""
    removed = {acl for fix in fixes if fix for acl in fix.remove}
    added = [acl for fix in fixes if fix for acl in fix.add]
    acls = [acl for acl in (*rules.acls, *added) if acl not in removed]
    return replace(rules, acls=list(dict.fromkeys(acls)))


def without(rules: Rules, acl: AclBinding) -> Rules:
    return applied(rules, Fix(remove=(acl,)))


def differ(old: Rules, new: Rules) -> bool:
    return bool(compare(old, new).differences)


def produces_anywhere(rules: Rules) -> list[bool]:
    """Whether each subject may WRITE any topic (KIP-679), which brokers ask for."""
    authorizer = rules.authorizer()
    return [
        authorizer.authorize_by_resource_type(
            rules.session(subject, peer), AclOperation.WRITE, ResourceType.TOPIC
        ).allowed
        for subject in SUBJECTS
        for peer in PEERS
    ]


@pytest.mark.parametrize("seed", ROUNDS)
def test_what_can_go_can_go_all_together_or_in_part_without_any_decision_changing(seed):
    random = Random(f"lint {seed}")
    for _ in range(SETS):
        rules = rules_to_lint(random)
        found = lint(rules)
        fixes = [each.fix for each in found if each.is_safe]
        some = [each for each in fixes if random.random() < 0.5]
        for left in (applied(rules, *fixes), applied(rules, *some)):
            assert not differ(rules, left), rules
            assert produces_anywhere(rules) == produces_anywhere(left), rules
            authorizers = rules.authorizer(), left.authorizer()
            for _ in range(REQUESTS):
                request = random_request(random)
                before = decided(rules, authorizers[0], request)
                assert decided(left, authorizers[1], request) == before, (rules, request)


@pytest.mark.parametrize("seed", ROUNDS)
def test_an_acl_that_can_go_has_one_finding_and_each_that_stays_is_needed(seed):
    random = Random(f"needed {seed}")
    for _ in range(SETS):
        rules = rules_to_lint(random)
        found = lint(rules)
        codes: dict[AclBinding, list[str]] = {}
        for each in found:
            codes.setdefault(each.acl, []).append(each.code)
        assert all(len(each) == 1 for each in codes.values() if REMOVABLE & {*each})
        left = applied(rules, *(each.fix for each in found if each.code in REMOVABLE))
        for acl in left.acls:
            if REMOVABLE & {*codes.get(acl, ())}:
                continue
            if acl.permission is DENY:
                assert takes_something_back(rules, acl, codes), (rules, acl)
            elif "over-broad" not in codes.get(acl, ()):
                assert is_needed(left, acl), (rules, acl)


def is_needed(rules: Rules, acl: AclBinding) -> bool:
    """Whether it makes a difference here, or on a Kafka, where hosts are compared as text."""
    there = [each for each in rules.acls if rules.cidr or each.host in ("*", kafka_form(each.host))]
    on_kafka = replace(rules, acls=there)
    return differ(rules, without(rules, acl)) or differ(on_kafka, without(on_kafka, acl))


def takes_something_back(
    rules: Rules, deny: AclBinding, codes: dict[AclBinding, list[str]]
) -> bool:
    """Whether it denies what ALLOWs allow, were it the only DENY, whoever comes together."""
    allows = [
        acl
        for acl in rules.acls
        if acl.permission is ALLOW and not NEVER_MATCHING & {*codes.get(acl, ())}
    ]
    probes = {
        f"User:probe-{number}": (deny.principal, acl.principal)
        for number, acl in enumerate(allows)
        if not is_named_user(deny.principal) or not is_named_user(acl.principal)
    }
    probed = replace(rules, acls=allows, groups={**rules.groups, **probes})
    return differ(probed, replace(probed, acls=[*allows, deny]))


@pytest.mark.parametrize("seed", ROUNDS)
def test_an_acl_that_never_matches_never_decides_whatever_others_say(seed):
    random = Random(f"never {seed}")
    allowing = [
        AclBinding(
            kind,
            "kafka-cluster" if kind is ResourceType.CLUSTER else "*",
            PatternType.LITERAL,
            WILDCARD_PRINCIPAL,
            "*",
            AclOperation.ALL,
            ALLOW,
        )
        for kind in TYPES
    ]
    for _ in range(SETS):
        rules = rules_to_lint(random)
        for finding in lint(rules):
            if finding.code in NEVER_MATCHING:
                for acls in ([], allowing):
                    alone = replace(rules, acls=acls, allow_everyone_if_no_acl_found=False)
                    assert not differ(alone, replace(alone, acls=[*acls, finding.acl])), finding


@pytest.mark.parametrize("seed", ROUNDS)
def test_the_acls_that_a_finding_follows_from_are_enough_of_a_proof(seed):
    random = Random(f"proof {seed}")
    for _ in range(SETS):
        rules = rules_to_lint(random)
        for finding in lint(rules):
            if finding.code in ("redundant", "shadowed"):
                proof = replace(rules, acls=finding.because, allow_everyone_if_no_acl_found=False)
                assert not differ(proof, replace(proof, acls=[*proof.acls, finding.acl])), finding
                said = {each.permission for each in finding.because}
                assert finding.code == "redundant" or said == {DENY}, finding


@pytest.mark.parametrize("seed", ROUNDS)
def test_a_fix_removes_its_finding_and_is_what_the_acls_command_reads(seed):
    random = Random(f"fix {seed}")
    for _ in range(SETS):
        rules = rules_to_lint(random)
        for finding in lint(rules, LIVE):
            assert finding.code in CODES
            if finding.fix is None:
                assert finding.no_fix
                is_closing = rules.allow_everyone_if_no_acl_found and finding.code in NEVER_MATCHING
                assert is_closing or finding.code == "contradictory"
                continue
            after = applied(rules, finding.fix)
            assert not finding.is_safe or not differ(rules, after), finding
            left = {(each.code, each.acl) for each in lint(after, LIVE)}
            assert (finding.code, finding.acl) not in left, finding
            mended = mending(finding, SERVER)
            if mended.why_none is None:
                assert read(mended.lines) == finding.fix


def read(lines) -> Fix:
    """What command lines of `aclbroker acls` do."""
    import shlex

    found: dict[str, list[AclBinding]] = {"add": [], "remove": []}
    for line in lines:
        words = shlex.split(line)
        assert words[:2] == ["aclbroker", "acls"]
        options = parse(words[2:])
        action = check(options)
        wanted = (to_add if action == "add" else to_remove)(options)
        found[action] += [
            resource.binding(entry) for resource, entries in wanted.items() for entry in entries
        ]
    return Fix(tuple(found["add"]), tuple(found["remove"]))
