"""How the answer of each API key repeats its request, and where it has the error codes.

An API key that is not listed has a single error code at the top of its answer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from aclbroker.broker.gate.echo import (
    TOP,
    Form,
    echo,
    entries,
    made,
    top_and_entries,
    top_or_entries,
)
from aclbroker.broker.gate.refusals import (
    refuse_alter_replica_log_dirs,
    refuse_alter_scram_credentials,
)
from aclbroker.protocol.messages import ApiKey

PARTITIONS: Final = echo("partitions", "partitions", "partition_index")
BARE_PARTITIONS: Final = echo("partitions", "partition_indexes", "partition_index=")
COMMITTED: Final = echo("partitions", "partition_indexes", "partition_index=", committed_offset=-1)
CONFIGS: Final = entries(echo("responses", "resources", "resource_type resource_name"))
DESCRIBED_GROUPS: Final = entries(echo("groups", "group_ids", "group_id="))
SHARED: Final = top_or_entries(echo("responses", "topics", "topic_id", PARTITIONS))
SHARE_STATE: Final = entries(
    echo("results", "topics", "topic_id", echo("partitions", "partitions", "partition"))
)
NO_NODE: Final[dict[str, Any]] = {"node_id": -1, "host": "", "port": -1}

# fmt: off
_FORMS: Final[dict[ApiKey, Form | dict[int, Form]]] = {
    ApiKey.PRODUCE: entries(echo("responses", "topic_data", "name topic_id",
        echo("partition_responses", "partition_data", "index", base_offset=-1))),
    ApiKey.FETCH: entries(echo("responses", "topics", "topic topic_id",
        echo("partitions", "partitions", "partition_index=partition",
             high_watermark=-1, records=b""))),
    ApiKey.LIST_OFFSETS: entries(echo("topics", "topics", "name", PARTITIONS)),
    ApiKey.METADATA: entries(echo("topics", "topics", "name topic_id")),
    ApiKey.OFFSET_COMMIT: entries(echo("topics", "topics", "name topic_id", PARTITIONS)),
    ApiKey.OFFSET_FETCH: {
        0: entries(echo("topics", "topics", "name", COMMITTED)),
        2: TOP,
        8: entries(echo("groups", "groups", "group_id"))},
    ApiKey.FIND_COORDINATOR: {
        0: Form(top=True, fill=NO_NODE),
        4: entries(echo("coordinators", "coordinator_keys", "key=", **NO_NODE))},
    ApiKey.JOIN_GROUP: {0: TOP, 7: Form(top=True, fill={"protocol_name": None})},
    ApiKey.DESCRIBE_GROUPS: entries(echo("groups", "groups", "group_id=")),
    ApiKey.CREATE_TOPICS: entries(echo("topics", "topics", "name")),
    ApiKey.DELETE_TOPICS: {
        0: entries(echo("responses", "topic_names", "name=")),
        6: entries(echo("responses", "topics", "name topic_id"))},
    ApiKey.DELETE_RECORDS: entries(echo("topics", "topics", "name",
        echo("partitions", "partitions", "partition_index", low_watermark=-1))),
    ApiKey.INIT_PRODUCER_ID: Form(top=True, fill={"producer_id": -1, "producer_epoch": -1}),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: entries(echo("topics", "topics", "topic",
        echo("partitions", "partitions", "partition"))),
    ApiKey.ADD_PARTITIONS_TO_TXN: {
        0: entries(echo("results_by_topic_v3_and_below", "v3_and_below_topics", "name",
                        echo("results_by_partition", "partitions", "partition_index="))),
        4: TOP},
    ApiKey.WRITE_TXN_MARKERS: entries(echo("markers", "markers", "producer_id",
        echo("topics", "topics", "name", BARE_PARTITIONS))),
    ApiKey.TXN_OFFSET_COMMIT: entries(echo("topics", "topics", "name", PARTITIONS)),
    ApiKey.CREATE_ACLS: entries(echo("results", "creations", "")),
    ApiKey.DELETE_ACLS: entries(echo("filter_results", "filters", "")),
    ApiKey.DESCRIBE_CONFIGS: entries(echo("results", "resources", "resource_type resource_name")),
    ApiKey.ALTER_CONFIGS: CONFIGS,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: CONFIGS,
    ApiKey.ALTER_REPLICA_LOG_DIRS: made(refuse_alter_replica_log_dirs),
    ApiKey.CREATE_PARTITIONS: entries(echo("results", "topics", "name")),
    ApiKey.DELETE_GROUPS: entries(echo("results", "groups_names", "group_id=")),
    ApiKey.ELECT_LEADERS: top_and_entries(echo("replica_election_results", "topic_partitions",
        "topic", echo("partition_result", "partitions", "partition_id="))),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: top_and_entries(
        echo("responses", "topics", "name", PARTITIONS)),
    # Kafka repeats the entries beside the code at the top, although they have no codes themselves.
    ApiKey.LIST_PARTITION_REASSIGNMENTS: top_and_entries(
        echo("topics", "topics", "name", BARE_PARTITIONS)),
    ApiKey.OFFSET_DELETE: top_or_entries(echo("topics", "topics", "name", PARTITIONS)),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: Form(top=True, fill={"entries": None}),
    ApiKey.ALTER_CLIENT_QUOTAS: entries(echo("entries", "entries", "entity")),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: top_and_entries(echo("results", "users", "")),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: made(refuse_alter_scram_credentials),
    ApiKey.DESCRIBE_PRODUCERS: entries(echo("topics", "topics", "name",
        echo("partitions", "partition_indexes", "partition_index="))),
    ApiKey.DESCRIBE_TRANSACTIONS: entries(
        echo("transaction_states", "transactional_ids", "transactional_id=")),
    ApiKey.CONSUMER_GROUP_DESCRIBE: DESCRIBED_GROUPS,
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: entries(echo("topics", "topics", "name")),
    ApiKey.SHARE_GROUP_DESCRIBE: DESCRIBED_GROUPS,
    ApiKey.SHARE_FETCH: SHARED,
    ApiKey.SHARE_ACKNOWLEDGE: SHARED,
    ApiKey.INITIALIZE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.WRITE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.DELETE_SHARE_GROUP_STATE: SHARE_STATE,
    ApiKey.READ_SHARE_GROUP_STATE_SUMMARY: SHARE_STATE,
    ApiKey.STREAMS_GROUP_DESCRIBE: DESCRIBED_GROUPS,
    ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: entries(echo("groups", "groups", "group_id")),
    # Kafka tells the real id of a refused topic. Here the id stays zero, so that the answer does
    # not say whether the topic exists (d10 in docs/ARCHITECTURE.md).
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: top_or_entries(
        echo("responses", "topics", "topic_name", PARTITIONS)),
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: top_or_entries(echo("responses", "topics", "topic_name")),
}
# fmt: on

FORMS: Final[Mapping[int, tuple[tuple[int, Form], ...]]] = {
    key: tuple(sorted((forms if isinstance(forms, dict) else {0: forms}).items(), reverse=True))
    for key, forms in _FORMS.items()
}
"""The forms of each key's answers, newest first, each with the first version that has it."""

_TOP_ALONE: Final = ((0, TOP),)


def form_of(key: int, version: int) -> Form:
    """Return the form of a key's answer at a version."""
    return next(form for since, form in FORMS.get(key, _TOP_ALONE) if version >= since)
