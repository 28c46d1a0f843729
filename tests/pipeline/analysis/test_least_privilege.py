"""What is recommended allows every use and nothing that the rules deny."""

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aclbroker.acl.authorizer import Action, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.analysis.choosing import needed
from aclbroker.pipeline.analysis.idle import without_idle
from aclbroker.pipeline.analysis.least_privilege import (
    NeededGrants,
    SessionUse,
    bound_to_hosts,
    minimized,
)
from aclbroker.pipeline.analysis.prefixes import PrefixOptions, candidates, consolidated
from aclbroker.pipeline.analysis.safeguards import safeguards
from tests.support.tables import examples

TOPIC, GROUP = ResourceType.TOPIC, ResourceType.GROUP
READ, WRITE, DESCRIBE = AclOperation.READ, AclOperation.WRITE, AclOperation.DESCRIBE

NAMES = ["a.x", "a.y", "a.y.z", "b", "*", "**"]
OPERATIONS = [READ, WRITE, DESCRIBE, AclOperation.ALTER_CONFIGS, AclOperation.DESCRIBE_CONFIGS]
SESSIONS = [("User:alice",), ("User:bob", "Group:staff"), ("User:carol", "Group:staff")]
MORE_SESSIONS = [*SESSIONS, ("User:bob",), ("User:carol", "User:bob")]
HOSTS = ["10.0.0.1", "10.0.0.2", "::1", "198.51.100.7"]


def acl(text: str) -> AclBinding:
    """An ACL written ``allow READ topic orders. prefixed User:a [host]``."""
    permission, operation, resource_type, name, pattern, principal, *host = text.split()
    return AclBinding(
        ResourceType[resource_type.upper()],
        name,
        PatternType[pattern.upper()],
        principal,
        host[0] if host else "*",
        AclOperation[operation],
        AclPermission[permission.upper()],
    )


def acls(*texts: str) -> list[AclBinding]:
    return sorted(acl(text) for text in texts)


def use(principals, operation, *names, host=None, resource_type=TOPIC) -> SessionUse:
    return SessionUse(tuple(principals.split()), host, operation, resource_type, names)


def recommended(uses, rules, hosts=()) -> list[AclBinding]:
    grants = bound_to_hosts(needed(uses, rules), dict(hosts))
    assert grants.unmet == []
    return list(guarded(grants, rules or Ruleset(), ()).acls)


def least_of(grants) -> list[AclBinding]:
    """The grants without those that others make needless."""
    return list(without_idle(Ruleset(ordered(grants.bindings())), ()).acls)


def guarded(grants, rules, sessions) -> Ruleset:
    """The grants with what they need besides, and without what never decides."""
    allows = list(grants.bindings())
    return without_idle(rules.with_acls([*allows, *safeguards(allows, rules)]), sessions)


ALLOW_ALL = acl("allow ALL topic * literal User:*")


