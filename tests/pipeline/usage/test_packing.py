"""Tables as single values."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow")

import pyarrow as pa

from aclbroker.pipeline.usage.packing import packed, unpacked

_ROWS = 2_000


def _again(table: pa.Table) -> pa.Table:
    (found,) = unpacked(pa.array([packed(table)], pa.binary()))
    return found


def _texts(different: int) -> pa.Array:
    return pa.array([str(row % different) for row in range(_ROWS)]).dictionary_encode()


_EDGES = [sign * 2**bits + more for bits in (7, 15, 31) for sign in (1, -1) for more in (-1, 0)]


class TestPacked:
    @pytest.mark.parametrize("edge", [0, *_EDGES, 2**63 - 1, -(2**63)])
    @pytest.mark.parametrize("null", [None, 0])
    def test_of_numbers_of_all_sizes_are_the_same_again(self, edge: int, null: int | None) -> None:
        numbers = pa.array([edge, null, *range(_ROWS - 2)], pa.int64())
        table = pa.table({"number": numbers, "alone": [edge] * _ROWS, "none": [null] * _ROWS})
        assert _again(table).equals(table)

    @pytest.mark.parametrize("different", [1, 127, 128, 129, _ROWS])
    def test_of_any_number_of_texts_are_the_same_again(self, different: int) -> None:
        table = pa.table({"text": _texts(different), "other\nname": _texts(different)})
        assert _again(table).equals(table)
        assert _again(table).schema == table.schema

    def test_of_other_columns_are_the_same_again(self) -> None:
        number = pa.array(range(_ROWS), pa.int64())
        table = pa.table(
            {
                "day": number.cast(pa.int32()).cast(pa.date32()),
                "time": number.cast(pa.timestamp("us", "UTC")),
                "small": number.cast(pa.int16()),
                "narrow": pa.DictionaryArray.from_arrays(
                    pa.array([0] * _ROWS, pa.int8()), pa.array(["only"])
                ),
                "text": number.cast(pa.string()),
                "flag": [True] * _ROWS,
                "nothing": pa.nulls(_ROWS, pa.string()).dictionary_encode(),
            }
        )
        assert _again(table).equals(table)
        assert _again(table).schema == table.schema

    def test_keep_what_is_said_of_their_columns(self) -> None:
        fields = [
            pa.field("count", pa.int64(), nullable=False, metadata={"unit": "events"}),
            pa.field("day", pa.int32(), nullable=False),
        ]
        schema = pa.schema(fields, {"of": "the whole"})
        table = pa.table({"count": [1] * _ROWS, "day": [2] * _ROWS}, schema=schema)
        assert _again(table).equals(table)
        assert _again(table).schema.equals(schema, check_metadata=True)

    @pytest.mark.parametrize("rows", [0, 1, 999])
    def test_of_few_rows_are_the_same_again(self, rows: int) -> None:
        table = pa.table({"number": pa.array(range(rows), pa.int64())})
        assert _again(table).equals(table)

    def test_of_several_chunks_are_the_same_again(self) -> None:
        table = pa.concat_tables(
            [pa.table({"text": _texts(different), "number": [1] * _ROWS}) for different in (3, 300)]
        )
        assert _again(table).equals(table)
        assert _again(table).schema == table.schema
