"""The ids of declared topics, which are random and kept in the store across restarts."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Collection, Mapping
from typing import Final

from aclbroker.broker.catalog import Catalog, new_topic_id
from aclbroker.broker.credentials.credentials import Listen
from aclbroker.broker.observability.logs import get_logger
from aclbroker.broker.stores import AclStore, Origin, StoreError
from aclbroker.broker.stores.store import SerialStore, claim

log = get_logger()

KIND: Final = "topic_id"
_BYTES: Final = 16


async def load_topic_ids(store: AclStore, topics: Collection[str]) -> dict[str, bytes]:
    """Return the id of each topic; make and store one for each topic that has none.

    The ids of topics that are no longer declared are removed: as in Kafka, a topic that is created
    again under its old name gets a new id. Not in a shared store, whose other brokers may declare
    others, or be told of new ones later: there all have the same ids, and these stay. Raises
    `StoreError` if the store fails or holds an id that is malformed.
    """
    stored = await store.load_records(KIND)
    ids = {name: _parsed(name, text) for name, text in stored.items() if name in topics}
    removed = stored.keys() - ids.keys()
    # Brokers of one file declare the same topics; those of a fleet need not.
    if removed and (isinstance(store, SerialStore) or not store.is_shared):
        await store.apply_records(KIND, {}, removed, Origin.now())
    wanted = {name: _text(new_topic_id()) for name in topics if name not in ids}
    agreed = await claim(store, KIND, wanted, Origin.now())
    return ids | {name: _parsed(name, text) for name, text in agreed.items()}


async def follow_topic_ids(store: AclStore, catalog: Catalog, listen: Listen) -> None:
    """Have a catalog take the ids that other brokers of a shared store give its topics.

    A topic whose id was removed by one that does not declare it keeps the id that it has.
    """

    def take(records: Mapping[str, str | None], _is_all: bool) -> None:
        for name, text in records.items():
            if text is not None and catalog.exists(name):
                try:
                    catalog.take_id(name, _parsed(name, text))
                except StoreError as error:
                    log.error("record is no topic id", kind=KIND, reason=str(error))

    listen(KIND, take)
    # What was changed since it was loaded has been told already.
    take(await store.load_records(KIND), True)


def _text(topic_id: bytes) -> str:
    """Return an id as Kafka's tools print it, in URL-safe base64 without padding."""
    return urlsafe_b64encode(topic_id).rstrip(b"=").decode()


def _parsed(name: str, text: str) -> bytes:
    try:
        topic_id = urlsafe_b64decode(text + "==")
    except (Base64Error, ValueError):
        topic_id = b""
    if len(topic_id) != _BYTES:
        raise StoreError(
            f"the ACL store has {text!r} as the id of the topic {name}, which is no topic id; "
            "restore the store from a backup, or remove the topic from aclbroker.catalog.topics "
            "for one start to give it a new id"
        )
    return topic_id
