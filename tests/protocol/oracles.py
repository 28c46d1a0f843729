"""Which independent codec judges which message.

Kafka's own Java classes judge every message (`kafka_codec`). Codecs of other people judge what they
know: kio, which was made from Kafka 4, and for versions that Kafka 4 dropped the classes that
aiokafka's authors wrote by hand. `oracle_of` says which of the two has which message.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib
import pkgutil
import uuid
from functools import cache
from io import BytesIO
from typing import Any, NamedTuple

import aiokafka.protocol
from aiokafka.protocol.api import RequestStruct, Response
from hypothesis.strategies import SearchStrategy
from kio.index import KioIndexError, load_request_schema, load_response_schema
from kio.serial import entity_writer

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.primitives import ZERO_UUID
from tests.protocol.strategies import EPOCH, MILLISECOND, aiokafka_values, kio_objects
from tests.support.messages import Message

KAFKA_ALONE = {
    ApiKey.LEADER_AND_ISR,
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
    ApiKey.CONTROLLED_SHUTDOWN,
}
"""The APIs that ended with ZooKeeper: only Kafka's own classes judge them. Kafka's classes are
also the only judges of some versions 0."""


class Sample(NamedTuple):
    """A message as an independent codec wrote it."""

    data: bytes
    values: list[Any]
    """Its fields' values in the order of the specification, structs as lists of theirs."""


class Oracle(NamedTuple):
    """An independent codec of one message."""

    name: str
    samples: SearchStrategy[Sample]


@cache
def oracle_of(message: Message) -> Oracle | None:
    """Return the codec of other people that judges a message, or None if there is none."""
    if (cls := kio_class(message)) is not None:
        return Oracle("kio", _kio_samples(cls))
    if (written := _aiokafka_classes().get(message)) is not None:
        return Oracle("aiokafka", _aiokafka_samples(written.SCHEMA))
    return None


def kio_class(message: Message) -> Any:
    """Return kio's class of a message, or None."""
    load = load_request_schema if message.direction == "request" else load_response_schema
    try:
        return load(message.key, message.version)
    except KioIndexError:
        return None


@cache
def _aiokafka_classes() -> dict[Message, Any]:
    found = {}
    for module in pkgutil.iter_modules(aiokafka.protocol.__path__):
        for cls in vars(importlib.import_module(f"aiokafka.protocol.{module.name}")).values():
            if isinstance(cls, type) and issubclass(cls, RequestStruct | Response):
                direction = "request" if issubclass(cls, RequestStruct) else "response"
                key, version = getattr(cls, "API_KEY", None), getattr(cls, "API_VERSION", None)
                if isinstance(key, int) and isinstance(version, int):
                    found[Message(key, version, direction)] = cls
    return found


def kio_bytes(item: Any) -> bytes:
    """Return the bytes of a kio object."""
    buffer = BytesIO()
    entity_writer(type(item))(buffer, item)
    return buffer.getvalue()


def _kio_samples(cls: Any) -> SearchStrategy[Sample]:
    return kio_objects(cls).map(lambda item: Sample(kio_bytes(item), kio_values(item)))


def _aiokafka_samples(schema: Any) -> SearchStrategy[Sample]:
    def sample(values: Any) -> Sample:
        return Sample(schema.encode(values), _lists(values))

    return aiokafka_values(schema).map(sample)


def _lists(value: Any) -> Any:
    return [_lists(inner) for inner in value] if isinstance(value, tuple | list) else value


def kio_values(item: Any) -> list[Any]:
    """Return a kio object's values as they are on the wire."""
    return [
        ZERO_UUID
        if field.metadata.get("kafka_type") == "uuid" and getattr(item, field.name) is None
        else _kio_value(getattr(item, field.name), field.metadata.get("kafka_type"))
        for field in dataclasses.fields(item)
    ]


def _kio_value(value: Any, kafka_type: str | None) -> Any:
    match value:
        case tuple():
            return [_kio_value(entry, kafka_type) for entry in value]
        case datetime.timedelta():
            return round(value / MILLISECOND)
        case datetime.datetime():
            return round((value - EPOCH) / MILLISECOND)
        case None if kafka_type == "datetime_i64":
            return -1
        case uuid.UUID():
            return value.bytes
        case _ if dataclasses.is_dataclass(value):
            return kio_values(value)
        case _:
            return value


def our_values(item: Any, version: int) -> Any:
    """Return the values of one of our objects that a version has, as `Sample.values` has them."""
    if isinstance(item, list | tuple):
        return [our_values(entry, version) for entry in item]
    if not dataclasses.is_dataclass(item):
        return item
    return [our_values(getattr(item, name), version) for name in present(item, version)]


def present(item: Any, version: int) -> list[str]:
    """Return the names of the declared fields that a version has."""
    specs = ((f.name, f.metadata.get("spec")) for f in dataclasses.fields(item))
    return [name for name, spec in specs if spec and version in spec.versions]
