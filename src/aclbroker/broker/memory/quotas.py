"""The quotas of clients (KIP-546) in a cluster in memory: kept and shown, but not enforced.

Rules and messages are those of Kafka 4.3.0 (ClientQuotaControlManager, ClientQuotaCache).
"""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from aclbroker.protocol.errors import shown_name
from aclbroker.turns import in_turns

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
TYPES: Final = (USER, CLIENT_ID, IP)
MOST_ENTITIES: Final = 10_000
"""The most entities that may have quotas, because each takes memory."""

_OF_CLIENTS: Final = frozenset(
    ("producer_byte_rate", "consumer_byte_rate", "request_percentage", "controller_mutation_rate")
)
_OF_ADDRESSES: Final = frozenset(("connection_creation_rate",))
_WHOLE: Final = frozenset(("producer_byte_rate", "consumer_byte_rate", "connection_creation_rate"))
_LONGEST_NAME: Final = 1_000

Entity = tuple[tuple[str, str | None], ...]
"""Pairs of a type and a name, sorted by the type; the name None is the default of the type."""


class QuotaError(ValueError):
    """Invalid quotas, with Kafka's message."""


class Component(NamedTuple):
    """A part of a filter: entities with this type and, unless ``is_any``, this name."""

    type: str
    name: str | None
    is_any: bool


class Quotas:
    """The quotas of each entity, by their keys."""

    def __init__(self) -> None:
        self._by_entity: dict[Entity, dict[str, float]] = {}

    def alter(
        self, entity: Entity, changes: Mapping[str, float | None], *, tried: bool = False
    ) -> None:
        """Set quotas of an entity, or remove those that are None; only check them if ``tried``.

        Raises `QuotaError`.
        """
        _check_entity(entity)
        allowed = _OF_ADDRESSES if entity[0][0] == IP else _OF_CLIENTS
        for key, value in in_turns(changes.items()):
            if key not in allowed:
                raise QuotaError(f"Invalid configuration key {shown_name(key)}")
            _check_value(key, value)
        quotas = self._by_entity.get(entity, {}) | {
            key: value for key, value in changes.items() if value is not None
        }
        for key in [key for key, value in changes.items() if value is None]:
            quotas.pop(key, None)
        is_new = bool(quotas) and entity not in self._by_entity
        if is_new and len(self._by_entity) >= MOST_ENTITIES:
            raise QuotaError(f"At most {MOST_ENTITIES} entities of a cluster in memory have quotas")
        if tried:
            return
        if quotas:
            self._by_entity[entity] = quotas
        else:
            self._by_entity.pop(entity, None)

    def matching(
        self, components: Sequence[Component], *, strict: bool
    ) -> list[tuple[Entity, Mapping[str, float]]]:
        """Return each entity that all components match, with its quotas.

        A ``strict`` filter matches no entity with further types.
        """
        return [
            (entity, quotas)
            for entity, quotas in in_turns(list(self._by_entity.items()))
            if _matches(dict(entity), components) and not (strict and len(entity) > len(components))
        ]


def _matches(names: Mapping[str, str | None], components: Sequence[Component]) -> bool:
    return all(
        each.type in names and (each.is_any or names[each.type] == each.name) for each in components
    )


def _check_entity(entity: Entity) -> None:
    if not entity:
        raise QuotaError("Invalid empty client quota entity")
    for kind, name in entity:
        if kind not in TYPES:
            raise QuotaError(f"Unhandled client quota entity type: {shown_name(kind)}")
        if name == "":
            raise QuotaError(f"Empty {kind} not supported")
        if name is not None and len(name) > _LONGEST_NAME:
            raise QuotaError(f"The {kind} has more than {_LONGEST_NAME} characters")
    types = dict(entity)
    if IP in types and len(types) > 1:
        raise QuotaError(
            "Invalid quota entity combination, IP entity should not be combined with User or "
            "ClientId"
        )
    address = types.get(IP)
    if address is not None and not _is_address(address):
        raise QuotaError(f"{shown_name(address)} is not a valid IP address.")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _check_value(key: str, value: float | None) -> None:
    if value is None:
        return
    # NaN is not above 0 either.
    if not value > 0:
        raise QuotaError(f"Quota {key} must be greater than 0")
    if key in _WHOLE and not (value < 1 << 63 and value.is_integer()):
        raise QuotaError(f"{key} cannot be a fractional value.")
