"""Every message at every version against Kafka's own Java classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aclbroker.protocol.compile import encode
from aclbroker.protocol.schema import struct_of
from tests.protocol.kafka_codec import RELEASES, KafkaCodec, Understood, as_json
from tests.protocol.strategies import ours
from tests.support.messages import KEYS, Message, messages_of
from tests.support.tables import check_each

# HYPOTHESIS_PROFILE=nightly draws 1,000 examples of each message, and Fetch alone has 38 messages.
pytestmark = pytest.mark.timeout(3600)


@pytest.fixture(scope="module")
def kafka_codecs() -> Iterator[list[KafkaCodec]]:
    codecs = [KafkaCodec(release) for release in RELEASES]
    yield codecs
    for each in codecs:
        each.close()


@pytest.mark.parametrize("key", KEYS)
def test_kafka_reads_what_we_write_and_writes_the_same(
    kafka_codecs: list[KafkaCodec], key: int, every_case: bool
) -> None:
    def check(message: Message) -> None:
        check_against_kafka(message, kafka_codecs)

    check_each(messages_of(key, every=every_case), check)


@given(data=st.data())
def check_against_kafka(
    message: Message, kafka_codecs: list[KafkaCodec], data: st.DataObject
) -> None:
    struct = struct_of(message.cls, message.version)
    item = data.draw(ours(struct))
    written = encode(item, message.version)

    answers = (each.ask(message.cls.__name__, message.version, written) for each in kafka_codecs)
    understood = next((a for a in answers if isinstance(a, Understood)), None)

    assert understood is not None, [*answers]
    assert understood.values == as_json(struct, item)
    assert understood.data == written
