"""Tables of Arrow: grouped, taken apart, and packed."""

from collections import Counter, defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa

from aclbroker.pipeline.usage import counting, grouping
from aclbroker.pipeline.usage.counting import counted
from aclbroker.pipeline.usage.grouping import encoded, grouped
from aclbroker.pipeline.usage.packing import decoded, packed, parted, unpacked

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


@given(ROWS, st.integers(1, 3), st.sampled_from(["name", "day"]))
def test_rows_with_the_same_text_are_of_one_part(
    rows: list[dict[str, Any]], count: int, key: str
) -> None:
    whole = encoded(table(rows))
    found = {
        row["part"]: next(unpacked(pa.array([row["packed"]], pa.binary())))
        for each in parted(whole, key, count)
        for row in each.to_pylist()
    }
    assert Counter(map(str, whole.to_pylist())) == Counter(
        str(row) for part in found.values() for row in part.to_pylist()
    )
    parts_of = [(value, part) for part in found for value in set(found[part][key].to_pylist())]
    assert len(parts_of) == len(dict(parts_of))
    assert set(found) <= (set(range(count)) if key == "name" else {0})
    for part in found.values():
        names = part["name"].chunk(0)
        assert set(names.dictionary.to_pylist()) == set(names.to_pylist()) - {None}


@given(ROWS)
def test_a_table_is_packed_and_unpacked(rows: list[dict[str, Any]]) -> None:
    for each in (table(rows), encoded(table(rows))):
        values = pa.array([packed(each), packed(each)], pa.binary())
        assert [found.to_pylist() for found in unpacked(values)] == [each.to_pylist()] * 2
