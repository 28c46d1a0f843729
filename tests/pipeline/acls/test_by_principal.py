"""Sets of ACLs that are gone through one principal's after the other."""

from random import Random

from aclbroker.pipeline.acls.by_principal import (
    Changed,
    Grouped,
    Packed,
    every,
    every_change,
    packed_acls,
    unpacked_acls,
)
from aclbroker.pipeline.acls.ruleset import changes, ordered
from tests.pipeline.analysis.test_least_privilege import acls
from tests.pipeline.random_acls import random_acls


def test_what_is_packed_is_there_again():
    found = acls(
        "allow READ topic t literal User:a",
        "allow WRITE group * prefixed User:a 10.0.0.1",
        "deny ALL cluster kafka-cluster literal User:a ::1",
    )
    odd = [found[0]._replace(resource_name=name) for name in ("", 'é" \\\n', "\U0001f600")]
    for each in (found, sorted(odd), []):
        assert unpacked_acls("User:a", packed_acls(each)) == each
    assert len(packed_acls(found * 1000)) < 10 * len(found * 1000)


def test_a_set_says_the_same_packed_and_in_memory():
    random = Random(7)
    for _ in range(20):
        before, after = (random_acls(random, 20) for _ in range(2))
        packed = Packed(
            {
                who: packed_acls(Grouped(after[::2]).of(who))
                for who in Grouped(after[::2]).principals
            },
            after[1::2],
        )
        assert ordered(every(packed)) == ordered(every(Grouped(after))) == after
        assert set(packed.principals) == {acl.principal for acl in after}
        assert packed.of("User:nobody") == ()
        found = list(every_change(Grouped(before), packed))
        assert sorted(found) == sorted(changes(before, after))
        added = [acl for acl, change in changes(before, after) if change == "added"]
        assert ordered(every(Changed(Grouped(before), packed, "added"))) == ordered(added)
