"""The topic itself: made if it is missing, refused if it would lose or mix up what it keeps."""

from __future__ import annotations

import time
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from hashlib import sha256
from typing import Any, Final, NamedTuple

from aclbroker.broker.client.errors import (
    AuthenticationRefused,
    ClientConfigError,
    ClientError,
    RequestRefused,
    code_name,
)
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.freshness import UNKNOWN_S
from aclbroker.broker.stores.kafka.topic_id import NO_ID, settings_request, shown_id
from aclbroker.broker.stores.store import StoreError, StoreMissing, StoreUnavailable
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
)
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

log = get_logger()

_REPLICAS: Final = 3
_IN_SYNC: Final = 2
_MADE_WITHIN_S: Final = 30.0
_TIMEOUT_MS: Final = 10_000
_CLUSTER_ID_BYTES: Final = 16
_SHORT_MS: Final = 60_000
"""With a shorter retention, a broker misses removals while it restarts."""


class Topic(NamedTuple):
    """What is known of a topic."""

    name: str
    id: str
    """What all brokers that use it have as the id of their cluster."""

    cluster: str
    """The id of the Kafka cluster; "" if it tells none."""

    topic_id: str
    """That Kafka gave it when it was made, as hexadecimal digits; "" if it tells none."""

    removals_kept_ms: int | None
    """How long a message that removes a key is there at least; None if that may not be asked."""


def prepare(place: Place, *, makes: bool = True, warns: bool = True) -> Topic:
    """Make the topic if it is not there, and check how it is kept; return what is known of it.

    It may take seconds, and is to be called in a thread. Who only reads need not be warned in the
    log of what is wrong for those who write. Raises `StoreUnavailable`, and
    `StoreError` for a topic that cannot be used, or is not allowed to be; `StoreMissing` if there
    is none and it is not to be made.
    """
    try:
        with open_session(read_addresses(place.addresses), place.settings) as session:
            found, cluster = _described(session, place.topic)
            if found is None and not makes:
                raise StoreMissing(f"{place}: there is no such topic")
            if found is None:
                found = _made(session, place.topic)
            settings = _check(session, place, found, warns=warns)
            return Topic(
                name=place.topic,
                id=_cluster_id(cluster, place.topic),
                cluster=cluster or "",
                topic_id=shown_id(found.topic_id),
                removals_kept_ms=retention_ms(settings),
            )
    except (AuthenticationRefused, ClientConfigError, RequestRefused) as error:
        raise StoreError(f"{place}: {error}") from error
    except ClientError as error:
        raise StoreUnavailable(f"{place}: {error}") from error


def policy_problem(place: Place, settings: Mapping[str, str | None]) -> str:
    """Return why a topic with these settings loses messages, and what to do; "" if it does not."""
    policy = settings.get("cleanup.policy")
    if policy == "compact":
        return ""
    return (
        f"{place}: the topic has cleanup.policy={policy}; it must be compact, or ACLs would be "
        f"lost with time. Set it: kafka-configs.sh --alter --topic {place.topic} --add-config "
        "cleanup.policy=compact"
    )


def warn_of_unknown_settings(place: Place) -> None:
    """Log that this broker may not read the settings of a topic, and the consequences."""
    log.warning(
        "topic for ACLs not checked: no right to describe it",
        topic=place.topic,
        advice=f"grant DESCRIBE_CONFIGS on it; without, the whole topic is read anew after "
        f"{UNKNOWN_S:g} seconds without contact, and no snapshots are written",
    )


def retention_ms(settings: Mapping[str, str | None] | None) -> int | None:
    """Return how long a topic keeps removals by its settings; None if that is not known."""
    kept = None if settings is None else settings.get("delete.retention.ms")
    return None if kept is None else int(kept)


def _cluster_id(cluster: str | None, topic: str) -> str:
    """Return an id that every broker makes of the same topic, and of no other.

    It is no message of the topic, since two brokers that begin with it would make two.
    """
    digest = sha256(f"{cluster or ''}/{topic}".encode()).digest()[:_CLUSTER_ID_BYTES]
    text = urlsafe_b64encode(digest).rstrip(b"=").decode()
    # As Kafka's own ids, which never begin with a hyphen.
    return f"A{text[1:]}" if text.startswith("-") else text


