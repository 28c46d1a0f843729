"""Topics that a test creates without a client: what no topic may have is refused."""

from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from aclbroker.testing import AclBroker


@pytest.fixture(scope="module")
def broker() -> Iterator[AclBroker]:
    with AclBroker() as running:
        yield running


@pytest.mark.parametrize(
    ("configs", "why"),
    [
        ({"nope": "x"}, "Unknown topic config name: nope"),
        ({"retention.ms": "x"}, "Invalid value x for configuration retention.ms"),
        ({"retention.ms": 5}, "the value of retention.ms is to be a text: '5'"),
        ({"cleanup.policy": "purge"}, "String must be one of: compact, delete"),
        ({"min.compaction.lag.ms": "9", "max.compaction.lag.ms": "5"}, "conflict topic config"),
    ],
)
def test_a_configuration_that_no_topic_may_have_is_refused(
    broker: AclBroker, configs: Mapping[str, Any], why: str
):
    with pytest.raises(ValueError, match=why):
        broker.create_topic("refused", configs=configs)
    broker.create_topic("refused", configs={"retention.ms": "5"})
    broker._broker.call(lambda: broker._broker.cluster.topics.delete(_topic(broker, "refused")))


def test_more_partitions_than_a_cluster_takes_are_refused(broker: AclBroker):
    with pytest.raises(ValueError, match="at most 50000 partitions"):
        broker.create_topic("large", 50_001)
    broker.create_topic("small", 2)
    with pytest.raises(ValueError, match="at most 50000 partitions"):
        broker.create_topic("large", 49_999)


def _topic(broker: AclBroker, name: str) -> Any:
    return broker._broker.cluster.topics.by_name[name]
