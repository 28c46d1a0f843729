"""How the gateway reaches the cluster upstream: addresses, login and limits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from aclbroker.broker.backends.backend import BackendUnavailable
from aclbroker.broker.client.errors import ClientConfigError, ClientError
from aclbroker.broker.client.sasl.mechanism import MakeClient, sasl_client
from aclbroker.broker.client.settings import Address, ClientSettings, read_addresses, settings_of
from aclbroker.broker.config import Config
from aclbroker.broker.config.upstream_definitions import UPSTREAM_MECHANISMS, UPSTREAM_PREFIX

if TYPE_CHECKING:
    import ssl


class UpstreamUnavailable(BackendUnavailable):
    """The cluster upstream cannot be reached, refuses the login, or has closed a connection."""


class UpstreamSettingsError(ValueError):
    """The settings of the cluster upstream cannot be used."""


@dataclass(frozen=True, slots=True)
class Access:
    """The addresses of the cluster upstream, and how to connect and log in.

    ``largest_answer`` is in bytes. A client is closed ``failure_delay`` seconds after a connection
    upstream has failed, because it would otherwise connect again at once.
    """

    addresses: tuple[Address, ...]
    settings: ClientSettings
    tls: ssl.SSLContext | None = field(repr=False)
    sasl: MakeClient | None = field(repr=False)
    largest_answer: int
    failure_delay: float


def upstream_access(config: Config) -> Access:
    """Return the access that a configuration describes; raises `UpstreamSettingsError`."""
    given = {
        name.removeprefix(UPSTREAM_PREFIX): setting for name, setting in config.upstream.items()
    }
    try:
        addresses = read_addresses(given.pop("bootstrap.servers").value)
        settings = settings_of(given)
        tls = None
        if settings.protocol.endswith("SSL"):
            # Imported where it is needed, since it takes longer than everything else here.
            from aclbroker.broker.client.tls import client_context

            tls = client_context(settings.values)
        sasl = None
        if settings.protocol.startswith("SASL_"):
            if settings.mechanism not in UPSTREAM_MECHANISMS:
                allowed = ", ".join(UPSTREAM_MECHANISMS)
                raise ClientConfigError(f"sasl.mechanism is needed; allowed: {allowed}")
            sasl = sasl_client(settings)
    except ClientError as error:
        raise UpstreamSettingsError(f"settings {UPSTREAM_PREFIX}*: {error}") from None
    return Access(
        addresses=tuple(addresses),
        settings=settings,
        tls=tls,
        sasl=sasl,
        largest_answer=config.socket_request_max_bytes,
        failure_delay=config.connection_failed_authentication_delay_ms / 1000,
    )


def shown(address: Address) -> str:
    """Return an address as HOST:PORT."""
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
