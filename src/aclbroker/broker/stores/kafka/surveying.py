"""Reads all of a topic for a check or a copy, and names each message that cannot be read."""

from __future__ import annotations

import asyncio

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.stores.kafka.connection import Place
from aclbroker.broker.stores.kafka.health import KIND, begin_problem
from aclbroker.broker.stores.kafka.messages import Setting
from aclbroker.broker.stores.kafka.reader import Reader
from aclbroker.broker.stores.kafka.topic import prepare
from aclbroker.broker.stores.store import Origin
from aclbroker.broker.stores.survey import KeptRecord, Survey


async def survey_topic(place: Place) -> Survey:
    """Return what is committed now. Raises `StoreError`, `StoreMissing` without a topic."""
    topic = await asyncio.to_thread(prepare, place, makes=False)
    acls: dict[AclBinding, Origin | None] = {}
    records: dict[tuple[str, str], KeptRecord] = {}
    position = 0
    reader = Reader(place)
    await reader.open()
    try:
        async for whole in reader.everything(refuses=False):
            if len(whole):
                position = max(position, whole.position)
            for setting in whole.settings:
                _take(setting, acls, records)
        problems = [f"the message at {reason}" for reason in reader.unreadable.values()]
    finally:
        await reader.close()
    values = {key: kept.value for key, kept in records.items()}
    if problem := begin_problem(place, topic.topic_id, reader.begin, values):
        problems.append(problem)
    # A confirmation holds for this topic alone, so no copy has it.
    records = {key: kept for key, kept in records.items() if key[0] != KIND}
    return Survey(str(place), topic.id, position, acls, records, problems)


def _take(
    setting: Setting,
    acls: dict[AclBinding, Origin | None],
    records: dict[tuple[str, str], KeptRecord],
) -> None:
    if setting.binding is not None and setting.is_removed:
        acls.pop(setting.binding, None)
    elif setting.binding is not None:
        acls[setting.binding] = setting.origin
    elif setting.record is not None and setting.value is None:
        records.pop(setting.record, None)
    elif setting.record is not None and setting.value is not None:
        records[setting.record] = KeptRecord(setting.value, setting.origin)
