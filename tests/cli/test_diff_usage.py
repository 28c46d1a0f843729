"""`aclbroker diff --usage`: which of the lost rights were used, how much, and by whom."""

import csv
import io
import json
import sys
from datetime import date, timedelta

import pytest
import yaml

from aclbroker.acl.files.policy import Policy, write_policy
from aclbroker.cli.arguments import parse_arguments
from aclbroker.cli.questions import QuestionCommand
from tests.acl.examples import DESCRIBE, PREFIXED, WRITE, allow, deny

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

LAST = date(2026, 3, 31)
TEXTS = ("listener", "principal", "other_principals", "host", "operation", "resource_type")
SCHEMA = pa.schema(
    [
        *(pa.field(name, pa.string()) for name in (*TEXTS, "resource_name", "api", "rule")),
        pa.field("allowed", pa.bool_()),
        pa.field("quiet", pa.bool_()),
        pa.field("events", pa.int64()),
    ]
)
ROW = {
    "listener": "SASL",
    "principal": "User:alice",
    "host": "10.0.0.1",
    "operation": "READ",
    "resource_type": "TOPIC",
    "resource_name": "orders",
    "allowed": True,
    "quiet": False,
    "events": 1,
}


def use(before=0, cluster="c1", **values):
    """A row of usage, so many days before the last."""
    return LAST - timedelta(days=before), cluster, ROW | values


@pytest.fixture
def tables(tmp_path):
    """Write rows as `ingest` does; return the directory."""

    def tables(*rows):
        for number, (day, cluster, row) in enumerate(rows):
            place = (
                tmp_path
                / "tables"
                / "usage_daily"
                / f"cluster={cluster}"
                / f"day={day}"
                / "batch=a-1"
            )
            place.mkdir(parents=True, exist_ok=True)
            parquet.write_table(
                pa.Table.from_pylist([row], SCHEMA), place / f"part-{number}.parquet"
            )
        return str(tmp_path / "tables")

    return tables


@pytest.fixture
def diff(tmp_path, capsys):
    """Compare two sets of ACLs; return status, the lines of the answer, and standard error."""

    def diff(old, new, *words):
        for name, acls in (("old", old), ("new", new)):
            write_policy(Policy(acls), tmp_path / f"{name}.yaml")
        files = (str(tmp_path / "old.yaml"), str(tmp_path / "new.yaml"))
        command = parse_arguments(["diff", *files, *words])
        assert isinstance(command, QuestionCommand)
        status = command.run()
        out, err = capsys.readouterr()
        return status, out.splitlines(), err

    return diff


OLD = [allow("User:*", name="orders", pattern_type=PREFIXED), allow("User:bob", WRITE, "pay")]
NEW = [allow("User:*", name="orders.", pattern_type=PREFIXED), allow("User:eve", WRITE, "new")]


def test_each_lost_right_says_how_much_it_was_used_and_the_last_line_says_it_of_all(diff, tables):
    place = tables(
        use(events=1200),
        use(3, principal="User:carol", host="10.0.0.2", events=34),
        use(operation="DESCRIBE", events=5, quiet=True),
        use(resource_name="orders.eu", events=1000),
        use(resource_name="other", events=1000),
        use(allowed=False, events=1000),
        use(resource_name=None, events=1000),
        use(host="10.0.0.3", principal="User:carol"),
    )
    status, lines, err = diff(OLD, NEW, "--usage", place)
    assert (status, err) == (1, "")
    assert lines == [
        "- User:bob: WRITE, DESCRIBE on TOPIC LITERAL pay from any host",
        "    such as User:bob from 192.0.2.1: WRITE on TOPIC pay",
        "+ User:eve: WRITE, DESCRIBE on TOPIC LITERAL new from any host",
        "    such as User:eve from 192.0.2.1: WRITE on TOPIC new",
        "- everyone: READ, DESCRIBE on TOPIC PREFIXED orders but PREFIXED orders. from any host",
        "    such as User:anybody from 192.0.2.1: READ on TOPIC ordersexample",
        "    used: 1,240 events, the last on 2026-03-31, by User:alice, User:carol; "
        "such as User:alice from 10.0.0.1: READ on TOPIC orders",
        "lost: 2 rights, 1 of them used in the 90 days to 2026-03-31 by User:alice, User:carol",
    ]