class TestGrants:
    def test_are_the_fewest_operations_on_single_names(self):
        uses = [
            use("User:a", DESCRIBE, "orders", "bills", "stock"),
            use("User:a", READ, "orders"),
            use("User:a", WRITE, "orders"),
            use("User:a", AclOperation.ALTER_CONFIGS, "bills"),
            use("User:a", AclOperation.DESCRIBE_CONFIGS, "bills", "stock"),
        ]
        assert recommended(uses, Ruleset((ALLOW_ALL,))) == acls(
            "allow READ topic orders literal User:a",
            "allow WRITE topic orders literal User:a",
            "allow ALTER_CONFIGS topic bills literal User:a",
            "allow DESCRIBE topic bills literal User:a",
            "allow DESCRIBE topic stock literal User:a",
            "allow DESCRIBE_CONFIGS topic stock literal User:a",
        )

    def test_are_for_the_first_principal_of_a_session_to_whom_it_is_allowed(self):
        rules = Ruleset(ordered(acls("allow ALL topic a literal User:*")))
        assert recommended([use("User:a Group:g", READ, "a")], rules) == acls(
            "allow READ topic a literal User:a"
        )

    def test_are_for_the_group_if_the_first_is_denied_it_without_the_group(self):
        rules = Ruleset(tuple(acls("allow ALL topic a literal Group:g")))
        assert recommended([use("User:a Group:g", READ, "a")], rules) == acls(
            "allow READ topic a literal Group:g"
        )

    def test_name_the_host_that_the_rules_name(self):
        rules = Ruleset(
            ordered(
                acls(
                    "allow READ topic a literal User:a 10.0.0.1",
                    "allow READ topic b literal User:a 10.0.0.0/8",
                    "allow READ topic c literal User:a *",
                )
            ),
            cidr=True,
        )
        found = recommended([use("User:a", READ, "a", "b", "c", host="10.0.0.1")], rules)
        assert found == list(rules.acls)

    def test_name_given_hosts_where_the_rules_name_none(self):
        rules = Ruleset(
            ordered([ALLOW_ALL, *acls("allow READ group g literal User:a 10.0.0.7")]),
        )
        uses = [
            use("User:a", READ, "t"),
            use("User:b", READ, "t"),
            use("User:a", READ, "g", resource_type=GROUP, host="10.0.0.7"),
        ]
        hosts = {"User:a": ["10.0.0.7", "2001:db8::1"], "User:c": ["10.0.0.9"]}
        assert recommended(uses, rules, hosts=hosts) == acls(
            "allow READ topic t literal User:a 10.0.0.7",
            "allow READ topic t literal User:a 2001:db8:0:0:0:0:0:1",
            "allow READ topic t literal User:b",
            "allow READ group g literal User:a 10.0.0.7",
        )

    def test_of_a_group_named_star_are_no_grants_of_every_group(self):
        rules = Ruleset((ALLOW_ALL._replace(resource_type=GROUP),))
        found = recommended([use("User:a", READ, "*", resource_type=GROUP)], rules)
        assert found == acls("allow READ group * prefixed User:a")

    def test_of_the_cluster(self):
        rules = Ruleset(tuple(acls("allow ALL cluster kafka-cluster literal User:a")))
        one = use("User:a", AclOperation.CREATE, "kafka-cluster")._replace(
            resource_type=ResourceType.CLUSTER
        )
        assert recommended([one], rules) == acls(
            "allow CREATE cluster kafka-cluster literal User:a"
        )

    def test_without_rules_are_not_made_for_everyone(self):
        grants = needed([use("User:* Group:g", READ, "t")], None)
        assert [each.reason for each in grants.unmet] == [
            "an ACL of User:* would hold for everyone"
        ]

    def test_without_rules_go_by_what_was_used_alone(self):
        assert recommended([use("User:a", READ, "t", host="10.0.0.1")], None) == acls(
            "allow READ topic t literal User:a"
        )

    @pytest.mark.parametrize(
        ("one", "reason"),
        [
            (use("User:*", READ, "t"), "an ACL of User:* would hold for everyone"),
            (use("User:a", READ, ""), "The resource name of a new ACL must not be empty."),
        ],
    )
    def test_are_not_made_where_they_cannot_be(self, one, reason):
        grants = needed([one], Ruleset((ALLOW_ALL,)))
        assert list(grants.bindings()) == []
        assert [(each.name, each.reason) for each in grants.unmet] == [(one.names[0], reason)]


class TestSafeguards:
    def test_a_denial_of_what_a_grant_implies_is_kept(self):
        denial = acl("deny DESCRIBE topic a prefixed User:a")
        rules = Ruleset(ordered([ALLOW_ALL, denial]))
        assert recommended([use("User:a", READ, "a.x")], rules) == sorted(
            [denial, acl("allow READ topic a.x literal User:a")]
        )

    def test_a_denial_that_is_about_nothing_granted_is_not(self):
        rules = Ruleset(
            ordered(
                [
                    ALLOW_ALL,
                    *acls(
                        "deny DELETE topic a.x literal User:a",
                        "deny READ topic b prefixed User:*",
                        "deny READ topic * literal User:b",
                        "deny READ group a.x literal User:a",
                    ),
                ]
            )
        )
        found = recommended([use("User:a", READ, "a.x"), use("User:b", WRITE, "b")], rules)
        assert found == acls(
            "allow READ topic a.x literal User:a", "allow WRITE topic b literal User:b"
        )

    def test_of_denials_that_cover_each_other_the_widest_is_kept(self):
        widest = acl("deny ALL topic a prefixed User:a 10.0.0.0/8")
        rules = Ruleset(
            ordered(
                [
                    ALLOW_ALL,
                    widest,
                    *acls(
                        "deny READ topic a prefixed User:a 10.0.0.0/8",
                        "deny ALL topic a.x literal User:a 10.0.0.0/8",
                        "deny ALL topic a prefixed User:a 10.0.0.7",
                        "deny ALL topic a prefixed User:a 10.9.0.0/16",
                    ),
                ]
            ),
            cidr=True,
        )
        found = recommended([use("User:a", READ, "a.x")], rules)
        assert [each for each in found if each.permission is AclPermission.DENY] == [widest]

    def test_a_denial_of_a_group_is_kept_whoever_may_be_its_member(self):
        denial = acl("deny READ topic t literal Group:g 10.0.0.1")
        rules = Ruleset(ordered([ALLOW_ALL, denial]))
        assert denial in recommended([use("User:a", READ, "t")], rules)
        assert denial not in recommended([use("User:a", READ, "u")], rules)

    def test_what_is_closed_stays_closed_where_others_are_open(self):
        rules = Ruleset(
            ordered(
                acls(
                    "allow READ topic used literal User:a",
                    "allow READ topic unused literal User:b",
                    "allow READ topic old. prefixed User:b",
                    "allow WRITE topic old.x literal User:*",
                )
            ),
            super_users=frozenset(["User:root"]),
            allow_everyone_if_no_acl_found=True,
        )
        uses = [use("User:a", READ, "used", "open")]
        assert recommended(uses, rules) == acls(
            "allow READ topic open literal User:a",
            "allow READ topic used literal User:a",
            "allow DESCRIBE topic old. prefixed User:root",
            "allow DESCRIBE topic unused literal User:root",
        )

    def test_without_super_users_an_acl_is_kept_to_close(self):
        rules = Ruleset(
            ordered(
                acls(
                    "allow READ topic x literal User:*",
                    "deny READ topic x literal User:b",
                    "allow READ topic y literal User:b",
                )
            ),
            allow_everyone_if_no_acl_found=True,
        )
        assert recommended([], rules) == acls(
            "deny READ topic x literal User:b", "allow READ topic y literal User:b"
        )


