"""Tables of Arrow: grouped, taken apart, and packed."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import cycle, islice, pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.usage import counting, grouping, packing
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, grouped
from aclbroker.pipeline.usage.packing import (
    compact,
    compacted,
    decoded,
    packed,
    parted,
    parts_of,
    unpacked,
)

SCHEMA = pa.schema(
    [
        ("name", pa.string()),
        ("other", pa.string()),
        ("flag", pa.bool_()),
        ("day", pa.date32()),
        ("events", pa.int64()),
        ("first", pa.timestamp("us", tz="UTC")),
        ("example", pa.string()),
    ]
)
KEYS = ("name", "other", "flag", "day")
COUNTS = {"events": "sum", "first": "min", "example": "min"}
ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "name": st.sampled_from(["", "a", "b", "\u00fc", None]),
            "other": st.sampled_from(["a", "\U0001f600", None]),
            "flag": st.sampled_from([True, False, None]),
            "day": st.sampled_from([-1, 0, 20_000, None]),
            "events": st.integers(0, 9),
            "first": st.integers(0, 9),
            "example": st.sampled_from(["a", "b", "\u00fc", None]),
        }
    ),
    max_size=12,
)


def table(rows: list[dict[str, Any]]) -> pa.Table:
    days = {"day": pa.int32(), "first": pa.int64()}
    columns = [
        pa.array([row[field.name] for row in rows], days.get(field.name, field.type)).cast(
            field.type
        )
        for field in SCHEMA
    ]
    return pa.Table.from_arrays(columns, schema=SCHEMA)


def summed(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    groups: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        groups[tuple(row[key] for key in KEYS)].append(row)
    return {
        key: (
            sum(row["events"] for row in group),
            min(row["first"] for row in group),
            min((row["example"] for row in group if row["example"] is not None), default=None),
        )
        for key, group in groups.items()
    }


def groups_of(found: pa.Table) -> dict[tuple[Any, ...], tuple[Any, ...]]:
    rows = decoded(found, SCHEMA).to_pylist()
    groups = {tuple(row[key] for key in KEYS): tuple(row[name] for name in COUNTS) for row in rows}
    assert len(groups) == len(rows)
    return groups


@pytest.fixture(params=[1, 20, grouping._MOST], ids=["at once", "soon", "never"])
def most(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number from which on the numbers of rows are made smaller."""
    monkeypatch.setattr(grouping, "_MOST", request.param)


@pytest.mark.usefixtures("most")
def test_rows_that_are_equal_become_one() -> None:
    @given(ROWS)
    def check(rows: list[dict[str, Any]]) -> None:
        found = table(rows)
        assert groups_of(grouped(found, KEYS, COUNTS)) == groups_of(
            table_of(summed(found.to_pylist()))
        )

    check()


def table_of(groups: dict[tuple[Any, ...], tuple[Any, ...]]) -> pa.Table:
    names = (*KEYS, *COUNTS)
    rows = [dict(zip(names, (*key, *values), strict=True)) for key, values in groups.items()]
    return pa.Table.from_pylist(rows, SCHEMA)


@given(st.lists(ROWS, max_size=4))
def test_tables_with_texts_of_their_own_are_grouped_together(parts: list[list[Any]]) -> None:
    tables = [encoded(table(rows)) for rows in parts]
    if not tables:
        return
    together = [row for rows in tables for row in decoded(rows, SCHEMA).to_pylist()]
    found = grouped(pa.concat_tables(tables), KEYS, COUNTS)
    assert groups_of(found) == groups_of(table_of(summed(together)))


@given(st.lists(ROWS, max_size=6), st.sampled_from([1, 4, 100]))
def test_counting_passes_on_what_would_be_too_much(parts: list[list[Any]], most_rows: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(counting, "_MOST_ROWS", most_rows)
        found = list(counted(map(table, parts), KEYS, COUNTS))
    together = [row for rows in parts for row in table(rows).to_pylist()]
    assert summed([row for each in found for row in decoded(each, SCHEMA).to_pylist()]) == summed(
        together
    )


def test_what_is_counted_may_have_further_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counting, "_MOST_ROWS", 4)
    wide = pa.table({"key": ["a"] * 4, "count": [1] * 4, "further": ["x"] * 4})
    (found,) = counted([wide] * 3, ["key"], {"count": "sum"})
    assert found.to_pylist() == [{"key": "a", "count": 12}]


@given(ROWS, st.integers(1, 3), st.sampled_from([("name",), ("flag", "day"), KEYS]))
def test_rows_that_are_equal_are_of_one_part(
    rows: list[dict[str, Any]], count: int, keys: tuple[str, ...]
) -> None:
    whole = encoded(table(rows))
    found = {
        row["part"]: next(unpacked(pa.array([row["packed"]], pa.binary())))
        for each in parted(whole, keys, count)
        for row in each.to_pylist()
    }
    assert Counter(map(str, whole.to_pylist())) == Counter(
        str(row) for part in found.values() for row in part.to_pylist()
    )
    part_by_values = [
        (tuple(row.values()), part)
        for part in found
        for row in found[part].select(keys).to_pylist()
    ]
    assert len(set(part_by_values)) == len(dict(part_by_values))
    assert set(found) <= set(range(count))
    for part in found.values():
        names = part["name"].chunk(0)
        assert set(names.dictionary.to_pylist()) == set(names.to_pylist()) - {None}


