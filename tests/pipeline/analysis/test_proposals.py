"""What each job proposes for random ACLs and logs, held to the plain model of Kafka's rules.

The model (`tests.model`) shares no code with the authorizer, its index and the reasoning by
regions. It decides every request near the ACLs, so that nothing rests on what the jobs say.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple

import pytest

from aclbroker.acl.bindings import AclBinding, AclPermission
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.analysis.redundancy import redundancies
from aclbroker.pipeline.analysis.use import acl_uses
from tests import model
from tests.pipeline.analysis.recommended_universe import (
    READ_AS,
    USED_AS,
    WRITE,
    allowed_by_model,
    on_any_topic,
)
from tests.pipeline.analysis.recommending import draft
from tests.pipeline.analysis.test_use import asked, with_wider, without
from tests.pipeline.random_acls import few_hosts, random_acls
from tests.pipeline.universe import Asking, Universe, companies, on_kafka

OPEN = pytest.param(True, id="open", marks=pytest.mark.thorough)
DEFAULT = pytest.mark.parametrize("default", [pytest.param(False, id="closed"), OPEN])
ADDRESSES = pytest.param(False, id="addresses", marks=pytest.mark.thorough)
CIDR = pytest.mark.parametrize("cidr", [ADDRESSES, pytest.param(True, id="subnets")])


class Case(NamedTuple):
    """Rules, every request near them, and those that a log has."""

    rules: Ruleset
    requests: list[Asking]
    log: list[Asking]

    def allowed(self, rules: Ruleset) -> set[Asking]:
        """The requests that the model allows."""
        return allowed(rules, self.requests)

    @property
    def used(self) -> list[Asking]:
        """What of the log the rules allow."""
        found = allowed(self.rules, self.log)
        return [each for each in self.log if each in found]


def allowed(rules: Ruleset, requests: Iterable[Asking]) -> set[Asking]:
    return {
        each
        for each in requests
        if model.authorize(
            rules.acls,
            *each,
            super_users=rules.super_users,
            allow_if_no_acl=rules.allow_everyone_if_no_acl_found,
            cidr=rules.cidr,
        )
    }


def random_case(random: Random, *, default: bool, cidr: bool) -> Case:
    acls = with_wider(random, random_acls(random, random.choice((3, 6, 9)), few_hosts(random)))
    super_users = frozenset(["User:bob"] if random.random() < 0.2 else [])
    rules = Ruleset(acls, super_users, allow_everyone_if_no_acl_found=default, cidr=cidr)
    requests = Universe(acls, companies(acls)).requests
    requests = [each for each in requests if super_users.isdisjoint(each.principals)]
    can = sorted(allowed(rules, requests))
    log = random.choices(requests, k=8)
    log += random.choices(can, k=random.choice((1, 5, 15))) if can else []
    # Much of what somebody may do on a name: one ACL may allow several of these.
    for all_on_it in [[each for each in can if is_alike(each, one)] for one in log[8:11]]:
        log += random.sample(all_on_it, len(all_on_it) // 2)
    return Case(rules, requests, log)


def is_alike(one: Asking, other: Asking) -> bool:
    """Whether both are of one session and name; from wherever, to do whatever."""
    return (one.principals, *one[3:]) == (other.principals, *other[3:])


@CIDR
@DEFAULT
def test_unused_opens_nothing_loses_nothing_used_and_leaves_no_allow_that_could_go(
    default: bool, cidr: bool
) -> None:
    random = Random(f"unused {default} {cidr}")
    gone = 0
    for _ in range(8):
        case = random_case(random, default=default, cidr=cidr)
        uses = acl_uses(case.rules, [asked(case.rules, each) for each in case.log])
        going = [each.acl for each in uses if each.stays is None]
        left = without(case.rules, going)
        assert case.allowed(left) <= case.allowed(case.rules)
        assert allowed(left, case.log) == set(case.used)
        gone += len(going)
        if not default:
            needs_each_here(case, left)
    assert gone > 10


def needs_each_here(case: Case, left: Ruleset) -> None:
    """Each ALLOW is needed for something that was used, here or on a Kafka."""
    for acl in left.acls:
        if acl.permission is AclPermission.ALLOW:
            fewer = without(left, [acl])
            assert any(
                allowed(read(fewer), case.used) < allowed(read(left), case.used)
                for read in (lambda rules: rules, on_kafka)
            ), acl


@CIDR
@DEFAULT
def test_without_the_redundant_acls_all_is_as_before_and_none_is_left_that_others_cover(
    default: bool, cidr: bool
) -> None:
    random = Random(f"redundant {default} {cidr}")
    gone = kept = 0
    for _ in range(12):
        case = random_case(random, default=default, cidr=cidr)
        found = redundancies(case.rules)
        going = [each.acl for each in found.covered]
        left = without(case.rules, going)
        before = case.allowed(case.rules)
        assert case.allowed(left) == before
        gone += len(going)
        if default:
            # What all may do by an ACL, all may do without any.
            continue
        contradictions = {each.allow for each in found.contradictions if each.entire}
        for acl in set(left.acls) - contradictions:
            if acl.permission is AclPermission.ALLOW and says_something(case, acl):
                kept += 1
                assert decides_something(case, left, acl), acl
    assert gone > 2
    assert default or kept > 5


def says_something(case: Case, acl: AclBinding) -> bool:
    """Whether an ALLOW allows anybody anything: not if its host is no address, for example."""
    return bool(case.allowed(Ruleset((acl,), cidr=case.rules.cidr)))


def decides_something(case: Case, rules: Ruleset, acl: AclBinding) -> bool:
    """Whether something would be decided otherwise without an ACL, here or on a Kafka."""
    fewer = without(rules, [acl])
    return case.allowed(fewer) != case.allowed(rules) or (
        case.allowed(on_kafka(fewer)) != case.allowed(on_kafka(rules))
    )


@CIDR
@DEFAULT
def test_recommend_opens_nothing_loses_nothing_used_and_recommends_no_allow_in_vain(
    default: bool, cidr: bool
) -> None:
    random = Random(f"recommend {default} {cidr}")
    sizes = of_any_used = 0
    for _ in range(8):
        drawn = random_case(random, default=default, cidr=cidr)
        # Of writing alone it is asked whether one may on any topic.
        writing = random_acls(random, 3, few_hosts(random))
        rules = drawn.rules.with_acls(
            [*drawn.rules.acls, *(acl._replace(operation=WRITE) for acl in writing)]
        )
        drawn = drawn._replace(rules=rules)
        sessions = list(dict.fromkeys(each.principals for each in drawn.requests))
        of_any = on_any_topic(sessions, {each.host for each in drawn.requests})
        can = sorted(allowed_by_model(rules, of_any))
        used = [*drawn.used, *random.sample(can, min(len(can), 3))]
        of_any_used += len(used) - len(drawn.used)
        found = draft(rules, used)
        # Of a resource called * no ACL can be made where that would open others.
        unmet = {each.name for each in found.grants.unmet}
        assert unmet <= {"*"}
        log = [each for each in used if each.name not in unmet]
        proposed = found.rules(())
        acls = {*rules.acls, *proposed.acls}
        universe = Universe(acls, companies(acls))
        requests = [*universe.requests, *on_any_topic(universe.sessions, universe.hosts)]
        for read in READ_AS:
            before, after = (allowed_by_model(read(each), requests) for each in (rules, proposed))
            assert after <= before, read
        for read in USED_AS:
            kept = allowed_by_model(read(proposed), log)
            assert kept >= allowed_by_model(read(rules), log), read
        assert allowed_by_model(proposed, log) == set(log)
        sizes += len(proposed.acls)
        if not default:
            needs_each(rules, log, proposed)
    assert sizes > 10
    assert of_any_used > 5


def needs_each(rules: Ruleset, log: list[Asking], proposed: Ruleset) -> None:
    """Each ALLOW is needed for something that was used, here or on a Kafka."""
    for acl in proposed.acls:
        if acl.permission is AclPermission.ALLOW:
            fewer = without(proposed, [acl])
            assert any(
                not allowed_by_model(read(rules), log) <= allowed_by_model(read(fewer), log)
                for read in USED_AS
            ), acl