class TestPrefixes:
    def considered(self, uses, names=(), **options):
        grants = needed(uses, None)
        known = {TOPIC: {*names, *(name for each in uses for name in each.names)}}
        return grants, list(candidates(grants, known, PrefixOptions(**options)))

    def priced(self, uses, names=(), **options):
        _, found = self.considered(uses, names, **options)
        return {(each.prefix, each.operation.name): (each.names, each.price) for each in found}

    def test_the_price_is_the_names_newly_allowed(self):
        uses = [use("User:a", READ, "orders.eu", "orders.us"), use("User:a", DESCRIBE, "orders.ca")]
        grants, found = self.considered(
            uses, ["orders.ca", "orders.de", "ordersX", "bills"], minimum_names=2
        )
        (one,) = found
        assert (one.prefix, one.names, one.price) == ("orders.", 2, 2)
        assert one.examples == ("orders.ca", "orders.de")
        assert least_of(consolidated(grants, found)) == acls(
            "allow READ topic orders. prefixed User:a"
        )

    def test_what_implies_an_operation_is_not_newly_allowed_it(self):
        uses = [
            use("User:a", DESCRIBE, "orders.eu", "orders.us", "orders.ca"),
            use("User:a", READ, "orders.de"),
        ]
        assert self.priced(uses) == {("orders.", "DESCRIBE"): (3, 0)}

    def test_end_at_a_delimiter_unless_asked(self):
        uses = [use("User:a", READ, "order1", "order2", "order3", "ordeal")]
        assert self.priced(uses) == {}
        assert self.priced(uses, any_prefix=True) == {
            ("order", "READ"): (3, 0),
            ("orde", "READ"): (4, 0),
        }

    def test_of_equal_ones_the_longest_is_considered(self):
        uses = [use("User:a", READ, "a.b_c-1", "a.b_c-2", "a.b_c-3")]
        assert self.priced(uses) == {("a.b_c-", "READ"): (3, 0)}

    def test_must_be_long_and_worth_it(self):
        uses = [use("User:a", READ, "a.1", "a.2", "a.3", "long.1", "long.2")]
        assert self.priced(uses) == {}
        assert self.priced(uses, minimum_length=2) == {("a.", "READ"): (3, 0)}
        assert self.priced(uses, minimum_names=2) == {("long.", "READ"): (2, 0)}

    def test_of_nested_ones_the_shortest_is_taken(self):
        uses = [use("User:a", READ, "data.x.1", "data.x.2", "data.x.3", "data.y", "other")]
        grants, found = self.considered(uses)
        assert {each.prefix for each in found} == {"data.", "data.x."}
        assert least_of(consolidated(grants, found)) == acls(
            "allow READ topic data. prefixed User:a", "allow READ topic other literal User:a"
        )

    def test_are_for_one_principal_host_type_and_operation(self):
        uses = [
            use("User:a", READ, "orders.1", "orders.2"),
            use("User:b", READ, "orders.3"),
            use("User:a", WRITE, "orders.3"),
            use("User:a", READ, "orders.4", resource_type=GROUP),
        ]
        assert self.priced(uses) == {}

    def test_never_of_the_cluster(self):
        names = ["kafka-cluster"]
        grants = NeededGrants({}, {}, [])
        assert list(candidates(grants, {ResourceType.CLUSTER: names}, PrefixOptions())) == []

    @pytest.mark.parametrize(
        ("option", "value", "least"),
        [("minimum_names", 1, 2), ("minimum_length", 0, 1), ("maximum_price", -1, 0)],
    )
    def test_refuse_senseless_options(self, option, value, least):
        with pytest.raises(ValueError, match=f"{option} must be at least {least}, not {value}"):
            PrefixOptions(**{option: value})


