"""Random requests of every key that the gateway forwards, about a few names."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from random import Random
from typing import Any, Final

from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ZERO_UUID
from aclbroker.protocol.schema import FieldSpec
from tests.gateway.twins.names import Names
from tests.memory.groups.support import subscription

LONG_MS: Final = 1_800_000
"""The longest time that a member may be silent."""

_MOST_ENTRIES: Final = 3
_CONFIGS: Final = {
    "retention.ms": ("-1", "86400000", "x"),
    "cleanup.policy": ("delete", "compact,delete"),
    "max.message.bytes": ("1048588", "500"),
    "segment.bytes": ("1048576",),
    "unknown.config": ("1",),
}

Draw = Callable[[Names], Any]


def _choice(*values: Any) -> Draw:
    return lambda names: names.random.choice(values)


_TOPIC: Final[Draw] = lambda names: names.topic()  # noqa: E731
_GROUP: Final[Draw] = lambda names: names.group()  # noqa: E731
_TXN: Final[Draw] = lambda names: names.transactional_id()  # noqa: E731
_PARTITION: Final[Draw] = _choice(0, 0, 0, 1, 2, 7)
_OFFSET: Final[Draw] = _choice(0, 0, 1, 2, 3, 5, 100)
_EPOCH: Final[Draw] = _choice(-1, -1, -1, 0, 0, 1)
_FLAG: Final[Draw] = _choice(False, True)

FIELDS: Final[Mapping[str, Draw]] = {
    **dict.fromkeys(("topic", "topic_name", "topic_names", "subscribed_topic_names"), _TOPIC),
    **dict.fromkeys(("group_id", "groups", "group_ids", "groups_names"), _GROUP),
    **dict.fromkeys(("transactional_id", "transactional_ids"), _TXN),
    "v3_and_below_transactional_id": _TXN,
    "name": _TOPIC,
    "topic_id": lambda names: names.topic_id(),
    **dict.fromkeys(("partition", "partition_index", "index"), _PARTITION),
    **dict.fromkeys(("partitions", "partition_indexes"), _PARTITION),
    **dict.fromkeys(("fetch_offset", "committed_offset", "offset", "start_offset"), _OFFSET),
    **dict.fromkeys(("first_offset", "last_offset"), _OFFSET),
    "timestamp": _choice(-1, -2, -3, -4, 1_700_000_000_000, 0),
    "leader_epoch": _choice(0, 0, 0, 1),
    "current_leader_epoch": _EPOCH,
    "committed_leader_epoch": _EPOCH,
    "committed_metadata": _choice("", "note", None),
    "partition_max_bytes": _choice(1 << 20, 1 << 20, 100),
    "max_bytes": _choice(1 << 20, 200),
    "min_bytes": _choice(0, 1),
    "isolation_level": _choice(0, 1),
    "session_id": lambda names: names.session(),
    "session_epoch": _choice(-1, -1, 0, 1, 1, 2),
    "share_session_epoch": _choice(-1, 0, 0, 1, 2),
    "max_records": _choice(1, 10, 500),
    "batch_size": _choice(1, 500),
    "acknowledge_types": _choice(0, 1, 2, 3),
    "member_id": lambda names: names.member(),
    "member_epoch": _choice(-1, 0, 1, 5),
    "generation_id": _choice(-1, 0, 1, 2),
    "generation_id_or_member_epoch": _choice(-1, -1, 0, 1, 2),
    "server_assignor": _choice(None, "uniform", "range", "unknown"),
    "allow_auto_topic_creation": _FLAG,
    "require_stable": _FLAG,
    "validate_only": _choice(False, False, True),
    "committed": _FLAG,
    "verify_only": _FLAG,
    "include_cluster_authorized_operations": _FLAG,
    "include_topic_authorized_operations": _FLAG,
    "include_authorized_operations": _FLAG,
    "include_synonyms": _FLAG,
    "include_documentation": _FLAG,
    "acks": _choice(-1, -1, -1, 1, 2),
    "records": lambda names: names.records(),
    **dict.fromkeys(("producer_id", "v3_and_below_producer_id"), _choice(-1, 0, 1, 2)),
    **dict.fromkeys(("producer_epoch", "v3_and_below_producer_epoch"), _choice(-1, 0, 1)),
    "transaction_timeout_ms": _choice(600_000, 600_000, 600_000, 0, 10_000_000),
    "session_timeout_ms": _choice(LONG_MS),
    "rebalance_timeout_ms": _choice(LONG_MS),
    "protocol_type": _choice("consumer", "consumer", "other", ""),
    "protocol_name": _choice("range", None, "other"),
    "metadata": lambda names: subscription(names.topic()),
    "states_filter": _choice("Stable", "Empty", "Dead", "other"),
    "types_filter": _choice("classic", "consumer", "share", "other"),
    "state_filters": _choice("Ongoing", "Empty", "other"),
    "producer_id_filters": _choice(0, 1, 5),
    "transactional_id_pattern": _choice(None, "x.*", "("),
    "coordinator_keys": lambda names: names.random.choice(
        (names.group(), names.transactional_id())
    ),
    "key": lambda names: names.random.choice((names.group(), names.transactional_id())),
    "key_type": _choice(0, 0, 1, 1, 2, 9),
    "num_partitions": _choice(-1, 1, 2, 3, 0),
    "replication_factor": _choice(-1, 1, 3, 9),
    "count": _choice(2, 3, 4),
    "broker_ids": _choice(1, 2, 3),
    "replicas": _choice(1, 2, 3),
    "resource_type": _choice(2, 2, 2, 4, 8, 16, 32, 5),
    "resource_types": _choice(2, 4, 8, 16, 32),
    "configuration_keys": lambda names: names.random.choice(list(_CONFIGS)),
    "config_operation": _choice(0, 0, 1, 2, 3),
    "path": _choice("/none", "memory"),
    "election_type": _choice(0, 1),
    "feature": _choice("metadata.version", "share.version", "unknown"),
    "max_version_level": _choice(0, 1, 2),
    "endpoint_type": _choice(1, 1, 2),
    "response_partition_limit": _choice(1, 2, 2000),
    "broker_id": _choice(1, 3, 9),
    "voter_id": _choice(1, 9),
    "timeout_ms": _choice(1000),
}
"""The values of a field, by its name."""


def drawn(key: int, version: int, names: Names) -> Any:
    """Return a random request of a key and version, which no broker answers late."""
    request = _struct(APIS[key].request, version, names)
    if key in _ADJUSTED:
        _ADJUSTED[key](request, version, names)
    return request


def _struct(cls: Any, version: int, names: Names) -> Any:
    values = {}
    for field in dataclasses.fields(cls):
        spec: FieldSpec | None = field.metadata.get("spec")
        if spec is not None and version in spec.versions:
            value = _value(field.name, spec, version, names)
            values[field.name] = field.default if value is ... else value
    return cls(
        **{name: value for name, value in values.items() if value is not dataclasses.MISSING}
    )


def _value(name: str, spec: FieldSpec, version: int, names: Names) -> Any:
    random = names.random
    if isinstance(spec.kind, list):
        if version in spec.nullable and random.random() < 0.2:
            return None
        count = random.randint(0 if random.random() < 0.2 else 1, _MOST_ENTRIES)
        [kind] = spec.kind
        entries = [_entry(name, kind, version, names) for _ in range(count)]
        keeps_doubles = names.has_doubles and random.random() < 0.05
        return entries if keeps_doubles else _distinct(entries)
    if isinstance(spec.kind, type):
        is_null = version in spec.nullable and random.random() < 0.7
        return None if is_null else _struct(spec.kind, version, names)
    value = FIELDS[name](names) if name in FIELDS else ...
    return "" if value is None and version not in spec.nullable else value


def _entry(name: str, kind: Any, version: int, names: Names) -> Any:
    if isinstance(kind, type):
        return _struct(kind, version, names)
    return FIELDS[name](names) if name in FIELDS else {"string": ""}.get(kind, 0)


def _distinct(entries: Sequence[Any]) -> list[Any]:
    """Return the entries of an array that differ in their first field."""
    found: dict[str, Any] = {}
    for entry in entries:
        is_struct = dataclasses.is_dataclass(entry)
        first = getattr(entry, "topic_id", ZERO_UUID) if is_struct else entry
        if is_struct and first == ZERO_UUID:
            first = getattr(entry, dataclasses.fields(entry)[0].name)
        found.setdefault(repr(first), entry)
    return list(found.values())


def _alone_in_group(request: Any, version: int, names: Names) -> None:
    """Let a member join a new group, or send it with an unknown id: it waits for no member."""
    if names.random.random() < 0.7:
        request.group_id, request.member_id = names.new_group(), ""
    else:
        request.member_id = "nobody"
    for number, protocol in enumerate(request.protocols):
        protocol.name = ("range", "roundrobin", "sticky")[number]


def _unknown_generation(request: Any, version: int, names: Names) -> None:
    """Let a SyncGroup name a generation that no group has: it waits for no leader."""
    request.generation_id = -1


def _either_name_or_id(request: Any, version: int, names: Names) -> None:
    """Name each topic by its name or by its id. At most one is missing.

    The clusters may create several missing topics in different orders.
    """
    missing = [topic for topic in request.topics or () if topic.name not in names.ids]
    for topic in missing[1:]:
        request.topics.remove(topic)
    for topic in request.topics or ():
        if version < 10 or names.random.random() < 0.5:
            topic.topic_id = ZERO_UUID
        elif version >= 12 or version == 10:
            topic.name = None


def _deleted(request: Any, version: int, names: Names) -> None:
    for topic in request.topics or ():
        if names.random.random() < 0.5:
            topic.topic_id = ZERO_UUID
        else:
            topic.name = None


def _configured(request: Any, version: int, names: Names) -> None:
    """Give topics valid configurations, mostly."""
    for topic in request.topics or ():
        _set_configs(topic.configs, names.random)
        if names.random.random() < 0.8:
            topic.assignments = []
        elif names.random.random() < 0.8:
            topic.num_partitions = topic.replication_factor = -1


def _resources(request: Any, version: int, names: Names) -> None:
    """Give each resource a name of its type."""
    named = {4: ("", "1", "2", "9"), 8: ("1", "2"), 5: ("x",), 16: ("metrics",)}
    for resource in request.resources or ():
        if resource.resource_type == 2:
            resource.resource_name = names.topic()
        elif resource.resource_type == 32:
            resource.resource_name = names.group()
        else:
            resource.resource_name = names.random.choice(named[resource.resource_type])
        if hasattr(resource, "configs"):
            _set_configs(resource.configs, names.random)


def _set_configs(configs: Sequence[Any], random: Random) -> None:
    chosen = random.sample(list(_CONFIGS), len(configs))
    for config, name in zip(configs, chosen, strict=True):
        config.name, config.value = name, random.choice(_CONFIGS[name])


def _of_consumer(request: Any, version: int, names: Names) -> None:
    """Send a Fetch or ListOffsets as a consumer sends it."""
    request.replica_id = -1


def _few_filters(request: Any, version: int, names: Names) -> None:
    if names.random.random() < 0.6:
        request.transactional_id_pattern, request.state_filters = None, []
        request.producer_id_filters = []


def _no_pattern(request: Any, version: int, names: Names) -> None:
    """Leave out regular expressions, for which there is a story."""
    request.subscribed_topic_regex = None


def _no_source_pattern(request: Any, version: int, names: Names) -> None:
    """Leave out expressions for source topics, which a gateway refuses before the coordinator."""
    for part in request.topology.subtopologies if request.topology else ():
        part.source_topic_regex = []


_ADJUSTED: Final[Mapping[int, Callable[[Any, int, Names], None]]] = {
    ApiKey.JOIN_GROUP: _alone_in_group,
    ApiKey.SYNC_GROUP: _unknown_generation,
    ApiKey.METADATA: _either_name_or_id,
    ApiKey.DELETE_TOPICS: _deleted,
    ApiKey.CREATE_TOPICS: _configured,
    ApiKey.DESCRIBE_CONFIGS: _resources,
    ApiKey.ALTER_CONFIGS: _resources,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _resources,
    ApiKey.FETCH: _of_consumer,
    ApiKey.LIST_OFFSETS: _of_consumer,
    ApiKey.LIST_TRANSACTIONS: _few_filters,
    ApiKey.CONSUMER_GROUP_HEARTBEAT: _no_pattern,
    ApiKey.STREAMS_GROUP_HEARTBEAT: _no_source_pattern,
}
"""Adjusts a request of a key after its fields are drawn."""
