"""A Kafka in memory, for what needs no real one."""

import pytest

from tests.support.memory_kafka import memory_kafka


@pytest.fixture(scope="module")
def memory_proxy():
    """The proxy through which a cluster in memory is reached; each test names its own topic."""
    with memory_kafka() as proxy:
        yield proxy
