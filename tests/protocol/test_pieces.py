"""Large messages stay in parts until they are written, and are the same bytes."""

from __future__ import annotations

from collections.abc import Awaitable
from random import Random

import pytest

from aclbroker.broker.turns import Turns
from aclbroker.protocol.compile import encode, encoder
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.delete_acls import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from aclbroker.protocol.pieces import Pieces
from aclbroker.protocol.wire import decode_response, response_frame, response_in_pieces

SIZE = 1000
"""How large chunks are to be."""


def parts_of(lengths: list[int]) -> list[bytes]:
    return [bytes([65 + number % 26]) * length for number, length in enumerate(lengths)]


@pytest.mark.parametrize(
    "lengths",
    [
        [],
        [0, 0],
        [5],
        [999, 2],
        [10] * 5000,
        [1, 5000],
        [5000, 1],
        [1000, 1000],
        [500, 1500, 1],
        [999, 1002, 4],
        [Random(1).choice([0, 1, 30, 700, 4000]) for _ in range(300)],
    ],
    ids=str,
)
def test_chunks_are_all_bytes_in_order_and_none_is_twice_as_large_as_wanted(
    lengths: list[int],
) -> None:
    parts = parts_of(lengths)
    whole = b"".join(parts)
    pieces = Pieces(parts)
    assert (len(pieces), bytes(pieces), b"".join(pieces.parts)) == (len(whole), whole, whole)
    chunks = [bytes(chunk) for chunk in pieces.chunks(SIZE)]
    assert b"".join(chunks) == whole
    assert max(map(len, chunks), default=0) <= 2 * SIZE
    assert len(chunks) <= 2 * len(whole) // SIZE + 1


def a_large_answer() -> DeleteAclsResponse:
    matching = [DeleteAclsMatchingAcl(0, None, 2, f"t-{n}", 3, "User:a") for n in range(20_000)]
    return DeleteAclsResponse(0, [DeleteAclsFilterResult(0, None, matching)])


@pytest.mark.parametrize("version", APIS[ApiKey.DELETE_ACLS].versions)
def test_a_large_answer_is_framed_without_being_put_together(version: int) -> None:
    api, answer = APIS[ApiKey.DELETE_ACLS], a_large_answer()
    frame = response_in_pieces(api, version, 7, answer)
    assert isinstance(frame, Pieces)
    whole = response_frame(api, version, 7, answer)
    assert len(whole) == len(frame)
    assert response_frame(api, version, 7, encoder(DeleteAclsResponse, version)(answer)) == whole
    assert decode_response(api, version, whole[4:]) == (7, answer)
    assert whole.endswith(encode(answer, version))


async def test_to_count_the_bytes_of_very_many_parts_takes_turns() -> None:
    turns = Turns(clock=iter(range(1000)).__next__)
    counting = turns.run("a", Pieces, [b"x"] * 10_000)
    assert isinstance(counting, Awaitable)
    assert len(await counting) == 10_000
