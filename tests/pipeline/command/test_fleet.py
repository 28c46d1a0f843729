"""The command on the log of a fleet: few lines, and the answers of each cluster in the tables."""

import csv
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support import toolchain

toolchain.require_spark()

from tests.pipeline.small_log import event

PATIENCE = 600.0

pytestmark = [pytest.mark.apart, pytest.mark.timeout(2 * PATIENCE)]

CLUSTERS = [f"cluster-{number:02}-5KzTx0uQRmWvA" for number in range(40)]
WITHOUT_EVENTS, WITHOUT_ALLOWED, WITHOUT_ACLS, WITHOUT_PROPOSED, ANY_TOPIC_ONLY = CLUSTERS[3:8]
DRIFTING = {cluster for number, cluster in enumerate(CLUSTERS) if number % 2 and number > 8}

IN_FORCE = """
  - topic: orders.eu
    allow: [READ, DESCRIBE]
  - topic: pay.in
    allow: [WRITE]
  - topic: never
    allow: [WRITE]
    host: 10.0.0.0/8
- principal: User:dave
  rules:
  - topic: never
    allow: [READ]
"""
TRIED = """
  - topic: orders.eu
    allow: [READ]
"""


def lines_of(cluster: str, day: str) -> Iterator[str]:
    if cluster == ANY_TOPIC_ONLY:
        yield event(cluster, day, 1, "alice", "WRITE", "(any)")
        return
    if cluster != WITHOUT_ALLOWED:
        yield event(cluster, day, 1, "alice", "READ", "orders.eu")
        yield event(cluster, day, 2, "alice", "WRITE", "pay.in")
    for _ in range(2):
        yield event(cluster, day, 3, "bob", "READ", "orders.eu", allowed=False)
    if cluster in DRIFTING:
        # Allowed by an ACL that is gone by now.
        yield event(cluster, day, 4, "carol", "WRITE", "gone")


def policy(directory: Path, kind: str, cluster: str, rules: str) -> str:
    file = directory / f"{kind}-{cluster}.yaml"
    head = f"version: 1\ncluster: {cluster}\nacls:\n- principal: User:alice\n  rules:"
    file.write_text(head + rules)
    return str(file)


@pytest.fixture(scope="module")
def told(
    tmp_path_factory: pytest.TempPathFactory,
) -> "tuple[Path, subprocess.CompletedProcess[str]]":
    """The output of `aclbroker audit all`, and what it printed."""
    directory = tmp_path_factory.mktemp("fleet")
    lines = [
        line
        for day in ("2026-01-01", "2026-01-02")
        for cluster in CLUSTERS
        if cluster != WITHOUT_EVENTS
        for line in lines_of(cluster, day)
    ]
    (directory / "audit.jsonl").write_text("".join(f"{line}\n" for line in lines))
    words = []
    for cluster in CLUSTERS:
        if cluster != WITHOUT_ACLS:
            words += ["--acls", policy(directory, "acls", cluster, IN_FORCE)]
        if cluster != WITHOUT_PROPOSED:
            tried = policy(directory, "tried", cluster, TRIED)
            words += ["--proposed", tried, "--other", tried]
    command = [
        *(sys.executable, "-m", "aclbroker", "audit", "all"),
        *("--input", str(directory / "audit.jsonl"), "--output", str(directory / "out"), *words),
    ]
    found = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=False)
    # Jobs leave out the cluster without allowed events.
    assert found.returncode == 1, found.stderr
    return directory / "out", found


def clusters_in(file: Path, **wanted: str) -> set[str]:
    with file.open(newline="") as rows:
        return {
            row["cluster"]
            for row in csv.DictReader(rows)
            if all(row[name] == value for name, value in wanted.items())
        }


@pytest.mark.thorough
def test_forty_clusters_are_told_in_few_lines(
    told: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    place, process = told
    lines = [*process.stdout.splitlines(), *process.stderr.splitlines()]
    assert len(lines) <= 150, process.stdout
    for result in json.loads((place / "summary.json").read_text())["results"]:
        assert len(result["warnings"]) <= 8, result["warnings"]
        for text in (result["summary"], *result["warnings"]):
            assert sum(cluster in text for cluster in CLUSTERS) <= 5, text


@pytest.mark.thorough
def test_likely_causes_that_are_alike_in_many_clusters_are_one_warning(
    told: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    results = json.loads((told[0] / "summary.json").read_text())["results"]
    (what_if,) = (each for each in results if each["job"] == "what-if")
    (warning,) = (each for each in what_if["warnings"] if "10.0.0.0/8" in each)
    assert warning.endswith("; likewise in 36 other clusters")


def test_each_cluster_has_its_answers_in_the_tables_whatever_others_lack(
    told: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    place, process = told
    logged = set(CLUSTERS) - {WITHOUT_EVENTS}
    ordinary = logged - {WITHOUT_ALLOWED, WITHOUT_ACLS, WITHOUT_PROPOSED, ANY_TOPIC_ONLY}
    assert clusters_in(place / "matrix/use.csv") == logged
    assert clusters_in(place / "denials/denied.csv") == logged - {ANY_TOPIC_ONLY}
    assert clusters_in(place / "redundant/covered.csv") == logged - {WITHOUT_ACLS}
    assert clusters_in(place / "diff/acls.csv") >= ordinary
    flips = clusters_in(place / "what-if/flips.csv", direction="newly denied")
    assert flips >= ordinary
    assert WITHOUT_PROPOSED not in flips
    recommended = logged - DRIFTING - {WITHOUT_ALLOWED}
    assert clusters_in(place / "recommend/clusters.csv") == recommended
    kept = clusters_in(place / "recommend/changes.csv", change="kept")
    assert kept == recommended - {WITHOUT_ACLS}
    assert f"The log holds nothing of cluster {WITHOUT_EVENTS}" in process.stdout


def test_what_a_recommendation_says_of_a_fleet_is_true(
    told: "tuple[Path, subprocess.CompletedProcess[str]]",
) -> None:
    results = json.loads((told[0] / "summary.json").read_text())["results"]
    (found,) = (each for each in results if each["job"] == "recommend")
    warnings = "\n".join(found["warnings"])
    assert set(found["left_out"]) == DRIFTING | {WITHOUT_ALLOWED}
    assert "Of 39 clusters, 17 are left out." in found["summary"]
    assert f"the ACLs of cluster {WITHOUT_ACLS} are not given" in warnings
    # dave in each of them.
    assert "21 principals with ALLOWs asked for nothing" in warnings
    assert "In the 21 clusters whose ACLs are given it opens nothing" in found["summary"]
