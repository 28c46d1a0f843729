"""Makes the listeners from the settings, and refuses those that cannot be as safe as asked."""

import socket
from collections.abc import Mapping

from aclbroker.broker.config.authentication import (
    max_reauth_ms,
    read_mapping_rules,
    read_mechanisms,
)
from aclbroker.broker.config.endpoints import (
    Endpoint,
    is_every_interface,
    is_loopback,
    parse_endpoints,
    refuse_shared_ports,
)
from aclbroker.broker.config.model import Listener
from aclbroker.broker.config.reader import Reader
from aclbroker.broker.config.tls import read_tls, warn_of_client_auth
from aclbroker.broker.config.upstream_definitions import FIRST_PORT
from aclbroker.broker.config.values import SECURITY_PROTOCOLS

# Reading these reports a value that asks for protection which does not exist here.
_CHECKED_PER_LISTENER = ("plain.sasl.server.callback.handler.class",)


def read_listeners(reader: Reader) -> tuple[Listener, ...]:
    """The broker's listeners in the order of `listeners`; problems go to the reader's report."""
    controllers = {name.upper() for name in reader.value("controller.listener.names")}
    endpoints = _endpoints(reader, "listeners")
    advertised = {
        endpoint.name: endpoint for endpoint in _endpoints(reader, "advertised.listeners")
    }
    _check_advertised(reader, {endpoint.name for endpoint in endpoints}, advertised)
    listeners = []
    for endpoint in endpoints:
        if endpoint.name in controllers:
            reader.report.notes.append(
                f"listener {endpoint.name} belongs to a controller and is not opened"
            )
            continue
        listener = _listener(reader, endpoint, advertised.get(endpoint.name))
        if listener is not None:
            listeners.append(listener)
    warn_of_client_auth(reader, [listener.security_protocol for listener in listeners])
    asked = reader.value("listeners")
    if not asked or (endpoints and all(each.name in controllers for each in endpoints)):
        reader.refuse("listeners", "there is no listener of a broker")
    return tuple(listeners)


def _endpoints(reader: Reader, name: str) -> list[Endpoint]:
    try:
        endpoints = parse_endpoints(reader.value(name) or ())
        if name == "listeners":
            refuse_shared_ports(endpoints)
    except ValueError as error:
        reader.refuse(name, str(error))
        return []
    return endpoints


def _check_advertised(reader: Reader, names: set[str], advertised: Mapping[str, Endpoint]) -> None:
    for name, endpoint in advertised.items():
        if name not in names:
            reader.refuse(
                "advertised.listeners",
                f"{name!r} is not in listeners",
                ", ".join(sorted(names)),
            )
        if endpoint.host is not None and is_every_interface(endpoint.host):
            reader.refuse(
                "advertised.listeners",
                f"{endpoint.host} is not an address to connect to",
                "an address or name that clients can connect to",
            )


def _listener(reader: Reader, endpoint: Endpoint, advertised: Endpoint | None) -> Listener | None:
    name = endpoint.name
    protocol = _security_protocol(reader, name)
    if protocol is None:
        return None
    for checked in _CHECKED_PER_LISTENER:
        reader.value(checked, name)
    mechanisms = read_mechanisms(reader, name) if protocol.startswith("SASL_") else {}
    shown = advertised or _own_address(reader, endpoint)
    return Listener(
        name=name,
        security_protocol=protocol,
        host=endpoint.host,
        port=endpoint.port,
        advertised_host=shown.host or socket.getfqdn(),
        advertised_port=shown.port,
        mechanisms=mechanisms,
        max_reauth_ms={
            mechanism: max_reauth_ms(reader, name, mechanism) for mechanism in mechanisms
        },
        principal_builder_class=reader.value("principal.builder.class", name),
        ssl_principal_mapping_rules=read_mapping_rules(
            reader, "ssl.principal.mapping.rules", name, needed=protocol == "SSL"
        ),
        sasl_kerberos_principal_to_local_rules=read_mapping_rules(
            reader,
            "sasl.kerberos.principal.to.local.rules",
            name,
            needed="GSSAPI" in mechanisms,
        ),
        max_connections=reader.value("max.connections", name),
        tls=read_tls(reader, name, protocol),
        first_broker_port=reader.value(FIRST_PORT, name),
    )


def _own_address(reader: Reader, endpoint: Endpoint) -> Endpoint:
    if endpoint.host is None or not is_every_interface(endpoint.host):
        return endpoint
    if not reader.given("advertised.listeners"):
        reader.refuse(
            "listeners",
            f"advertised.listeners must be set, because {endpoint.host} is not an address to "
            "connect to",
            f"advertised.listeners such as {endpoint.name}://host.example.org:{endpoint.port}",
        )
    return endpoint._replace(host=None)


def _security_protocol(reader: Reader, name: str) -> str | None:
    protocol: str | None = reader.value("listener.security.protocol.map").get(name)
    allowed = ", ".join(SECURITY_PROTOCOLS)
    custom_map = reader.given("listener.security.protocol.map")
    if protocol is None:
        reader.refuse(
            "listener.security.protocol.map" if custom_map else "listeners",
            f"listener {name} has no security protocol",
            f"{name}:PROTOCOL in listener.security.protocol.map, protocol one of {allowed}",
        )
    return protocol


def reachable_listeners(listeners: tuple[Listener, ...]) -> list[Listener]:
    """The listeners that other machines can reach."""
    return [listener for listener in listeners if not is_loopback(listener.host)]
