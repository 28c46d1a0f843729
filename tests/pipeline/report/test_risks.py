"""What a report begins with."""

from dataclasses import replace

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.interface.result import JobResult
from aclbroker.pipeline.report.content import AuditReport, LoggedCluster
from aclbroker.pipeline.report.risks import Risk, as_table, kinds, risks, risky_acls
from tests.pipeline.report.examples import ACL, REPORT, written
from tests.support.tables import check_each

ALL, ALTER, DESCRIBE = AclOperation.ALL, AclOperation.ALTER, AclOperation.DESCRIBE
CLUSTER, TOPIC, GROUP = ResourceType.CLUSTER, ResourceType.TOPIC, ResourceType.GROUP
ADMIN = ACL._replace(resource_type=CLUSTER, resource_name="kafka-cluster", operation=ALTER)
DENIED = ACL._replace(permission=AclPermission.DENY)
OPEN = ACL._replace(principal="User:*")


def report_of(*clusters: LoggedCluster, results: tuple[JobResult, ...] = ()) -> AuditReport:
    return replace(REPORT, results=list(results), clusters=list(clusters), stored={})


def cluster(
    now: list[AclBinding], then: list[AclBinding] | None = None, name: str = "c"
) -> LoggedCluster:
    proposed = None if then is None else Ruleset().with_acls(then)
    return LoggedCluster(name, 1, Ruleset().with_acls(now), proposed)


def told(report: AuditReport) -> list[Risk]:
    return risks(report, risky_acls(report))


NAMED = [
    (ACL, ()),
    (ADMIN, ("ALTER on the cluster",)),
    (ADMIN._replace(operation=ALL), ("ALTER on the cluster",)),
    (ADMIN._replace(operation=DESCRIBE), ()),
    (ACL._replace(operation=ALTER), ()),
    (ACL._replace(operation=ALL), ("ALL",)),
    (ACL._replace(operation=ALL, resource_name="*"), ("ALL on every name",)),
    (
        ACL._replace(operation=ALL, resource_name="*", pattern_type=PatternType.PREFIXED),
        ("ALL",),
    ),
    (OPEN, ("to User:*",)),
    (
        ADMIN._replace(operation=ALL, resource_name="*", principal="User:*"),
        ("ALTER on the cluster", "ALL on every name", "to User:*"),
    ),
    (ADMIN._replace(permission=AclPermission.DENY, principal="User:*"), ("DENY",)),
]


def test_an_acl_is_named_for_what_it_gives_or_takes():
    def check(case: tuple[AclBinding, tuple[str, ...]]) -> None:
        acl, expected = case
        assert kinds(acl) == expected

    check_each(NAMED, check)


def test_what_a_proposal_opens_stands_out_and_comes_before_what_is_in_force():
    report = report_of(cluster([ADMIN, DENIED, ACL], [ADMIN, OPEN]))
    assert [(risk.level, risk.number, risk.what) for risk in told(report)] == [
        ("high", 1, "ALLOWs to User:* added by the proposal"),
        ("high", 1, "DENYs removed by the proposal"),
        ("check", 1, "ALLOWs of ALTER on the cluster"),
        ("check", 1, "DENYs"),
    ]


def test_a_deny_that_a_proposal_adds_and_an_allow_that_goes_open_nothing():
    report = report_of(cluster([ACL, ADMIN], [ACL, DENIED]))
    assert [(risk.level, risk.number, risk.what) for risk in told(report)] == [
        ("check", 1, "ALLOWs of ALTER on the cluster removed by the proposal"),
        ("check", 1, "DENYs added by the proposal"),
        ("check", 1, "ALLOWs of ALTER on the cluster"),
    ]


def test_acls_that_a_proposal_changes_come_first_and_then_those_that_give_most():
    report = report_of(cluster([DENIED, ADMIN, OPEN], [DENIED, OPEN]), cluster([OPEN], name="d"))
    table = as_table(risky_acls(report))
    assert [column.name for column in table.columns] == ["Why", "Change", "Cluster", "ACL"]
    assert [row[:3] for row in table.rows()] == [
        ("ALTER on the cluster", "removed by the proposal", "c"),
        ("to User:*", "stays", "c"),
        ("to User:*", None, "d"),
        ("DENY", "stays", "c"),
    ]
    alone = as_table(risky_acls(report_of(cluster([OPEN]))))
    assert list(alone.rows()) == [
        ("to User:*", "ALLOW READ on TOPIC LITERAL orders to User:* from *")
    ]


def test_acls_of_a_cluster_whose_acls_in_force_are_unknown_are_not_added_by_the_proposal():
    (found,) = risky_acls(report_of(LoggedCluster("c", 1, None, Ruleset().with_acls([OPEN]))))
    assert found.change is None


def test_the_numbers_of_jobs_are_told_also_if_they_are_0():
    results = (
        JobResult("what-if", "t", "s", alarms={"newly-denied": 3}),
        JobResult("unused", "t", "s", alarms={"opened": 0, "unused": 7, "else": 1}),
    )
    assert [(risk.level, risk.number, risk.what, risk.job) for risk in
            told(report_of(results=results))] == [
        ("high", 3, "newly denied", "what-if"),
        ("check", 7, "unused", "unused"),
        ("check", 1, "else", "unused"),
        ("none", 0, "opened", "unused"),
    ]  # fmt: skip


def test_denies_that_are_proposed_to_go_and_clusters_that_are_open_are_told():
    table = written(("permission", "removable"), [
        ("DENY", True), ("DENY", True), ("DENY", False), ("ALLOW", True)
    ])  # fmt: skip
    is_open = LoggedCluster("c", 1, Ruleset(allow_everyone_if_no_acl_found=True))
    report = replace(report_of(is_open), stored={"unused/acls": table})
    assert [(risk.level, risk.number, risk.what) for risk in told(report)] == [
        ("high", 1, "clusters open without ACLs"),
        ("check", 2, "DENYs to remove"),
    ]


def test_principals_that_behave_like_intruders_come_first() -> None:
    suspects = written(
        ["cluster", "principal", "kind", "what", "events"],
        [
            ["c", "User:eve", "spike", "203 events on 2026-09-19, where 0 are usual", 203],
            ["c", "User:eve", "scan", "200 names, each once, such as x", 200],
            ["c", "User:bob", "scan", "20 names, each once, such as y", 20],
        ],
    )
    result = JobResult("denials", "", "", alarms={"suspects": 2})
    report = replace(
        report_of(cluster([ADMIN]), results=(result,)), stored={"denials/suspects": suspects}
    )
    assert [(each.level, each.number, each.what) for each in told(report)][:2] == [
        ("high", 2, "scans of many names"),
        ("high", 1, "days with far more denials than before"),
    ]
    assert told(report)[0].why == "User:eve was denied 200 names, each once, such as x, and 1 more"
    without = replace(report, stored={}, results=[replace(result, alarms={"suspects": 0})])
    assert [each.number for each in told(without) if each.what == "suspects"] == [0]


def test_new_hosts_and_spikes_of_the_job_anomalies_are_risks() -> None:
    hosts = written(["cluster", "principal", "host"], [["c", "User:a", "10.0.0.9"]])
    report = replace(report_of(cluster([])), stored={"anomalies/hosts": hosts})
    assert told(report)[0][:3] == ("high", 1, "new hosts")