def test_use_is_looked_at_for_some_days_to_the_last_one_of_the_tables(diff, tables):
    place = tables(use(90, events=100), use(89, events=10), use(resource_name="other"))
    used = [line for line in diff(OLD, NEW, "--usage", place)[1] if "used" in line]
    assert used[0].startswith("    used: 10 events, the last on 2026-01-01")
    used = [line for line in diff(OLD, NEW, "--usage", place, "--days", "91")[1] if "used" in line]
    assert used[0].startswith("    used: 110 events")
    assert diff(OLD, NEW, "--usage", place, "--days", "89")[1][-1] == (
        "lost: 2 rights, none of them used in the 89 days to 2026-03-31"
    )


def test_what_only_filtered_answers_is_told_so(diff, tables):
    place = tables(use(operation="DESCRIBE", quiet=True))
    lines = diff(OLD, NEW, "--usage", place)[1]
    assert any("used: 1 event that only filtered answers, the last on" in line for line in lines)


def test_of_many_users_the_most_frequent_are_named(diff, tables):
    place = tables(*(use(principal=f"User:{n}", events=n) for n in range(1, 8)))
    lines = diff(OLD, NEW, "--usage", place)[1]
    assert lines[-1].endswith("by User:7, User:6, User:5 and 4 more")


def test_sets_that_allow_the_same_lose_nothing(diff, tables):
    place = tables(use())
    same = [*OLD, allow("User:*", DESCRIBE, "orders")]
    assert diff(OLD, same, "--usage", place) == (0, ["no difference", "lost: nothing"], "")
    gained = diff(OLD, [*OLD, allow("User:*", WRITE, "orders")], "--usage", place)
    assert (gained[0], gained[1][-1]) == (1, "lost: nothing")


@pytest.mark.parametrize(
    ("row", "end"),
    [
        (use(events=2), "lost: 1 right, used in the 90 days to 2026-03-31 by User:alice"),
        (use(resource_name="x"), "lost: 1 right, not used in the 90 days to 2026-03-31"),
    ],
)
def test_one_right_is_told_as_one(diff, tables, row, end):
    assert diff([allow(), allow(name="x")], [allow(name="x")], "--usage", tables(row))[1][-1] == end


def test_hosts_decide_which_right_was_used(diff, tables):
    old = [allow(host="10.0.0.1"), allow(host="10.0.1.0/24")]
    place = tables(use(host="10.0.1.7", events=3), use(host="10.0.0.1", events=8), use(host="::1"))
    lines = diff(old, [old[0]], "--usage", place, "--cidr")[1]
    assert lines[2:] == [
        "    used: 3 events, the last on 2026-03-31, by User:alice; "
        "such as User:alice from 10.0.1.7: READ on TOPIC orders",
        "lost: 1 right, used in the 90 days to 2026-03-31 by User:alice",
    ]


def test_a_right_that_a_session_has_by_a_group_is_the_groups(diff, tables):
    place = tables(use(other_principals='["Group:staff"]', events=4))
    status, lines, _ = diff([allow("Group:staff")], [], "--usage", place)
    assert (status, lines[0].startswith("- Group:staff: READ")) == (1, True)
    assert lines[2].startswith("    used: 4 events, the last on 2026-03-31, by User:alice;")


def test_what_is_lost_to_principals_together_alone_is_told_besides(diff, tables):
    """Alice keeps her right, and so does who is in the group without being denied."""
    place = tables(use(other_principals='["Group:staff"]', events=4))
    new = [allow(), deny("Group:staff"), allow("Group:staff", DESCRIBE)]
    old = [allow(), allow("Group:staff", DESCRIBE)]
    status, lines, _ = diff(old, new, "--usage", place)
    assert (status, lines) == (
        1,
        [
            "- User:alice with Group:staff: READ on TOPIC LITERAL orders from 10.0.0.1",
            "    used: 4 events, the last on 2026-03-31, by User:alice; "
            "such as User:alice from 10.0.0.1: READ on TOPIC orders",
            "lost: nothing by one principal alone",
        ],
    )


def test_what_any_topic_would_do_for_is_told_besides(diff, tables):
    place = tables(use(operation="WRITE", resource_name="(any)", events=6), use())
    old = [allow(operation=WRITE, name="gone")]
    lines = diff(old, [], "--usage", place)[1]
    assert lines[2] == "- User:alice: WRITE on TOPIC LITERAL (any) from 10.0.0.1"
    assert lines[-1] == "lost: 1 right, not used in the 90 days to 2026-03-31"
    lines = diff([allow(operation=WRITE, name="*")], [], "--usage", place)[1]
    assert lines[2] == "- User:alice: WRITE on TOPIC LITERAL (any) from 10.0.0.1"
    kept = [allow(operation=WRITE, name="kept")]
    assert not any("(any)" in line for line in diff([*old, *kept], kept, "--usage", place)[1])


