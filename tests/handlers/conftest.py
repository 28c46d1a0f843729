"""A broker's parts with a cluster in memory."""

from collections.abc import AsyncIterator

import pytest

from aclbroker.broker.handlers.services import Services
from tests.handlers.memory_parts import running


@pytest.fixture
async def parts() -> AsyncIterator[Services]:
    """A broker's parts with a cluster in memory, of 40 topics of a partition each."""
    async for made in running():
        yield made
