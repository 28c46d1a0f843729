"""The fields of requests that the gateway changes or refuses behind the gate, with the place."""

from collections.abc import Mapping
from typing import Final

PATCHED: Final[Mapping[str, str]] = {
    "ConsumerGroupHeartbeat subscribed_topic_regex": (
        "`upstream.subscriptions` sends names of topics that the member may describe."
    ),
    "StreamsGroupHeartbeat topology.subtopologies.source_topic_regex[]": (
        "`upstream.streams` refuses it, as Kafka does."
    ),
    "ShareFetch share_session_epoch": (
        "`upstream.share` refuses to continue a session of another connection."
    ),
}
"""The reasons, by the name of the API and the path of the field.

tests/gateway/test_patched_fields.py compares the requests that reach the cluster.
"""
