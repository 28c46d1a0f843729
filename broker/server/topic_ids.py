"""The ids of declared topics, which are random and kept in the store across restarts."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from binascii import Error as Base64Error
from collections.abc import Collection
from typing import Final

from aclbroker.broker.catalog import new_topic_id
from aclbroker.broker.stores import AclStore, StoreError

KIND: Final = "topic_id"
_BYTES: Final = 16


async def load_topic_ids(store: AclStore, topics: Collection[str]) -> dict[str, bytes]:
    """Return the id of each topic; make and store one for each topic that has none.

    The ids of topics that are no longer declared are removed: as in Kafka, a topic that is created
    again under its old name gets a new id. Raises `StoreError` if the store fails or holds an id
    that is malformed.
    """
    stored = await store.load_records(KIND)
    ids = {name: _parsed(name, text) for name, text in stored.items() if name in topics}
    made = {name: new_topic_id() for name in topics if name not in ids}
    removed = stored.keys() - ids.keys()
    if made or removed:
        put = {name: _text(topic_id) for name, topic_id in made.items()}
        await store.apply_records(KIND, put, removed)
    return ids | made


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
