"""All that a store has at one position, read and checked, with what is damaged in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from aclbroker.broker.acl.bindings import AclBinding
from aclbroker.broker.config.store_url import ZOOKEEPER
from aclbroker.broker.stores.store import Origin, StoreError


class KeptRecord(NamedTuple):
    """The value of a record, and who gave it, if that is known."""

    value: str
    origin: Origin | None = None


class Survey(NamedTuple):
    """What there was. Each problem is a sentence for the operator."""

    place: str
    cluster_id: str
    position: int
    acls: Mapping[AclBinding, Origin | None]
    """Each with who made it, None where that is not known."""

    records: Mapping[tuple[str, str], KeptRecord]
    """By kind and name."""

    problems: Sequence[str] = ()

    @property
    def described(self) -> str:
        """What it is, in a line."""
        return (
            f"cluster id {self.cluster_id or 'none'}, position {self.position}, "
            f"{len(self.acls)} ACLs, {len(self.records)} records"
        )


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
