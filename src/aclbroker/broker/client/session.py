"""A session with a cluster: connected to one of its brokers, logged in, with versions agreed on.

Any broker of a cluster answers requests about ACLs, users and tokens; those of a KRaft cluster have
its controller make the changes. So one connection is enough.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Final, Self

from aclbroker.broker.client.blocking import BlockingClient, NoAnswer, connect
from aclbroker.broker.client.errors import (
    AuthenticationRefused,
    RequestRefused,
    TlsFailed,
    Unreachable,
)
from aclbroker.broker.client.settings import Address, ClientSettings
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ProtocolError

DEFAULT_CLIENT_ID: Final = "aclbroker"
_CONTROLLERS: Final = 2
"""The type of endpoints that a DescribeCluster asks about (KIP-919)."""
_MOST_MESSAGES: Final = 32
"""How many messages a login may take: Kerberos takes four."""


class Session:
    """A connection on which requests are sent at the newest version that both sides know.

    Methods that ask raise `Unreachable` if there is no answer, and `RequestRefused` for one that is
    an error.
    """

    def __init__(self, client: BlockingClient, address: Address) -> None:
        self.client = client
        """The connection, for requests of a chosen version, or that have no answer."""

        self.address = address
        self._offered: dict[int, range] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connection."""
        self.client.close()

    @property
    def own_host(self) -> str:
        """The address of this end, which is what the broker sees if nothing rewrites it."""
        return str(self.client.socket.getsockname()[0])

    def version(self, key: ApiKey) -> int:
        """Return the version at which requests of a key are sent."""
        if self._offered is None:
            self._offered = self._versions()
        ours, theirs = APIS[key].versions, self._offered.get(key, range(0))
        common = [each for each in theirs if each in ours]
        if not common:
            told = f"{theirs[0]} to {theirs[-1]}" if theirs else "none"
            raise RequestRefused(
                ErrorCode.UNSUPPORTED_VERSION,
                f"The broker offers of {APIS[key].name} the versions {told}, "
                f"{ours[0]} to {ours[-1]} are known here.",
            )
        return common[-1]

    def ask(self, key: ApiKey, message: Any) -> Any:
        """Send a request and return its answer."""
        return self._ask(key, self.version(key), message)

    def _ask(self, key: ApiKey, version: int, message: Any) -> Any:
        try:
            return self.client.ask(key, version, message)
        except NoAnswer as error:
            raise Unreachable(
                f"{_shown(self.address)} did not answer {key.name} in time"
            ) from error
        except OSError as error:
            # With TLS 1.3 a broker refuses a client's certificate after the handshake.
            if _is_tls_error(error):
                raise TlsFailed(f"{_shown(self.address)}: {_tls_reason(error)}") from error
            raise Unreachable(
                f"{_shown(self.address)} closed the connection instead of an answer to {key.name}"
            ) from error
        except ProtocolError as error:
            raise Unreachable(f"{_shown(self.address)} answered with {error}") from error

    def _versions(self) -> dict[int, range]:
        from aclbroker.protocol.messages.api_versions import ApiVersionsRequest

        answer = self._ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
        if answer.error_code:
            raise RequestRefused(answer.error_code, None)
        return {
            each.api_key: range(each.min_version, each.max_version + 1) for each in answer.api_keys
        }

    def log_in(self, settings: ClientSettings) -> None:
        """Authenticate by SASL; raises `AuthenticationRefused`, `RequestRefused`, `Unreachable`."""
        from aclbroker.broker.client.sasl.mechanism import sasl_client
        from aclbroker.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
        from aclbroker.protocol.messages.sasl_handshake import SaslHandshakeRequest

        exchange = sasl_client(settings)(self.address[0])
        message: bytes | None = exchange.first()
        greeting = self._ask(ApiKey.SASL_HANDSHAKE, 1, SaslHandshakeRequest(settings.mechanism))
        if greeting.error_code:
            raise RequestRefused(greeting.error_code, _not_offered(settings, greeting))
        for _ in range(_MOST_MESSAGES):
            if message is None:
                return
            answer = self._ask(ApiKey.SASL_AUTHENTICATE, 0, SaslAuthenticateRequest(message))
            if answer.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED:
                raise AuthenticationRefused(answer.error_message or "SASL Authentication failed.")
            if answer.error_code:
                raise RequestRefused(answer.error_code, answer.error_message)
            message = exchange.answer(answer.auth_bytes)
        raise AuthenticationRefused("the broker does not end the login")