def _described(session: Session, topic: str) -> tuple[Any, str | None]:
    """Return what is known of the topic, None if it is not there, and the id of its cluster."""
    request = MetadataRequest(
        topics=[MetadataRequestTopic(NO_ID, topic)], allow_auto_topic_creation=False
    )
    answer = session.ask(ApiKey.METADATA, request)
    found = next((each for each in answer.topics if each.name == topic), None)
    if found is None or found.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
        return None, answer.cluster_id
    if found.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        raise RequestRefused(
            found.error_code, f"Not authorized to access topics: [{topic}]; it needs READ and WRITE"
        )
    return found, answer.cluster_id


def _made(session: Session, topic: str) -> Any:
    """Make the topic, and wait until it has a leader; another broker may have made it meanwhile."""
    brokers = len(session.ask(ApiKey.METADATA, MetadataRequest(topics=[])).brokers)
    replicas = min(_REPLICAS, brokers)
    # By its own clock: Kafka refuses messages whose time is an hour ahead of that.
    configs = {"cleanup.policy": "compact", "message.timestamp.type": "LogAppendTime"}
    if replicas == _REPLICAS:
        configs["min.insync.replicas"] = str(_IN_SYNC)
    wanted = CreatableTopic(
        topic, 1, replicas, (), [CreatableTopicConfig(name, text) for name, text in configs.items()]
    )
    answer = session.ask(
        ApiKey.CREATE_TOPICS, CreateTopicsRequest([wanted], timeout_ms=_TIMEOUT_MS)
    )
    [result] = answer.topics
    if result.error_code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
        reason = result.error_message or code_name(result.error_code)
        raise RequestRefused(
            result.error_code, f"the topic {topic} is not there and was not made: {reason}"
        )
    if result.error_code == ErrorCode.NONE:
        log.info("topic for ACLs made", topic=topic, replicas=replicas, **configs)
    deadline = time.monotonic() + _MADE_WITHIN_S
    while time.monotonic() < deadline:
        found, _ = _described(session, topic)
        if found is not None and not found.error_code and _has_leader(found):
            return found
        time.sleep(0.1)
    raise StoreUnavailable(f"the topic {topic} was made and has no leader yet")


def _has_leader(found: Any) -> bool:
    return all(each.leader_id >= 0 for each in found.partitions) and bool(found.partitions)


def _check(
    session: Session, place: Place, found: Any, *, warns: bool
) -> Mapping[str, str | None] | None:
    """Raise `StoreError` for a topic that would not keep changes, or not their order.

    Return its settings, None if they may not be asked for.
    """
    partitions = found.partitions
    if len(partitions) != 1 and partitions:
        raise StoreError(
            f"{place}: the topic has {len(partitions)} partitions; there must be one, since only "
            "that has one order"
        )
    settings = _settings(session, place.topic)
    if settings is None:
        if warns:
            warn_of_unknown_settings(place)
        return None
    if problem := policy_problem(place, settings):
        raise StoreError(problem)
    kept = retention_ms(settings)
    if warns and kept is not None and kept < _SHORT_MS:
        log.warning(
            "topic for ACLs forgets removals soon: set delete.retention.ms to a day",
            topic=place.topic,
            delete_retention_ms=kept,
        )
    replicas = len(partitions[0].replica_nodes) if partitions else 1
    in_sync = int(settings.get("min.insync.replicas") or 1)
    if warns and replicas > 1 and in_sync < _IN_SYNC:
        log.warning(
            "topic for ACLs may lose changes: min.insync.replicas is 1",
            topic=place.topic,
            replicas=replicas,
        )
    if in_sync > replicas:
        raise StoreError(
            f"{place}: the topic has {replicas} replicas, and min.insync.replicas={in_sync} lets "
            "nobody write"
        )
    return settings


def _settings(session: Session, topic: str) -> dict[str, str | None] | None:
    """Return the settings of the topic that matter here, None if they may not be asked for."""
    [result] = session.ask(ApiKey.DESCRIBE_CONFIGS, settings_request(topic)).results
    if result.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
        return None
    if result.error_code:
        raise RequestRefused(result.error_code, result.error_message)
    return {each.name: each.value for each in result.configs}