bindings = st.builds(
    AclBinding,
    st.just(TOPIC),
    st.sampled_from(["a.x", "a.y", "a.", "a", "b", "*", "*"]),
    st.sampled_from([PatternType.LITERAL, PatternType.LITERAL, PatternType.PREFIXED]),
    st.sampled_from(["User:alice", "User:bob", "User:carol", "Group:staff", "User:*"]),
    st.sampled_from(["*", "*", "*", "10.0.0.1", "10.0.0.0/24", "::1"]),
    st.sampled_from([*OPERATIONS, AclOperation.ALL, AclOperation.ALL]),
    st.sampled_from([AclPermission.ALLOW, AclPermission.DENY]),
)
rulesets = st.builds(
    Ruleset,
    st.lists(bindings, min_size=2, max_size=12).map(ordered),
    st.sampled_from([frozenset(), frozenset(["User:root"])]),
    allow_everyone_if_no_acl_found=st.booleans(),
    cidr=st.booleans(),
)


@st.composite
def histories(draw):
    """Rules, the sessions of a cluster, and what was used of what the rules allow."""
    rules, sessions = draw(rulesets), draw(st.sampled_from([SESSIONS, MORE_SESSIONS]))
    now = rules.authorizer()
    allowed = [question for question in questions(sessions) if is_allowed(now, question)]
    used = draw(st.lists(st.sampled_from(allowed), max_size=15)) if allowed else []
    return rules, sessions, used


def questions(sessions):
    return product(sessions, HOSTS, OPERATIONS, [TOPIC], NAMES)


def is_allowed(authorizer, question) -> bool:
    principals, host, operation, resource_type, name = question
    session = Session(principals, host, "PLAINTEXT")
    return bool(authorizer.decide(session, Action(operation, resource_type, name)))


def hosts_of(principal, used) -> set[str]:
    return {host for principals, host, *_ in used if principal in principals}


def as_uses(used) -> list[SessionUse]:
    return [
        SessionUse(who, host, operation, kind, (name,)) for who, host, operation, kind, name in used
    ]


@settings(max_examples=examples(150), deadline=None)
@given(histories(), st.sets(st.sampled_from([each for session in SESSIONS for each in session])))
def test_all_uses_stay_allowed_and_nothing_denied_becomes_allowed(history, host_bound):
    rules, sessions, used = history
    hosts = {principal: hosts_of(principal, used) for principal in host_bound}
    grants = bound_to_hosts(needed(as_uses(used), rules), hosts)
    now, then = rules.authorizer(), guarded(grants, rules, sessions).authorizer()

    unmet = {each.name for each in grants.unmet}
    assert unmet <= {"*"}
    assert all(is_allowed(then, question) for question in used if question[-1] not in unmet)
    for question in questions(sessions):
        if is_allowed(then, question):
            assert is_allowed(now, question), question


@settings(max_examples=examples(100), deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(["User:a", "User:b"]),
            st.sampled_from([READ, WRITE, DESCRIBE]),
            st.text("ab.-", min_size=1, max_size=5),
        ),
        max_size=20,
    ),
    st.lists(st.text("ab.-", min_size=1, max_size=5), max_size=10),
    st.booleans(),
)
def test_a_prefix_allows_as_many_names_more_as_its_price(used, others, any_prefix):
    grants = needed([use(who, how, name) for who, how, name in used], None)
    names = {*others, *(name for _, _, name in used)}
    options = PrefixOptions(2, 1, 0, any_prefix)
    for one in candidates(grants, {TOPIC: names}, options):
        literal = Ruleset(ordered(grants.bindings())).authorizer()
        wider = Ruleset(ordered(consolidated(grants, [one]).bindings())).authorizer()
        session = Session((one.grantee.principal,), "10.0.0.1", "PLAINTEXT")
        action = [Action(one.operation, TOPIC, name) for name in sorted(names)]
        before = {each.resource_name for each in action if literal.decide(session, each)}
        after = {each.resource_name for each in action if wider.decide(session, each)}
        assert before <= after
        assert len(after - before) == one.price
        assert set(one.examples) <= after - before
        assert any_prefix or one.prefix[-1] in ".-"
        assert len(list(minimized(grants).bindings())) >= one.names
