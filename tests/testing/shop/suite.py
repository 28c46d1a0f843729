"""The shop's own tests, in a run of pytest of their own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from aclbroker.testing import AclBroker
from tests.testing.shop import application


@pytest.fixture
def broker(acl_broker_factory: Callable[..., AclBroker]) -> AclBroker:
    return acl_broker_factory(topics={"orders": 1, "invoices": 1})


@pytest.fixture
def place(broker: AclBroker) -> Callable[[bytes], None]:
    return lambda order: application.place(settings(broker, "shop"), order)


def settings(broker: AclBroker, user: str) -> application.Config:
    return broker.client_config(user) | {"log_level": 0}


def test_an_order_is_placed(place):
    place(b"a cup")


def test_an_order_is_shipped(broker, place):
    place(b"a cup")
    assert application.ship(settings(broker, "store")) == b"a cup"


def test_an_order_is_billed(broker, place):
    place(b"a cup")
    application.bill(settings(broker, "till"))


async def test_an_invoice_is_looked_at(broker, place):
    place(b"a cup")
    application.bill(settings(broker, "till"))
    config = broker.client_config("auditor", "aiokafka")
    assert await application.audit(config) == b"invoice of a cup"
