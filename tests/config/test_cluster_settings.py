"""The settings of the cluster in memory."""

import pytest

from aclbroker.broker.config import ConfigError, load


def test_several_nodes_are_refused_where_no_cluster_is_kept():
    with pytest.raises(ConfigError, match=r"aclbroker\.nodes.*aclbroker\.cluster=memory"):
        load(overrides={"aclbroker.nodes": "3"})


def test_declared_groups_are_refused_beside_a_cluster_that_has_its_own():
    with pytest.raises(ConfigError, match=r"aclbroker\.catalog\.groups.*memory"):
        load(overrides={"aclbroker.cluster": "memory", "aclbroker.catalog.groups": "a"})


def test_a_cluster_in_memory_may_have_several_nodes():
    config = load(overrides={"aclbroker.cluster": "memory", "aclbroker.nodes": "3"})
    assert (config.cluster, config.nodes) == ("memory", 3)
