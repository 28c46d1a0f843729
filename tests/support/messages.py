"""The messages, API keys and versions that a test of every message tries."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, NamedTuple

import pytest

from aclbroker.protocol.messages import APIS

DIRECTIONS = ("request", "response")

KEYS = [pytest.param(key, id=api.name) for key, api in APIS.items()]
"""All API keys, for the parameter of a test."""


class Exchange(NamedTuple):
    """One API key at one version: a request and its response."""

    key: int
    version: int

    def __repr__(self) -> str:
        return f"{APIS[self.key].name} v{self.version}"


EXCHANGES = [Exchange(key, version) for key, api in APIS.items() for version in api.versions]
"""All API keys at all versions."""


class Message(NamedTuple):
    """One message at one version."""

    key: int
    version: int
    direction: str

    @property
    def cls(self) -> Any:
        """Our class."""
        return getattr(APIS[self.key], self.direction)

    def __repr__(self) -> str:
        return f"{APIS[self.key].name} {self.direction} v{self.version}"


MESSAGES = [
    Message(key, version, direction) for key, version in EXCHANGES for direction in DIRECTIONS
]
"""All messages at all versions."""


def messages_of(key: int, *, every: bool) -> list[Message]:
    """Return an API key's messages at all versions, or at the versions of the daily run.

    Those are the lowest version, the highest, and each that changes the layout of the message.
    """
    versions = APIS[key].versions
    return [
        message
        for message in MESSAGES
        if message.key == key
        and (every or message.version in (versions[0], versions[-1]) or _changes_layout(message))
    ]


def _changes_layout(message: Message) -> bool:
    cls, version = message.cls, message.version
    was_flexible, is_flexible = version - 1 in cls.FLEXIBLE, version in cls.FLEXIBLE
    return was_flexible != is_flexible or _layout(cls, version - 1) != _layout(cls, version)


def _layout(cls: Any, version: int) -> list[Any]:
    """Return the fields of a version, with the fields of the structs inside them."""
    specs = ((field.name, field.metadata.get("spec")) for field in dataclasses.fields(cls))
    return [
        (name, version in spec.nullable, version in spec.tagged, *_inner_layout(spec.kind, version))
        for name, spec in specs
        if spec is not None and version in spec.versions
    ]


def _inner_layout(kind: Any, version: int) -> Sequence[Any]:
    inner = kind[0] if isinstance(kind, list) else kind
    return _layout(inner, version) if isinstance(inner, type) else ()
