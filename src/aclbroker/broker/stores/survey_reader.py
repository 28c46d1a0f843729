"""Reads a `Survey` of a topic or of ZooKeeper."""

from __future__ import annotations

from collections.abc import Mapping

from aclbroker.broker.config.store_url import ZOOKEEPER
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.stores.survey import Survey


async def survey(url: str, properties: Mapping[str, str]) -> Survey:
    """Return what there is in a topic or in ZooKeeper, also while brokers use it.

    Nothing is made or changed. Raises `StoreMissing`, `StoreUnavailable`, and `StoreError` for what
    cannot be read at all.
    """
    # Imported where they are asked for: both have clients that take time to load.
    if url.startswith(ZOOKEEPER):
        from aclbroker.broker.stores.zookeeper.settings import zookeeper_settings
        from aclbroker.broker.stores.zookeeper.surveying import survey_nodes

        return await survey_nodes(zookeeper_settings(url, properties))
    if url.startswith("kafka://"):
        from aclbroker.broker.stores.kafka.connection import SETTING, place_of
        from aclbroker.broker.stores.kafka.surveying import survey_topic

        return await survey_topic(place_of(url, properties.get(SETTING) or None))
    raise StoreError(f"{url}: only a topic or a ZooKeeper can be surveyed")
