"""All stories, in the order in which they are told."""

from __future__ import annotations

from typing import Final

from aclbroker.conformance.behaviour.stories import (
    classic_groups,
    configs,
    consumer_groups,
    fetching,
    group_offsets,
    internal_topics,
    offsets,
    places,
    producing,
    share_groups,
    sharing,
    topics,
    transaction_versions,
    transactions,
    transactions_refused,
)
from aclbroker.conformance.behaviour.story import Story

STORIES: Final[tuple[Story, ...]] = (
    *producing.STORIES,
    *fetching.STORIES,
    *offsets.STORIES,
    *topics.STORIES,
    *configs.STORIES,
    *classic_groups.STORIES,
    *consumer_groups.STORIES,
    *group_offsets.STORIES,
    *share_groups.STORIES,
    *sharing.STORIES,
    *transactions.STORIES,
    *transactions_refused.STORIES,
    *transaction_versions.STORIES,
    *places.STORIES,
    *internal_topics.STORIES,
)
