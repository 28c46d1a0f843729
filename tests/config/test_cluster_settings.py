"""The settings of the cluster in memory."""

import pytest

from aclbroker.broker.config import ConfigError, load
from aclbroker.broker.memory.groups import GroupSettings
from aclbroker.broker.server.group_settings import group_settings


def test_several_nodes_are_refused_where_no_cluster_is_kept():
    with pytest.raises(ConfigError, match=r"aclbroker\.nodes.*aclbroker\.cluster=memory"):
        load(overrides={"aclbroker.nodes": "3"})


def test_declared_groups_are_refused_beside_a_cluster_that_has_its_own():
    with pytest.raises(ConfigError, match=r"aclbroker\.catalog\.groups.*memory"):
        load(overrides={"aclbroker.cluster": "memory", "aclbroker.catalog.groups": "a"})


def test_a_cluster_in_memory_may_have_several_nodes():
    config = load(overrides={"aclbroker.cluster": "memory", "aclbroker.nodes": "3"})
    assert (config.cluster, config.nodes) == ("memory", 3)


def test_groups_behave_as_the_settings_of_kafka_say():
    config = load(
        overrides={
            "aclbroker.cluster": "memory",
            "group.initial.rebalance.delay.ms": "3000",
            "offsets.retention.minutes": "2",
            "group.consumer.assignors": "org.apache.kafka.coordinator.group.assignor.RangeAssignor",
            "group.consumer.migration.policy": "DISABLED",
        }
    )
    settings = group_settings(config)
    assert settings.initial_rebalance_delay_ms == 3000
    assert settings.offsets_retention_ms == 120_000
    assert settings.consumer_assignors == ("range",)
    assert settings.consumer_migration_policy == "disabled"
    assert "group.initial" not in str(config.warnings)


def test_groups_behave_by_default_as_their_settings_say():
    assert group_settings(load(overrides={"aclbroker.cluster": "memory"})) == GroupSettings()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("group.min.session.timeout.ms", "2000000", "at most 1800000"),
        ("group.consumer.assignors", "com.example.Mine", "no assignor that there is here"),
        ("group.consumer.assignors", ",", "no assignor"),
        ("group.consumer.migration.policy", "sometimes", "bidirectional"),
    ],
)
def test_settings_of_groups_that_cannot_be_are_refused(name: str, value: str, message: str):
    with pytest.raises(ConfigError, match=message):
        load(overrides={name: value})
