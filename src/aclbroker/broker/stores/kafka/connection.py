"""How aiokafka reaches a cluster, of a Kafka client's settings, and how it leaves it again."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine
from typing import Any, Final, NamedTuple

from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.sasl.mechanism import option, sasl_client
from aclbroker.broker.client.settings import ClientSettings, read_addresses, read_settings
from aclbroker.broker.stores.store import StoreError
from aclbroker.broker.urls import without_login

SETTING: Final = "aclbroker.store.client.config"
"""The name of a property: the file of a Kafka client's settings, for the cluster of a topic."""

_MECHANISMS: Final = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_URL: Final = re.compile(r"kafka://(?P<addresses>[^/]+)/(?P<topic>[a-zA-Z0-9._-]{1,249})")


class Place(NamedTuple):
    """A topic of a cluster, the addresses of which are a text ``host:port,host:port``."""

    addresses: str
    topic: str
    settings: ClientSettings

    def __str__(self) -> str:
        return f"kafka://{self.addresses}/{self.topic}"


def place_of(url: str, config_file: str | None) -> Place:
    """Return the place that ``kafka://host:port[,host:port]/topic`` names.

    ``config_file`` is a Kafka client's properties file. Raises `StoreError`.
    """
    match = _URL.fullmatch(url)
    if match is None:
        raise StoreError(
            f"aclbroker.store={without_login(url)!r} names no topic; "
            "write kafka://HOST:PORT[,HOST:PORT]/TOPIC"
        )
    try:
        read_addresses(match["addresses"], "aclbroker.store")
        place = Place(match["addresses"], match["topic"], read_settings(config_file))
        _login(place.settings)
    except ClientConfigError as error:
        raise StoreError("\n".join(error.problems)) from None
    return place


def arguments(place: Place) -> dict[str, Any]:
    """Return what clients of aiokafka are made with. Raises `StoreError`."""
    settings = place.settings
    found: dict[str, Any] = {
        "bootstrap_servers": place.addresses.split(","),
        "client_id": settings.client_id or "aclbroker",
        "security_protocol": settings.protocol,
        "request_timeout_ms": int(settings.request_timeout * 1000),
    }
    try:
        if settings.protocol.endswith("SSL"):
            from aclbroker.broker.client.tls import client_context

            found["ssl_context"] = client_context(settings.values)
        return found | _login(settings)
    except ClientConfigError as error:
        raise StoreError("\n".join(error.problems)) from None


async def to_the_end(leaving: Coroutine[Any, Any, None]) -> None:
    """Do what stops a client of aiokafka's; who is cancelled meanwhile is told so after that.

    It has a task of its own: aiokafka cancels tasks in there and waits for them, so that what
    cancels who waits would be taken for that, and lost.
    """
    task = asyncio.create_task(leaving)
    try:
        await asyncio.wait([task])
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
    task.result()


def _login(settings: ClientSettings) -> dict[str, str]:
    """Return the arguments of a login; raises `ClientConfigError`."""
    if not settings.protocol.startswith("SASL_"):
        return {}
    sasl_client(settings)  # which tells what is wrong with it
    options = settings.jaas.options if settings.jaas else {}
    if settings.mechanism not in _MECHANISMS or options.get("tokenauth", "").lower() == "true":
        raise ClientConfigError(
            f"sasl.mechanism={settings.mechanism!r}: a store in a topic logs in with a user's "
            f"password; allowed: {', '.join(_MECHANISMS)}"
        )
    return {
        "sasl_mechanism": settings.mechanism,
        "sasl_plain_username": option(options, "username"),
        "sasl_plain_password": option(options, "password"),
    }
