"""The benchmarks run, and show what they measured; how fast anything is, is not tested."""

from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest

from aclbroker.acl.bindings import AclPermission, PatternType
from aclbroker.acl.files.listing import parse_listing
from benchmarks import in_process, plot, question_sets, questions, report
from benchmarks.results import Results
from benchmarks.rows import KAFKA, KFAKE, OURS, RATE, Row
from benchmarks.running import Options

PNG = b"\x89PNG\r\n\x1a\n"
COST = Row("describe-match", "Wire", "DescribeAcls", "ms", acls=10_000, target=2.0, note="A note.")
SPEED = Row("creations", "Wire", "CreateAcls", RATE, target=50)
MEMORY = Row("describe-memory", "Wire", "peak memory", "MiB", beside=COST.key)


@pytest.fixture
def results() -> Results:
    """Two rows, of which the second knows no peer."""
    results = Results({"command": "make bench", "machine": "2 cores"})
    for ours, kafka in ((1.0, 5.0), (3.0, 9.0), (2.0, 8.0)):
        results.add([COST], OURS, [ours])
        results.add([COST], KAFKA, [kafka])
    results.add([SPEED], OURS, [40.0])
    return results


def test_in_process_rows_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "RESOURCES", (20, 40))
    results = Results({})

    in_process.measure(results, Options(rounds=2, peers=()))

    assert list(results.figures) == [row.key for row in in_process.rows()]
    assert all(len(each.rounds[OURS]) == 2 for each in results.figures.values())


def test_only_what_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(in_process, "RESOURCES", (100,))
    results = Results({})

    in_process.measure(results, Options(rounds=1, only=("by-type",), peers=()))

    assert list(results.figures) == ["by-type-1k", "by-type-changed-1k"]


@pytest.mark.thorough
def test_questions_of_every_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(questions, "ACLS", {200: 2, 400: 1})
    results = Results({})

    questions.measure(results, Options(rounds=2, peers=()))

    assert list(results.figures) == [row.key for row in questions.rows()]
    rounds = {row.row.acls: len(row.rounds[OURS]) for row in results.figures.values()}
    assert rounds == {200: 2, 400: 1}


def test_the_sets_that_questions_are_asked_about_are_as_they_are_described() -> None:
    acls = question_sets.acls(20_000, seed=1)
    assert len(set(acls)) == 20_000
    assert acls == question_sets.acls(20_000, seed=1)
    of_everyone = sum(acl.principal == "User:*" for acl in acls)
    prefixes = sum(acl.pattern_type is PatternType.PREFIXED for acl in acls)
    denials = sum(acl.permission is AclPermission.DENY for acl in acls)
    assert len({acl.principal for acl in acls}) == question_sets.PRINCIPALS + 1
    assert 100 < of_everyone < 300
    assert 3_500 < prefixes < 4_500
    assert 800 < denials < 1_200


def test_the_listing_is_read_back_as_the_same_acls() -> None:
    acls, listing = question_sets.acls(500, seed=1), StringIO()
    question_sets.write_listing(acls, listing)
    assert set(parse_listing(listing.getvalue(), "listing")) == set(acls)


def test_the_ratio_is_that_of_single_rounds(results: Results) -> None:
    assert results.figures[COST.key].advantages(KAFKA) == [3.0, 4.0, 5.0]
    assert SPEED.advantage(ours=40, peer=10) == 4


def test_table_and_page(results: Results) -> None:
    table = report.text(results)
    page = report.page(results)

    for shown in (table, page):
        assert "2.00 ms" in shown
        assert "4.00x (3.00-5.00)" in shown
        assert "2 cores" in shown
    assert "| <= 2.00 ms | reached |" in page
    assert "| >= 50.0 /s | missed |" in page
    assert "- DescribeAcls: A note." in page


def test_what_stands_beside_a_row_has_a_column_for_both_sides(results: Results) -> None:
    results.add([MEMORY], OURS, [3.0])
    results.add([MEMORY], KAFKA, [600.0])
    header, cost, speed = (
        line.split(" | ")
        for line in report.page(results).splitlines()
        if " MiB" in line or "aclbroker | Kafka" in line or "CreateAcls |" in line
    )

    assert header[-1] == "peak memory |"
    assert cost[0] == "| DescribeAcls, 10,000 ACLs"
    assert cost[-1] == "3.00 MiB, 600 MiB |"
    assert speed[-1] == "- |"


def test_only_peers_that_take_part_have_columns(results: Results) -> None:
    assert "kfake" not in report.text(results)
    results.add([SPEED], KFAKE, [20.0])
    assert "kfake" in report.text(results)


def test_saved_results_give_the_same_page(results: Results, tmp_path: Path) -> None:
    results.save(tmp_path / "results.json")

    assert report.page(Results.load(tmp_path / "results.json")) == report.page(results)


def test_a_section_of_another_run_stands_beside_the_others_and_names_its_run(
    results: Results, tmp_path: Path
) -> None:
    run = {"command": "bench again", "date": "today", "load": "0.1", "aclbroker": "0.2"}
    results.add([Row("start", "Processes", "start", "s")], OURS, [0.5])
    other = Results(run)
    other.add([replace(COST, name="again", title="asked again")], OURS, [7.0])
    results.take(other)
    results.save(tmp_path / "results.json")
    page = report.page(Results.load(tmp_path / "results.json"))
    assert "asked again" in page
    assert "DescribeAcls" not in page
    assert "| start |" in page
    assert "Measured by another run: `bench again`; today; 0.1; 0.2." in page


@pytest.mark.thorough
def test_plot(results: Results, tmp_path: Path) -> None:
    plot.draw(results, tmp_path / "growth.png")

    assert (tmp_path / "growth.png").read_bytes().startswith(PNG)
