"""DescribeClientQuotas and AlterClientQuotas (KIP-546) of a cluster in memory."""

from __future__ import annotations

from typing import Final

from aclbroker.broker.backends.memory.backend import MemoryBackend
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.memory.quotas import CLIENT_ID, IP, TYPES, USER, Component, Entity, QuotaError
from aclbroker.protocol.errors import ErrorCode, shown_name
from aclbroker.protocol.messages import alter_client_quotas as altered
from aclbroker.protocol.messages import describe_client_quotas as described
from aclbroker.turns import in_turns

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2


class _FilterError(Exception):
    """A filter is refused, with Kafka's error code and message."""

    def __init__(self, message: str, code: ErrorCode = ErrorCode.INVALID_REQUEST) -> None:
        super().__init__(message)
        self.code = code


def describe_client_quotas(
    backend: MemoryBackend, _rights: RequestRights, request: described.DescribeClientQuotasRequest
) -> described.DescribeClientQuotasResponse:
    """Answer with the quotas of all entities that the filter matches."""
    try:
        components = _components(request)
    except _FilterError as why:
        return described.DescribeClientQuotasResponse(
            error_code=why.code, error_message=str(why), entries=None
        )
    matching = backend.cluster.quotas.matching(components, strict=request.strict)
    return described.DescribeClientQuotasResponse(
        error_message=None,
        entries=[
            described.EntryData(
                [described.EntityData(*part) for part in entity],
                [described.ValueData(*quota) for quota in quotas.items()],
            )
            for entity, quotas in in_turns(matching)
        ],
    )


def _components(request: described.DescribeClientQuotasRequest) -> list[Component]:
    """Return the parts of a filter. Raises `_FilterError`."""
    components: dict[str, Component] = {}
    for each in in_turns(request.components):
        kind = each.entity_type
        if not kind:
            raise _FilterError("Invalid empty entity type.")
        if kind in components:
            raise _FilterError(f"Entity type {kind} cannot appear more than once in the filter.")
        if kind not in TYPES:
            message = f"Unsupported entity type {shown_name(kind)}"
            raise _FilterError(message, ErrorCode.UNSUPPORTED_VERSION)
        components[kind] = _component(each)
    if IP in components and components.keys() & {USER, CLIENT_ID}:
        raise _FilterError(
            "Invalid entity filter component combination. IP filter component should not be used "
            "with user or clientId filter component."
        )
    return list(components.values())


def _component(each: described.ComponentData) -> Component:
    kind, name = each.entity_type, each.match
    if each.match_type == _EXACT:
        if name is None:
            raise _FilterError("Request specified MATCH_TYPE_EXACT, but set match string to null.")
        return Component(kind, name, is_any=False)
    named = {_DEFAULT: "MATCH_TYPE_DEFAULT", _ANY: "MATCH_TYPE_SPECIFIED"}
    if each.match_type not in named:
        raise _FilterError(f"Unknown match type {each.match_type}")
    if name is not None:
        word = named[each.match_type]
        raise _FilterError(f"Request specified {word}, but also specified a match string.")
    return Component(kind, None, is_any=each.match_type == _ANY)


def alter_client_quotas(
    backend: MemoryBackend, _rights: RequestRights, request: altered.AlterClientQuotasRequest
) -> altered.AlterClientQuotasResponse:
    """Set and remove quotas of each entity; an entity that is named twice gets an error.

    As in Kafka, the first entry of such an entity still takes effect, unless it has a key twice.
    """
    entities = [_entity(entry) for entry in in_turns(request.entries)]
    counts: dict[Entity, int] = {}
    for entity in in_turns(entities):
        counts[entity] = counts.get(entity, 0) + 1
    answers: dict[Entity, altered.ResponseEntryData] = {}
    for entity, entry in zip(entities, in_turns(request.entries, 1), strict=True):
        changes = {op.key: None if op.remove else op.value for op in in_turns(entry.ops)}
        message = None
        is_doubled = len(changes) < len(entry.ops)
        try:
            if entity not in answers and not is_doubled:
                backend.cluster.quotas.alter(entity, changes, tried=request.validate_only)
        except QuotaError as why:
            message = str(why)
        if counts[entity] > 1 or is_doubled:
            named = ", ".join(f"{kind}={name}" for kind, name in entity[: len(TYPES)])
            message = (
                f"Ignoring duplicate entity ClientQuotaEntity(entries={{{shown_name(named)}}})"
            )
        answers[entity] = altered.ResponseEntryData(
            ErrorCode.NONE if message is None else ErrorCode.INVALID_REQUEST,
            message,
            [altered.EntityData(*part) for part in in_turns(entity)],
        )
    return altered.AlterClientQuotasResponse(entries=list(answers.values()))


def _entity(entry: altered.RequestEntryData) -> Entity:
    # If an entry names a type twice, the last name counts, as in Kafka.
    names = {each.entity_type: each.entity_name for each in in_turns(entry.entity)}
    # An entity with more types than Kafka has is refused later, so it is not sorted.
    return tuple(names.items() if len(names) > len(TYPES) else sorted(names.items()))
