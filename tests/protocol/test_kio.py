"""Every message at every version against an independent codec, see `tests.protocol.oracles`."""

from __future__ import annotations

from functools import partial
from io import BytesIO

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.serial.writers import (
    write_compact_string,
    write_int64,
    write_tagged_field,
    write_unsigned_varint,
)
from kio.static.primitive import i64, uvarint

from aclbroker.protocol.compile import decoder, encode
from aclbroker.protocol.messages import APIS
from tests.protocol.oracles import KAFKA_ALONE, kio_class, oracle_of, our_values
from tests.support.messages import MESSAGES, Message, messages_of
from tests.support.tables import check_each

JUDGED = [pytest.param(key, id=api.name) for key, api in APIS.items() if key not in KAFKA_ALONE]

# HYPOTHESIS_PROFILE=nightly draws 1,000 examples of each message, and Fetch alone has 38 messages.
pytestmark = pytest.mark.timeout(3600)


@pytest.mark.parametrize("key", JUDGED)
def test_bytes_of_an_independent_codec_are_understood_and_written_alike(
    key: int, every_case: bool
) -> None:
    messages = messages_of(key, every=every_case)
    check_each([each for each in messages if oracle_of(each)], check_against_oracle)


@given(data=st.data())
def check_against_oracle(message: Message, data: st.DataObject) -> None:
    oracle = oracle_of(message)
    assert oracle is not None
    sample = data.draw(oracle.samples)
    read, write = decoder(message.cls, message.version), partial(encode, version=message.version)

    item, end = read(sample.data, 0)

    assert end == len(sample.data)
    assert our_values(item, message.version) == sample.values
    assert write(item) == sample.data


def test_every_acl_message_is_judged_by_kio_and_the_oldest_by_aiokafka() -> None:
    for message in MESSAGES:
        if message.key in (29, 30, 31):
            oracle = oracle_of(message)
            assert oracle is not None
            assert oracle.name == ("kio" if message.version else "aiokafka")


def test_unknown_tagged_fields_are_read_as_kio_writes_tagged_fields() -> None:
    flexible = (message for message in MESSAGES if message.version in message.cls.FLEXIBLE)
    check_each([each for each in flexible if kio_class(each)], check_unknown_tags)


def check_unknown_tags(message: Message) -> None:
    read, write = decoder(message.cls, message.version), partial(encode, version=message.version)
    plain = write(message.cls())
    with BytesIO() as buffer:
        write_unsigned_varint(buffer, uvarint(2))
        write_tagged_field(buffer, uvarint(300), write_int64, i64(7))
        write_tagged_field(buffer, uvarint(1 << 31), write_compact_string, "x" * 200)
        tags = buffer.getvalue()

    item, _ = read(plain[:-1] + tags, 0)

    assert item.unknown_tags == (
        (300, b"\0\0\0\0\0\0\0\x07"),
        (1 << 31, b"\xc9\x01" + b"x" * 200),
    )
    assert write(item) == plain[:-1] + tags