def test_programs_get_the_use_with_each_row(diff, tables):
    place = tables(use(events=7), use(1, principal="User:bob", events=9, quiet=True))
    words = ("--usage", place, "--output")
    rows = json.loads("\n".join(diff(OLD, NEW, *words, "json")[1]))
    by_change = {(row["change"], row["name"]): row for row in rows}
    assert {
        key: by_change["lost", "orders"][key] for key in rows[0] if key.startswith("used_")
    } == {
        "used_events": 16,
        "used_loud_events": 7,
        "used_last_day": "2026-03-31",
        "used_by": ["User:bob", "User:alice"],
        "used_example": "User:bob from 10.0.0.1: READ on TOPIC orders",
    }
    assert by_change["gained", "new"]["used_events"] == 0
    assert by_change["lost", "pay"]["used_last_day"] is None
    assert yaml.safe_load("\n".join(diff(OLD, NEW, *words, "yaml")[1])) == rows
    found = list(csv.DictReader(io.StringIO("\n".join(diff(OLD, NEW, *words, "csv")[1]))))
    assert [row["used_by"] for row in found] == ["", "", "User:bob; User:alice"]


def test_of_several_clusters_one_is_to_be_named(diff, tables):
    place = tables(use(events=5), use(cluster="c%2F2", events=7))
    assert diff(OLD, NEW, "--usage", place)[::2] == (
        2,
        "aclbroker: the usage is of several clusters: there are c/2, c1; name one with --cluster\n",
    )
    lines = diff(OLD, NEW, "--usage", place, "--cluster", "c/2")[1]
    assert any("used: 7 events" in line for line in lines)
    assert (
        "no usage of cluster 'c3': there are c/2, c1"
        in (diff(OLD, NEW, "--usage", place, "--cluster", "c3")[2])
    )


def test_what_is_being_written_is_not_read(diff, tables, tmp_path):
    place = tables(use(events=5))
    half = tmp_path / "tables" / "usage_daily" / "_temporary" / "cluster=c1" / "day=2026-03-31"
    half.mkdir(parents=True)
    (half / "part-1.parquet").write_text("half")
    assert any("used: 5 events" in line for line in diff(OLD, NEW, "--usage", place)[1])


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (("--usage", "no/such/place"), "no/such/place: there is no table usage_daily"),
        (("--days", "3"), "name it with --usage"),
        (("--cluster", "c1"), "name it with --usage"),
    ],
)
def test_a_mistake_is_named(diff, words, problem):
    status, lines, err = diff(OLD, NEW, *words)
    assert (status, lines) == (2, [])
    assert problem in err


def test_a_file_that_is_no_parquet_is_named(diff, tables, tmp_path):
    place = tables(use())
    [file] = (tmp_path / "tables").rglob("*.parquet")
    file.write_text("nonsense")
    status, _, err = diff(OLD, NEW, "--usage", place)
    assert status == 2
    assert f"{file}: " in err


@pytest.mark.parametrize("days", ["0", "-1", "many", "100000"])
def test_a_number_of_days_is_above_0(capsys, days):
    with pytest.raises(SystemExit):
        parse_arguments(["diff", "a", "b", "--usage", "t", "--days", days])
    assert "is no number of days above 0" in capsys.readouterr().err


def test_without_pyarrow_the_extra_is_named(diff, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for name in [name for name in sys.modules if name.startswith("aclbroker.pipeline.usage.")]:
        monkeypatch.delitem(sys.modules, name)
    status, _, err = diff(OLD, NEW, "--usage", "tables")
    assert status == 2
    assert "pip install '.[audit]'" in err
    assert diff(OLD, NEW)[0] == 1


def test_days_with_denials_alone_are_named_because_use_is_not_known_then(diff, tables):
    place = tables(use(5, allowed=False), use(4, allowed=False), use(), use(allowed=False))
    old = [allow(operation=WRITE, name="gone")]
    _, lines, note = diff(old, [], "--usage", place)
    assert lines[-1] == "lost: 1 right, not used in the 90 days to 2026-03-31"
    assert note.startswith("on 2 days of the log (2026-03-26, 2026-03-27) no allowed event")
    assert diff(old, [], "--usage", place, "--days", "4")[2] == ""
