"""How two sides differ: as sets, in policy files, and in what they decide of the log."""

from dataclasses import replace
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import read_policy
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.jobs.diff import run
from tests.acl.examples import WRITE, allow, deny
from tests.pipeline.use import figures_of, inputs_of, table_of, used


def acls(*given_acls, **settings):
    return Ruleset(**settings).with_acls(given_acls)


SAME = allow("User:bob", host="::1")
SAME_REWRITTEN = allow("User:bob", host="0:0:0:0:0:0:0:1")
EU = acls(allow(), allow(operation=WRITE), allow(name="eu-only"), SAME)
US = acls(deny(), allow(operation=WRITE, host="10.0.0.9"), SAME_REWRITTEN)

ROWS = [
    used(cluster="eu", events=5),
    used(cluster="eu", day=1, operation="WRITE", host="10.0.0.9", events=2),
    used(cluster="eu", principal="User:bob", host="::1"),
]


@pytest.fixture(scope="module")
def inputs(spark, tmp_path_factory):
    place = tmp_path_factory.mktemp("diff")
    return inputs_of(spark, place, ROWS, days=2, current={"eu": EU}, other={"us": US})


@pytest.fixture(scope="module")
def result(inputs):
    return run(inputs)


def test_single_clusters_are_compared_whatever_their_names(result):
    assert result.summary == (
        "The other side lacks 3 ACLs and has 2 that the current one lacks. "
        "Of 8 events the other ACLs newly deny 5 (1 principal) "
        "and newly allow 0 (0 principals)."
    )
    figures = figures_of(result)
    assert (figures["Changed permission"], figures["Changed host"]) == (1, 1)


def test_the_difference_is_written_as_policy_files(inputs, result):
    place = Path(inputs.output.place)
    removed = read_policy(place / "diff" / "only-current.yaml")
    assert set(removed.acls) == {allow(), allow(operation=WRITE), allow(name="eu-only")}
    added = read_policy(place / "diff" / "only-other.yaml")
    assert set(added.acls) == {deny(), allow(operation=WRITE, host="10.0.0.9")}
    assert {"diff/only-current.yaml", "diff/only-other.yaml", "diff/flips"} <= result.outputs.keys()


def test_tables_show_what_changed_and_for_whom(result):
    assert [tuple(row.values()) for row in table_of(result, "ACLs that changed")] == [
        (
            "eu",
            "permission",
            "ALLOW READ on TOPIC LITERAL orders to User:alice from *",
            "DENY READ on TOPIC LITERAL orders to User:alice from *",
        ),
        (
            "eu",
            "host",
            "ALLOW WRITE on TOPIC LITERAL orders to User:alice from *",
            "ALLOW WRITE on TOPIC LITERAL orders to User:alice from 10.0.0.9",
        ),
    ]
    assert [tuple(row.values()) for row in table_of(result, "Differences by principal")] == [
        ("eu", "User:alice", 3, 2)
    ]
    assert table_of(result, "Newly denied")[0]["After"].startswith("DENY READ")


def test_without_a_log_of_these_clusters_nothing_is_replayed(inputs):
    other_log = replace(inputs, current={"de": acls(SAME)}, other={"us": replace(US, cidr=True)})
    result = run(other_log)
    assert result.warnings == ["the log is of none of these clusters: nothing was replayed"]
    assert [tuple(row.values()) for row in table_of(result, "Settings that differ")] == [
        ("de", "subnets as hosts of ACLs", "false", "true")
    ]


def test_clusters_are_matched_by_name(inputs):
    both = replace(inputs, current={"a": EU, "b": EU}, other={"b": US, "c": US})
    result = run(both)
    assert result.warnings[:2] == [
        "only the current ACLs are of cluster a: left out",
        "only the other ACLs are of cluster c: left out",
    ]
    assert figures_of(result)["ACLs of the current side"] == 4


def test_sides_that_cannot_be_matched_are_refused(inputs):
    with pytest.raises(InputError, match="the other one is missing"):
        run(replace(inputs, other={}))
    with pytest.raises(InputError, match="no name is on both sides: the current ACLs are of a, b"):
        run(replace(inputs, current={"a": EU, "b": EU}))