def _not_offered(settings: ClientSettings, greeting: Any) -> str | None:
    if greeting.error_code != ErrorCode.UNSUPPORTED_SASL_MECHANISM:
        return None
    offered = ", ".join(greeting.mechanisms)
    return (
        f"Client SASL mechanism '{settings.mechanism}' not enabled in the server, "
        f"enabled mechanisms are [{offered}]"
    )


def open_session(addresses: Sequence[Address], settings: ClientSettings) -> Session:
    """Connect to the first broker that can be reached, log in and return the session.

    Raises `Unreachable` with the reason of each address if there is none; `TlsFailed`,
    `AuthenticationRefused` and `RequestRefused` if one was reached that lets the client not in, for
    the others would not either; and `ClientConfigError`.
    """
    tls = _tls(settings)
    reasons = []
    for address in addresses:
        try:
            session = _connected(address, settings, tls)
        except Unreachable as error:
            reasons.append(str(error))
            continue
        try:
            if settings.protocol.startswith("SASL_"):
                session.log_in(settings)
            return session
        except Unreachable as error:
            session.close()
            reasons.append(str(error))
        except BaseException:
            session.close()
            raise
    raise Unreachable("; ".join(reasons))


def open_controller_session(addresses: Sequence[Address], settings: ClientSettings) -> Session:
    """Return a session with the active controller of a KRaft cluster, which any controller names.

    Raises what `open_session` raises, and `RequestRefused` if a broker is at the address.
    """
    from aclbroker.protocol.messages.describe_cluster import DescribeClusterRequest

    session = open_session(addresses, settings)
    try:
        request = DescribeClusterRequest(endpoint_type=_CONTROLLERS)
        if session.version(ApiKey.DESCRIBE_CLUSTER) < 1:
            raise RequestRefused(
                ErrorCode.UNSUPPORTED_VERSION, "The broker does not tell where its controllers are."
            )
        answer = session.ask(ApiKey.DESCRIBE_CLUSTER, request)
        if answer.error_code:
            raise RequestRefused(answer.error_code, answer.error_message)
        places = {each.broker_id: (each.host, each.port) for each in answer.brokers}
        active = places.get(answer.controller_id)
        if active is None:
            raise Unreachable("the controllers have no leader now")
        if active == session.address:
            return session
    except BaseException:
        session.close()
        raise
    session.close()
    return open_session([active], settings)


def _tls(settings: ClientSettings) -> Any:
    if not settings.protocol.endswith("SSL"):
        return None
    # Imported where it is needed: it takes most of the time of a short command.
    from aclbroker.broker.client.tls import client_context

    return client_context(settings.values)


def _connected(address: Address, settings: ClientSettings, tls: Any) -> Session:
    try:
        connection = connect(*address, settings.connect_timeout, tls)
    except OSError as error:
        if _is_tls_error(error):
            raise TlsFailed(f"{_shown(address)}: {_tls_reason(error)}") from error
        reason = "no answer in time" if isinstance(error, TimeoutError) else error.strerror or error
        raise Unreachable(f"{_shown(address)}: {reason}") from error
    connection.settimeout(settings.request_timeout)
    return Session(BlockingClient(connection, settings.client_id or DEFAULT_CLIENT_ID), address)


def _is_tls_error(error: OSError) -> bool:
    # Without an import of ssl, which takes longer than all else where there is no TLS.
    return "ssl" in sys.modules and isinstance(error, sys.modules["ssl"].SSLError)


def _tls_reason(error: Any) -> str:
    told = getattr(error, "verify_message", None) or error.reason or str(error)
    return f"SSL handshake failed: {str(told).replace('_', ' ').lower()}"


def _shown(address: Address) -> str:
    host, port = address
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