def rows_of(names: Iterable[str], others: Iterable[str]) -> list[dict[str, Any]]:
    return [
        {"name": name, "other": other, "flag": None, "day": number % 3}
        | {"events": 1, "first": 0, "example": None}
        for number, (name, other) in enumerate(zip(names, others, strict=False))
    ]


def parts_by_other(
    rows: list[dict[str, Any]], count: int, together: Sequence[str] = ()
) -> dict[str, int]:
    found = {}
    for each in parted(encoded(table(rows)), KEYS, count, together):
        (part,) = each["part"].to_pylist()
        for row in next(unpacked(each["packed"].chunk(0))).to_pylist():
            found[row["other"]] = part
    return found


def test_the_part_of_a_row_depends_on_it_alone() -> None:
    """Rows come from many processes, and among others in each."""
    rows = rows_of(cycle("abcdefg"), (f"o{number}" for number in range(300)))
    found = parts_by_other(rows, 5)
    assert len(found) == 300
    assert parts_by_other(rows[::-1], 5) == found
    assert parts_by_other(rows[100:130], 5).items() <= found.items()


@pytest.mark.parametrize("count", [2, 8, pytest.param(200, marks=pytest.mark.thorough)])
def test_one_principal_who_asks_a_third_is_spread(count: int) -> None:
    """Among many who ask little, such as a Kafka Connect with a thousand connectors."""
    names = (
        "User:connect" if number % 3 == 0 else f"User:{number // 6}" for number in range(400_000)
    )
    rows = rows_of(names, (f"topic-{number}" for number in range(1_000 * count)))
    for together, most in (((), 1.2), (("name",), 1.5)):
        sizes = Counter(parts_by_other(rows, count, together).values())
        assert len(sizes) == count
        assert max(sizes.values()) <= most * len(rows) / count


@pytest.mark.parametrize(("count", "most"), [(1, 1), (2, 1), (3, 1), (8, 4), (9, 4)])
def test_who_asks_is_in_half_of_the_parts_at_most(count: int, most: int) -> None:
    rows = rows_of(cycle(["User:a", "User:b", "User:c"]), map(str, range(900)))
    found = parts_by_other(rows, count, ["name"])
    of_names = [{found[row["other"]] for row in rows[first::3]} for first in range(3)]
    assert [len(parts) for parts in of_names] == [most] * 3
    assert parts_by_other(rows[500:600], count, ["name"]).items() <= found.items()


@given(st.lists(st.tuples(st.integers(0, 2), ROWS), max_size=6), st.integers(1, 4))
def test_small_parts_are_put_together_and_each_stays_whole(
    found: list[tuple[int, list[dict[str, Any]]]], batch_size: int
) -> None:
    """As a task has them that was given several parts, one after the other."""
    found.sort(key=lambda each: each[0])
    rows = pa.table(
        {
            "part": pa.array([part for part, _ in found], pa.int32()),
            "packed": pa.array([packed(encoded(table(rows))) for _, rows in found], pa.binary()),
        }
    )
    in_order = [(part, row) for part, rows in found for row in table(rows).to_pylist()]
    for most in (1, 5, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(packing, "_AT_ONCE", most)
            tables = list(parts_of(rows.to_batches(max_chunksize=batch_size)))
        assert [row for each in tables for row in each.to_pylist()] == [row for _, row in in_order]
        parts = iter([part for part, _ in in_order])
        taken = [set(islice(parts, each.num_rows)) for each in tables]
        assert all(one.isdisjoint(other) for one, other in pairwise(taken))
        # A table is full before the next one is begun.
        assert all(each.num_rows >= most for each in tables[:-1])


@given(ROWS)
def test_a_table_is_packed_and_unpacked(rows: list[dict[str, Any]]) -> None:
    for each in (table(rows), encoded(table(rows)), encoded(table(rows * 10))):
        values = pa.array([packed(each), packed(each)], pa.binary())
        for found in unpacked(values):
            assert found.to_pylist() == each.to_pylist()
            assert found.schema == each.schema


def test_a_part_of_few_rows_is_packed_into_few_bytes() -> None:
    """A fleet has tens of thousands of tasks, each with a table for each of hundreds of parts."""
    topics = [f"orders.eu.{number}" for number in range(100)]
    whole = encoded(table(rows_of(cycle(["User:alice", "User:bob"]), topics)))
    assert len(packed(compacted(whole.slice(0, 1)))) < 1_000
    assert len(packed(compacted(whole))) < 2_000


@given(ROWS)
def test_a_column_is_freed_of_texts_that_do_not_occur(rows: list[dict[str, Any]]) -> None:
    column = encoded(table(rows))["name"].chunk(0)
    further = pa.array([f"{number}" for number in range(100)])
    wide = pa.DictionaryArray.from_arrays(
        column.indices, pa.concat_arrays([column.dictionary, further])
    )
    for each in (column, wide, wide[1:]):
        found = compact(each)
        assert found.to_pylist() == each.to_pylist()
        assert set(found.dictionary.to_pylist()) == set(each.to_pylist()) - {None}
