"""What many tasks sum up becomes little before it comes to one place."""

from datetime import date

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.usage.summary import MOST_NAMED, Summary, combined

DAY = date(2026, 1, 1)


def summary(*users: str | None, events: int = 1, lines: int = 0) -> pa.Table:
    """What a task says that read so many events of each of some super users, and other lines."""
    found = Summary()
    size = len(users)
    found.add(
        pa.table(
            {
                "cluster": ["one"] * size,
                "day": pa.array([DAY] * size, pa.date32()),
                "allowed": [True] * size,
                "rule": ["SuperUser" if user else "MatchingAcl" for user in users],
                "principal": [user or "User:a" for user in users],
                "other_principals": pa.nulls(size, pa.string()),
                "events": [events] * size,
            }
        )
    )
    found.add_lines([(DAY, "odd"), (None, "odd")] * lines)
    return found.table()


def rows(*tables: pa.Table) -> set[tuple[object, ...]]:
    (found,) = combined(tables)
    said = {tuple(row.values()) for row in found.to_pylist()}
    assert len(said) == found.num_rows
    return said


def test_equal_rows_of_many_tasks_become_one():
    tasks = [summary("User:root", None, events=2, lines=3) for _ in range(50)]
    assert rows(*tasks) == {
        ("one", DAY, True, "User:root", 100, None),
        ("one", DAY, True, None, 100, None),
        (None, DAY, None, None, 150, "odd"),
        (None, None, None, None, 150, "odd"),
    }


def test_few_are_named_however_many_each_task_names():
    tasks = [summary(*(f"User:{task}-{n}" for n in range(900))) for task in range(5)]
    found = rows(*tasks, summary("User:busiest", events=7), summary("User:busiest"))
    assert sum(name is not None for _, _, _, name, _, _ in found) == MOST_NAMED
    assert ("one", DAY, True, "User:busiest", 8, None) in found
