"""`aclbroker audit unused` from files to files: what it proposes protects whoever it protected."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.files.policy import parse_policy
from aclbroker.pipeline.acls.ruleset import Ruleset, ordered
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.interface.result import JobResult
from tests.pipeline.auditing import audited
from tests.pipeline.small_log import CLUSTER, event
from tests.pipeline.universe import Universe

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DAY = "2026-01-05"

ACLS = f"""\
version: 1
cluster: {CLUSTER}
acls:
- principal: User:alice
  rules:
  - topic: "*"
    allow: [ALL]
- principal: "User:*"
  rules:
  - topic: hr.
    pattern: prefixed
    deny: [ALL]
- principal: User:carol
  rules:
  - topic: old
    allow: [READ]
    deny: [WRITE]
"""


def unused(
    spark: "SparkSession",
    place: Path,
    acls: str,
    lines: list[str],
    *words: str,
    told: io.StringIO | None = None,
) -> JobResult:
    """Run the command on a log and a policy file; the output is in ``out``.

    What standard error would have is written to ``told``.
    """
    (place / "audit.jsonl").write_text("".join(f"{line}\n" for line in lines))
    (place / "acls.yaml").write_text(acls)
    log, policy = place / "audit.jsonl", place / "acls.yaml"
    return audited(spark, "unused", log, policy, place / "out", *words, told=told)


def test_a_deny_for_everybody_stays_that_only_those_without_any_allow_have_met(
    spark: "SparkSession", tmp_path: Path
) -> None:
    log = [
        event(CLUSTER, DAY, 9, "alice", "READ", "sales"),
        event(CLUSTER, DAY, 10, "bob", "READ", "hr.pay", allowed=False),
    ]
    result = unused(spark, tmp_path, ACLS, log)
    assert result.alarms == {"unused": 2, "drift": 0, "opened": 0}
    assert "2 of 4 ACLs can be removed together: that opens nothing (proven" in result.summary

    before = Ruleset(ordered(parse_policy(ACLS).acls))
    text = (tmp_path / "out" / "unused" / "remaining.yaml").read_text()
    after = Ruleset(ordered(parse_policy(text).acls))
    assert {acl.principal for acl in after.acls} == {"User:alice", "User:*"}
    universe = Universe(before.acls)
    closed = universe.allowed(before) - universe.allowed(after)
    assert universe.allowed(after) <= universe.allowed(before)
    assert {universe.requests[at].principals for at in closed} == {("User:carol",)}
    commands = (tmp_path / "out" / "unused" / "remaining.sh").read_text()
    assert "hr." not in commands
    page = (tmp_path / "out" / "unused.html").read_text()
    assert "DENYs that can go together with the ALLOWs" in page


def test_acls_on_subnets_without_the_option_for_them_are_refused_and_not_proposed(
    spark: "SparkSession", tmp_path: Path
) -> None:
    rules = "  rules:\n  - topic: sales\n    host: 10.0.0.0/8\n    allow: [READ]\n"
    acls = f"version: 1\ncluster: {CLUSTER}\nacls:\n"
    acls += "".join(f"- principal: User:{name}\n{rules}" for name in "abcdef")
    log = [event(CLUSTER, DAY, 9, name, "READ", "sales") for name in "abcdef"]
    with pytest.raises(InputError, match=r"Likeliest cause: .* 6 ACLs name subnets .* --cidr"):
        unused(spark, tmp_path, acls, log)
    assert not (tmp_path / "out" / "unused").exists()
    result = unused(spark, tmp_path, acls, log, "--cidr")
    assert result.alarms == {"unused": 0, "drift": 0, "opened": 0}


def test_a_cluster_without_allowed_events_does_not_keep_the_others_from_an_answer(
    spark: "SparkSession", tmp_path: Path
) -> None:
    log = [
        event(CLUSTER, DAY, 9, "alice", "READ", "sales"),
        event("at-default-level", DAY, 10, "bob", "READ", "sales", allowed=False),
    ]
    other = tmp_path / "other.yaml"
    other.write_text(ACLS.replace(CLUSTER, "at-default-level"))
    told = io.StringIO()
    result = unused(spark, tmp_path, ACLS, log, "--acls", str(other), told=told)
    assert "2 of 4 ACLs can be removed together" in result.summary
    reason = "cluster at-default-level is left out: its log has no allowed event"
    assert f"unused: {reason}" in told.getvalue()
    page = (tmp_path / "out" / "unused.html").read_text()
    assert "at-default-level is left out" in page
    (found,) = json.loads((tmp_path / "out" / "summary.json").read_text())["results"]
    assert list(found["left_out"]) == ["at-default-level"]
    text = (tmp_path / "out" / "unused" / "remaining-at-default-level.yaml").read_text()
    assert set(parse_policy(text).acls) == set(parse_policy(ACLS).acls)


def test_the_wide_acl_goes_and_several_narrow_ones_stay_for_an_idempotent_producer(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """Each of them allows its question whether it may write any topic."""
    acls = f"version: 1\ncluster: {CLUSTER}\nacls:\n"
    acls += "- principal: User:*\n  rules:\n  - topic: '*'\n    allow: [ALL]\n"
    acls += "- principal: User:alice\n  rules:\n"
    acls += "".join(f"  - topic: {name}\n    allow: [WRITE]\n" for name in ("sales", "pay", "new"))
    log = [event(CLUSTER, DAY, 9, "alice", "WRITE", name) for name in ("(any)", "sales", "pay")]
    result = unused(spark, tmp_path, acls, log)
    assert result.alarms == {"unused": 2, "drift": 0, "opened": 0}
    text = (tmp_path / "out" / "unused" / "remaining.yaml").read_text()
    left = {acl.resource_name for acl in parse_policy(text).acls}
    assert left == {"sales", "pay"}
    rows = spark.read.parquet(str(tmp_path / "out" / "unused" / "acls")).collect()
    assert {row["use"] for row in rows} == {"never decisive"}
    (new,) = (row for row in rows if row["resource_name"] == "new")
    assert (new["events"], new["goes_because"]) == (
        1,
        "Others that stay allow what was used of it.",
    )


def test_a_wide_acl_that_the_log_names_goes_only_for_a_narrow_one_that_allows_the_same(
    spark: "SparkSession", tmp_path: Path
) -> None:
    """An authorizer names one of those that allow an event, and which one is nothing to go by."""
    acls = f"version: 1\ncluster: {CLUSTER}\nacls:\n- principal: User:alice\n  rules:\n"
    acls += "  - topic: sales\n    allow: [ALL, READ]\n  - topic: pay\n    allow: [ALL, READ]\n"
    asked = [("READ", "sales", "ALL"), ("READ", "pay", "READ"), ("WRITE", "pay", "ALL")]
    log = [
        event(CLUSTER, DAY, 9, "alice", operation, topic, acl_operation=named)
        for operation, topic, named in asked
    ]
    result = unused(spark, tmp_path, acls, log)
    assert result.alarms["unused"] == 2
    text = (tmp_path / "out" / "unused" / "remaining.yaml").read_text()
    left = {(acl.resource_name, acl.operation.name) for acl in parse_policy(text).acls}
    assert left == {("sales", "READ"), ("pay", "ALL")}
