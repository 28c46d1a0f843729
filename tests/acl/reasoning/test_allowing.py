"""The smallest change that gives somebody an activity, and where a request without a host is."""

from itertools import combinations
from random import Random

import pytest

from aclbroker.acl.bindings import CLUSTER_NAME, AclOperation, ResourceType
from aclbroker.acl.reasoning.allowing import concerns, relevant, smallest_change
from aclbroker.acl.reasoning.compound import ACTIVITIES, needs_of, parts
from aclbroker.acl.reasoning.elsewhere import elsewhere
from aclbroker.acl.reasoning.explain import Change
from aclbroker.acl.reasoning.rules import Rules
from tests.acl.examples import (
    ALL,
    CLUSTER,
    CREATE,
    DELETE,
    DESCRIBE,
    GROUP,
    PREFIXED,
    READ,
    TOPIC,
    WRITE,
    allow,
    deny,
)
from tests.acl.reasoning.random_rules import ASKED_NAMES, MORE, PEERS, SUBJECTS, random_rules

TXN_ID = ResourceType.TRANSACTIONAL_ID
NAMES = {TOPIC: "orders", GROUP: "g", TXN_ID: "t"}
HERE = "10.0.0.7"
READS_GROUP = allow(operation=READ, name="g", resource_type=GROUP)


def changed(*acls, activity="consume", host=None, names=NAMES, **options):
    given = {"group": False, "transactional": False, "idempotent": False, **options}
    needs = needs_of(activity, **given)
    return smallest_change(
        Rules(acls), "User:alice", host or HERE, needs, names, from_anywhere=host is None
    )


@pytest.mark.parametrize(
    ("acls", "options", "change"),
    [
        ([], {}, Change((allow(),))),
        ([], {"group": True}, Change((allow(), READS_GROUP))),
        ([allow(operation=DESCRIBE)], {}, Change((allow(),))),
        ([allow()], {"group": True}, Change((READS_GROUP,))),
        ([allow()], {}, None),
        ([], {"activity": "produce"}, Change((allow(operation=WRITE),))),
        ([], {"activity": "produce", "idempotent": True}, Change((allow(operation=WRITE),))),
        (
            [],
            {"activity": "produce", "transactional": True},
            Change(
                (
                    allow(operation=WRITE),
                    allow(operation=WRITE, name="t", resource_type=TXN_ID),
                )
            ),
        ),
        ([], {"activity": "create-topic"}, Change((allow(operation=CREATE),))),
        ([], {"activity": "delete-topic"}, Change((allow(operation=DELETE),))),
        ([], {"host": HERE}, Change((allow(host=HERE),))),
        ([allow(), deny()], {}, Change(remove=(deny(),))),
        ([allow(), deny(operation=DESCRIBE)], {}, Change(remove=(deny(operation=DESCRIBE),))),
        ([deny("User:*")], {}, Change((allow(),), (deny("User:*"),))),
        ([allow(), deny(operation=WRITE)], {}, None),
        (
            [allow(), deny(), deny("User:*", ALL, "o", pattern_type=PREFIXED)],
            {},
            Change(remove=(deny("User:*", ALL, "o", pattern_type=PREFIXED), deny())),
        ),
        ([allow(), deny(host="10.0.0.8")], {}, None),
    ],
)
def test_the_change_has_what_is_missing_and_no_more(acls, options, change):
    assert changed(*acls, **options) == change


def test_a_right_on_the_cluster_is_left_out_where_one_on_the_topic_is_needed_anyway():
    change = changed(activity="produce", idempotent=True)
    assert [acl.resource_type for acl in change.add] == [TOPIC]
    told = [concerns(change.add[0], part.request) for part in missing("produce", idempotent=True)]
    assert told == [True, True, False]


def missing(activity, **options):
    needs = needs_of(activity, **{"group": False, "transactional": False, **options})
    return [each for each in parts(Rules(), "User:alice", HERE, needs, NAMES) if not each[2]]


