"""What every store must do, of one that is a topic of a real Kafka."""

import itertools

import pytest

from aclbroker.broker.stores import open_store
from tests.stores.million import keep_many
from tests.stores.test_contract import *  # noqa: F403 - the tests of all stores

_names = (f"acls-{number}" for number in itertools.count())


@pytest.fixture(name="store")
async def topic_store(kafka):
    opened = open_store(f"kafka://{kafka.listeners['PLAINTEXT']}/{next(_names)}", {"node.id": "1"})
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture(name="another")
async def topic_store_of_another(store):
    opened = open_store((await store.status()).place, {"node.id": "2"})
    await opened.open()
    yield opened
    await opened.close()


# Other tests keep 10,000 there each day.
@pytest.mark.thorough  # type: ignore[no-redef]
async def test_very_many_bindings_are_there_after_a_restart(
    store,
):
    # A million takes a topic minutes; a tenth of it does for the tests.
    await keep_many(store, 400)
