"""Objects of JSON that a client sends: read field by field, and refused if anything else is there.

A field with a typing error in its name must not be passed over: a filter without it matches more.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from enum import IntEnum
from typing import Any, Final, NoReturn, TypeVar

from aclbroker.broker.http_api.errors import ApiError, bad_request, listed, shown
from aclbroker.turns import pause

_MOST_BYTES: Final = 32_767
"""The longest text of Kafka's protocol before its flexible versions."""

_BETWEEN_PAUSES: Final = 64
"""The number of objects that are read between two pauses."""

Enumerated = TypeVar("Enumerated", bound=IntEnum)


def parsed(body: bytes) -> Any:
    """Return the JSON value of a body; pauses for other work, raises `ApiError`."""
    try:
        return json.loads(body, object_pairs_hook=_object_reader(), parse_constant=_no_number)
    except RecursionError:
        reason = "nested too deeply"
    except (json.JSONDecodeError, UnicodeDecodeError, _NotTaken) as error:
        reason = str(error)
    except ValueError:
        # Python refuses integers of more than 4,300 digits by default, because they take long.
        reason = "a number has too many digits"
    raise bad_request(f"The body is no JSON: {reason}")


class Fields:
    """An object of a request: ``place`` says where it stands. Each method raises `ApiError`."""

    def __init__(self, place: str, value: Any, allowed: Collection[str]) -> None:
        self.place = place
        if not isinstance(value, Mapping):
            raise wrong(place, "is no object")
        self._values = value
        for name in value:
            if name not in allowed:
                raise wrong(_within(place, name), f"is unknown; allowed are {', '.join(allowed)}")

    def part(self, name: str, allowed: Collection[str]) -> Fields:
        """Return the object in a field that must be there."""
        return Fields(_within(self.place, name), self._needed(name), allowed)

    def items(self, name: str) -> Sequence[Any]:
        """Return the list in a field that must be there."""
        value = self._needed(name)
        if not isinstance(value, list):
            raise self.wrong(name, "is no list")
        return value

    def text(self, name: str) -> str:
        """Return the text in a field that must be there."""
        found = self.optional_text(name)
        if found is None:
            self._missing(name)
        return found

    def optional_text(self, name: str) -> str | None:
        """Return the text in a field, None if there is none."""
        value = self._values.get(name)
        if value is None:
            return None
        if not isinstance(value, str):
            raise self.wrong(name, "is no text")
        try:
            size = len(value.encode())
        except UnicodeEncodeError:
            raise self.wrong(name, "is no Unicode: it has a lone surrogate") from None
        if size > _MOST_BYTES:
            raise self.wrong(name, f"is longer than {_MOST_BYTES} bytes")
        return value

    def number(self, name: str, low: int, high: int) -> int:
        """Return the number in a field that must be there."""
        value = self._needed(name)
        if type(value) is not int or not low <= value <= high:
            raise self.wrong(name, f"is no number from {low} to {high}")
        return value

    def member(self, name: str, allowed: Collection[Enumerated], note: str = "") -> Enumerated:
        """Return the one of some members whose name a field has."""
        text = self.text(name)
        for each in allowed:
            if each.name == text:
                return each
        names = ", ".join(each.name for each in allowed)
        raise self.wrong(name, f"is {shown(text)}; allowed are {names}{note}")

    def wrong(self, name: str, reason: str) -> ApiError:
        """Return the error of a field."""
        return wrong(_within(self.place, name), reason)

    def _needed(self, name: str) -> Any:
        value = self._values.get(name)
        if value is None:
            self._missing(name)
        return value

    def _missing(self, name: str) -> NoReturn:
        raise self.wrong(name, "is missing")


def wrong(place: str, reason: str) -> ApiError:
    """Return the error of what stands at a place in a request."""
    place = place or "body"
    return bad_request(f"{place} {reason}.", ("invalid", f"{place} {reason}"))


def cluster_of(scope: Fields) -> str:
    """Return the id of the Kafka cluster that a scope names, and nothing beside it."""
    return kafka_cluster_of(scope.part("clusters", ("kafka-cluster",)))


def kafka_cluster_of(clusters: Fields) -> str:
    """Return the id in the field ``kafka-cluster``, without quotes of JSON around it.

    Some clients take the text of an answer in JSON, quotes included, as the id.
    """
    found = clusters.text("kafka-cluster")
    if len(found) > 1 and found[0] == found[-1] == '"':
        found = found[1:-1]
    if not found:
        raise clusters.wrong("kafka-cluster", "is empty")
    return found


def unknown_cluster(cluster_id: str, known: Collection[str]) -> ApiError:
    """Return the error of a cluster that this server does not hold.

    It is no 404, of which the ``confluent`` command would not show the text.
    """
    reason = f"{shown(cluster_id)} is no cluster of this server, which has {listed(known)}"
    return bad_request(
        f"Unknown Kafka cluster: {reason}.", ("invalid", f"scope.clusters.kafka-cluster: {reason}")
    )


def _within(place: str, name: str) -> str:
    name = name if len(name) <= 64 else f"{name[:64]}..."
    return f"{place}.{name}" if place else name


class _NotTaken(ValueError):
    """JSON that Python's reader accepts and this API refuses."""


def _object_reader() -> Callable[[list[tuple[str, Any]]], dict[str, Any]]:
    """Return a function that makes an object of its fields, and pauses now and then."""
    left = _BETWEEN_PAUSES

    def read(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal left
        left -= 1
        if not left:
            left = _BETWEEN_PAUSES
            pause()
        found = dict(pairs)
        if len(found) < len(pairs):
            raise _NotTaken("a field is there twice")
        return found

    return read


def _no_number(text: str) -> NoReturn:
    raise _NotTaken(f"{text} is no number of JSON")
