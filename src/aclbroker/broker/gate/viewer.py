"""The session that sees an answer, and its rights, which are asked as needs of the key's row.

Each right in `broker.gate.shown` must be a need of the row, whose broader right, profile and
logging apply here, too. So the table of needs stays complete.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple, Protocol

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.need import Keep, Need
from aclbroker.broker.gate.places import Place
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.protocol.schema import FieldSpec


class TopicNames(Protocol):
    """The known names of topic ids."""

    def name_of(self, topic_id: bytes) -> str | None:
        """Return the name of a topic id, None if no topic is known to have it."""


class View(NamedTuple):
    """The request, the session's rights, and the names of the topic ids in the answer."""

    request: Any
    rights: RequestRights
    topics: TopicNames

    @property
    def version(self) -> int:
        """The version of the request and its answer."""
        return self.rights.context.api_version

    def allowed(
        self,
        operation: AclOperation,
        resource_type: ResourceType,
        names: Iterable[str | None],
        *,
        logs: bool = False,
    ) -> set[str | None]:
        """Return the names on which the session has a right; None is never among them.

        ``logs`` says whether a denial is logged if the row's need is not a `Keep`.
        """
        counts: dict[str | None, int] = dict.fromkeys(names, 1)
        counts.pop(None, None)
        applying = self._applying(operation, resource_type)
        if not applying:
            return set()
        needs = [need for need in applying if need.when is None or need.when(self.request)]
        need = min(needs, key=lambda need: not isinstance(need, Keep), default=None)
        if need is None or not counts or self.rights.is_moot(need):
            return set(self.rights.unreserved(applying[0], resource_type, counts))
        if isinstance(need, Keep) and need.name:
            return set(
                self.rights.visible(need.name, [name for name in counts if name is not None])
            )
        asked = need if isinstance(need, Keep) else dataclasses.replace(need, log_if_denied=logs)
        return self.rights.ask(asked, resource_type, counts)

    def _applying(self, operation: AclOperation, resource_type: ResourceType) -> list[Need]:
        """Return the row's needs of a right that hold in the request's version and profile.

        Raises KeyError if the row has none at all. Without one that holds, nothing is shown.
        """
        row = self.rights.row
        declared = [n for n in row.needs if n.operation is operation and resource_type in n.types]
        if not declared:
            raise KeyError(f"{row.key.name} needs no {operation.name} on {resource_type.name}")
        applying = self.rights.applying()
        return [need for need in declared if need in applying]

    def name_of(self, entry: Any, place: Place) -> str | None:
        """Return the name of what an entry is about, None if it has none and its id is unknown."""
        if not place.fields:
            return str(entry)
        name, topic_id = None, ZERO_UUID
        for field in place.fields:
            value = getattr(entry, field)
            if isinstance(value, bytes):
                topic_id = value
            elif value:
                return str(value)
            elif self.version in _versions(entry.__class__, field):
                name = value
        return name if topic_id == ZERO_UUID else self.topics.name_of(topic_id)


@cache
def _versions(cls: Any, field: str) -> range:
    """Return the versions that have a field."""
    spec: FieldSpec = cls.__dataclass_fields__[field].metadata["spec"]
    return spec.versions