@pytest.mark.parametrize("seed", range(5 * MORE))
def test_after_the_change_all_is_allowed_and_no_part_of_it_can_be_left_out(seed):
    random = Random(f"allowing {seed}")
    found = 0
    for _ in range(60):
        rules, (principal, host) = random_rules(random), (random.choice(SUBJECTS), PEERS[0])
        activity = random.choice(list(ACTIVITIES))
        needs = needs_of(
            activity,
            group=activity == "consume" and random.random() < 0.5,
            transactional=False,
            idempotent=activity == "produce" and random.random() < 0.5,
        )
        names = {kind: random.choice(ASKED_NAMES[1:-3]) for kind in (TOPIC, GROUP)}
        about = principal, host, needs, names

        def allowed(after, about=about):
            return all(part.is_allowed for part in parts(after, *about))

        here = relevant(rules, needs, names)
        assert list(parts(rules, *about)) == list(parts(here, *about))
        change = smallest_change(here, *about)
        if allowed(rules):
            assert change is None
            continue
        assert change is not None
        found += 1
        assert allowed(change.applied(rules))
        assert set(change.remove) <= set(rules.acls)
        whole = [*((acl, True) for acl in change.add), *((acl, False) for acl in change.remove)]
        for fewer in combinations(whole, len(whole) - 1):
            less = Change(
                tuple(acl for acl, is_new in fewer if is_new),
                tuple(acl for acl, is_new in fewer if not is_new),
            )
            assert not allowed(less.applied(rules))
    assert found > 20


@pytest.mark.parametrize(
    ("hosts", "cidr", "text"),
    [
        ([], False, "any host"),
        (["*"], False, "any host"),
        (["10.0.0.7"], False, "any host but 10.0.0.7"),
        (["192.0.2.1", "10.0.0.7"], False, "any host but 10.0.0.7, 192.0.2.1"),
        (["192.0.0.0/16"], False, "any host"),
        (["192.0.0.0/16"], True, "any host but 192.0.0.0/16"),
        (["::1", "0.0.0.0/0"], True, "any host but 0.0.0.0/0, ::1"),
        (
            [f"10.0.0.{number}" for number in range(1, 9)],
            False,
            "any host but 10.0.0.1, 10.0.0.2, 10.0.0.3 and 5 more",
        ),
    ],
)
def test_without_a_host_a_request_comes_from_where_no_acl_is_about(hosts, cidr, text):
    rules = Rules([allow(host=host) for host in hosts], cidr=cidr)
    found = elsewhere(rules, "User:alice", rules)
    assert found.text == text
    about = [acl.host for acl in rules.acls if acl.host not in ("*", "192.0.0.0/16", "0.0.0.0/0")]
    assert found.address not in about
    request_from = [allow(host=found.address), *rules.acls]
    assert elsewhere(Rules(request_from, cidr=cidr), "User:alice", rules).text == text
    assert elsewhere(Rules(request_from, cidr=cidr), "User:alice", rules).address != found.address


def test_hosts_of_other_principals_are_not_named():
    rules = Rules([allow("User:bob", host="10.0.0.7"), allow("User:*", host="10.0.0.8")])
    assert elsewhere(rules, "User:alice", rules).text == "any host but 10.0.0.8"


def test_where_acls_name_every_host_it_is_one_of_them():
    rules = Rules([allow(host="0.0.0.0/0"), allow(host="::/0")], cidr=True)
    found = elsewhere(rules, "User:alice", rules)
    assert found.text == found.address == "0.0.0.1"


def test_what_decides_on_the_cluster_counts_only_where_it_does_in_place_of_a_right():
    on_cluster = allow(operation=AclOperation.CREATE, name=CLUSTER_NAME, resource_type=CLUSTER)
    rules = Rules([on_cluster, allow(name="other")])
    of = {"group": False, "transactional": False, "idempotent": False}
    assert relevant(rules, needs_of("create-topic", **of), NAMES).acls == [on_cluster]
    assert relevant(rules, needs_of("describe-topic", **of), NAMES).acls == []
    idempotent = needs_of("produce", **{**of, "idempotent": True})
    assert relevant(rules, idempotent, NAMES).acls == list(rules.acls)
