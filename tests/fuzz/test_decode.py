"""Damaged bytes against the codec alone: a message, or `ProtocolError`, and nothing else."""

from __future__ import annotations

from functools import partial
from random import Random

import pytest

from aclbroker.protocol.compile import decoder, encode
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.primitives import ProtocolError
from aclbroker.protocol.schema import struct_of
from aclbroker.protocol.wire import decode_request
from tests.fuzz.mutations import mutated
from tests.fuzz.requests import request_payloads
from tests.fuzz.samples import sample
from tests.support.messages import Message, messages_of
from tests.support.tables import check_each

TRIES = 300
"""Damaged messages of each kind."""


@pytest.fixture(scope="module")
def messages(every_case: bool) -> list[Message]:
    return [message for key in APIS for message in messages_of(key, every=every_case)]


def test_damaged_messages_are_refused_or_read_as_something_that_can_be_written(
    messages: list[Message],
) -> None:
    check_each(messages, check_damaged)


def check_damaged(message: Message) -> None:
    chance, struct = Random(str(message)), struct_of(message.cls, message.version)
    read, write = decoder(message.cls, message.version), partial(encode, version=message.version)
    originals = [write(sample(chance, struct)) for _ in range(10)]
    for _ in range(TRIES):
        # A message without fields has no bytes to damage.
        original, other = chance.choice(originals) or b"\0", chance.choice(originals) or b"\0"
        damaged = mutated(chance, original, other)
        try:
            item, end = read(damaged, 0)
        except ProtocolError:
            continue
        assert end <= len(damaged)
        written = write(item)
        again, end = read(written, 0)
        assert (end, write(again)) == (len(written), written)


def test_random_bytes_are_refused_or_read(messages: list[Message]) -> None:
    check_each(messages, check_random)


def check_random(message: Message) -> None:
    chance = Random(str(message))
    read = decoder(message.cls, message.version)
    for _ in range(TRIES):
        noise = chance.randbytes(chance.randrange(100))
        try:
            _, end = read(noise, 0)
        except ProtocolError:
            continue
        assert end <= len(noise)


def test_damaged_requests_are_refused_or_read_with_their_headers() -> None:
    chance = Random(17)
    payloads = request_payloads(bytes(16))
    read = 0
    for _ in range(20_000):
        damaged = mutated(chance, chance.choice(payloads), chance.choice(payloads))
        try:
            decode_request(damaged)
        except ProtocolError:
            continue
        read += 1
    assert 0 < read < 20_000
