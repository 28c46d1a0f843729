"""Clusters that are left out are told of in few lines, however many there are."""

from aclbroker.pipeline.interface.left_out import left_out_lines


def test_each_is_named_with_its_reason() -> None:
    assert left_out_lines({"a": "it is empty"}) == ["cluster a is left out: it is empty"]


def test_those_of_one_reason_are_told_together_and_those_of_most_first() -> None:
    many = dict.fromkeys((f"c{number}" for number in range(9)), "empty")
    assert left_out_lines({"b": "odd", **many}) == [
        "9 clusters (c0, c1, c2, c3, c4 and 4 more) are left out: empty",
        "cluster b is left out: odd",
    ]
    assert left_out_lines({"y": "odd", "x": "odd"}) == ["2 clusters (x, y) are left out: odd"]


def test_of_many_reasons_the_first_are_told() -> None:
    lines = left_out_lines({f"c{number}": f"reason {number}" for number in range(40)})
    assert len(lines) == 6
    assert lines[-1] == "and 35 more, for other reasons"


def test_of_none_nothing_is_told() -> None:
    assert left_out_lines({}) == []
