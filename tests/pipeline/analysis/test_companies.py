"""Which principals come together in sessions."""

from hypothesis import given
from hypothesis import strategies as st

from aclbroker.pipeline.analysis.companies import companies

SESSIONS = st.lists(st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=3), max_size=12)


def test_who_has_a_group_in_common_is_of_one_company():
    found = companies(
        [("User:a", "Group:g"), ("User:b", "Group:h"), ("User:c", "Group:g"), ("User:d",)]
    )
    assert found == {
        **dict.fromkeys(("User:a", "User:c", "Group:g"), "Group:g"),
        **dict.fromkeys(("User:b", "Group:h"), "Group:h"),
    }


def test_a_session_of_two_groups_makes_their_companies_one():
    found = companies([("c", "g"), ("d", "h"), ("e", "g", "h"), ("b", "d")])
    assert set(found.values()) == {"b"}
    assert found.keys() == set("bcdegh")


@given(SESSIONS)
def test_of_any_sessions_the_smallest_sets_that_no_session_crosses_are_found(sessions):
    expected = {each: {each} for session in sessions if len(session) > 1 for each in session}
    for _ in expected:
        for session in sessions:
            together = set().union(*(expected.get(each, set()) for each in session))
            expected.update(dict.fromkeys(together, together))
    assert companies(sessions) == {each: min(found) for each, found in expected.items()}
