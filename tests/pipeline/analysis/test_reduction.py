"""What becomes of the grants of a set of ACLs."""

import pytest

from aclbroker.pipeline.analysis.reduction import Reduction, reduction
from tests.pipeline.analysis.test_least_privilege import acls


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("allow READ topic t literal User:a", "allow READ topic t literal User:a", (1, 0, 0)),
        ("allow READ topic t literal User:a", "allow DESCRIBE topic t literal User:a", (0, 1, 0)),
        ("allow DESCRIBE topic t literal User:a", "allow READ topic t literal User:a", (1, 0, 0)),
        ("allow ALL topic t prefixed User:a", "allow READ topic t.x literal User:a", (0, 1, 0)),
        ("allow ALL topic * literal User:*", "allow READ topic t prefixed User:a", (0, 1, 0)),
        ("allow READ topic t.x literal User:a", "allow READ topic t prefixed User:a", (1, 0, 0)),
        ("allow READ topic * literal User:a", "allow READ topic * prefixed User:a", (0, 1, 0)),
        ("allow READ topic t literal User:a", "allow READ topic * literal User:*", (1, 0, 0)),
        ("allow READ topic t literal User:a", "allow READ topic t literal User:b", (0, 0, 1)),
        ("allow READ topic t literal User:a", "allow READ group t literal User:a", (0, 0, 1)),
        ("allow READ topic t literal User:a", "deny READ topic t literal User:a", (0, 0, 1)),
        ("deny READ topic t literal User:a", "deny READ topic t literal User:a", (0, 0, 0)),
        ("allow READ topic t literal User:a h", "allow READ topic t literal User:a", (1, 0, 0)),
    ],
)
def test_of_one_acl(before, after, expected):
    assert reduction(acls(before), acls(after)) == Reduction(*expected)


def test_counts_what_hosts_part_once():
    before = acls("allow READ topic t literal User:a h1", "allow READ topic t literal User:a h2")
    assert reduction(before, before) == Reduction(1, 0, 0)
    assert reduction(before, []) == Reduction(0, 0, 1)
