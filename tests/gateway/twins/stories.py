"""All sequences of requests as clients send them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from tests.gateway.twins.administration import (
    broker_configs,
    created_by_metadata,
    deletion,
    pages,
)
from tests.gateway.twins.groups import by_regex, classic_group, consumer_group
from tests.gateway.twins.records import Story, fetch_session, topics, transaction, waiting_fetch
from tests.gateway.twins.shares import share_group
from tests.gateway.twins.world import World

STORIES: Final[tuple[Callable[[World], Story], ...]] = (
    topics,
    fetch_session,
    waiting_fetch,
    classic_group,
    consumer_group,
    by_regex,
    transaction,
    share_group,
    deletion,
    created_by_metadata,
    broker_configs,
    pages,
)
