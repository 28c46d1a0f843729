"""What `recommend` warns of: what is said must be true, and said once for all clusters."""

from datetime import date

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.pipeline.acls.ruleset import Ruleset, changes, ordered
from aclbroker.pipeline.interface.inputs import Window
from aclbroker.pipeline.jobs.recommend.doubts import (
    PrincipalAcls,
    about_clusters,
    about_flips,
    about_silent,
    principals_of,
)
from aclbroker.pipeline.jobs.recommend.replayed import ReplayCounts
from tests.pipeline.analysis.test_least_privilege import acls

WINDOW = Window(date(2026, 1, 1), date(2026, 1, 9), 10, 10, 0, 0)
NOTHING = ReplayCounts(*[0] * len(ReplayCounts._fields))

NOW = Ruleset(
    ordered(
        acls(
            "allow READ topic a literal User:gone",
            "allow READ topic b literal User:gone",
            "allow READ topic closed literal User:keeper",
            "allow READ topic c literal User:keeper",
            "deny READ topic d literal User:denied",
            "allow READ topic e literal User:here",
            "allow ALL topic * literal User:root",
            "allow READ topic f literal User:*",
            "allow READ topic g literal User:still",
        )
    ),
    super_users=frozenset(["User:root"]),
)
RECOMMENDED = NOW.with_acls(
    acls(
        "allow READ topic closed literal User:keeper",
        "deny READ topic d literal User:denied",
        "allow READ topic g literal User:still",
    )
)


def silent() -> list[PrincipalAcls]:
    found = principals_of("c", changes(NOW.acls, RECOMMENDED.acls), {"User:here", "User:root"})
    return [each for each in found if each.is_silent]


def test_only_those_lose_something_who_have_an_allow_that_goes_and_asked_for_nothing():
    assert [each.principal for each in silent()] == ["User:gone", "User:keeper"]


def test_who_keeps_an_acl_is_not_said_to_lose_all_of_them():
    gone, keeper = silent()
    (warning,) = about_silent([gone], WINDOW)
    assert warning.startswith("1 principal with ALLOWs asked for nothing from 2026-01-01 to 20")
    assert "would lose all their ALLOWs. Who works" in warning
    (warning,) = about_silent([gone, keeper], WINDOW)
    assert "all their ALLOWs; 1 of them only some, since others keep resources closed" in warning
    assert not list(about_silent([], WINDOW))


def test_principals_of_a_cluster_without_rules_have_recommended_acls_alone():
    added = changes((), acls("allow READ topic a literal User:a"))
    (found,) = principals_of("c", added, ())
    assert found == PrincipalAcls("c", "User:a", 0, 1, 0, 0, is_seen=False)
    assert not found.is_silent


def test_clusters_of_which_something_is_missing_are_told_together():
    counts = {f"c{number:02}": NOTHING._replace(mixed_events=2) for number in range(40)}
    known = [f"k{number}" for number in range(9)]
    unknown, missing = about_clusters(counts, known)
    assert unknown.startswith("the ACLs of clusters c00, c01, c02, c03, c04 and 35 more are not")
    assert "(80 events are of questions that it answers both ways)" in unknown
    assert missing == (
        "no recommendation for clusters k0, k1, k2, k3, k4 and 4 more: the log has no event there"
    )
    assert not list(about_clusters({"c": NOTHING}, ["c"]))


def test_flips_are_added_up_over_clusters():
    counts = {"a": NOTHING._replace(lost_questions=1), "b": NOTHING._replace(gained_questions=1)}
    (warning,) = about_flips(counts)
    assert warning.startswith("2 questions would be decided otherwise")
    assert not list(about_flips({"a": NOTHING}))
