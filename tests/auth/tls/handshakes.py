"""TLS handshakes in memory, between a context under test and a client's."""

import ssl
from typing import NamedTuple

from tests.support.certificates import Identity
from tests.support.tls import show


class Ends(NamedTuple):
    """Both ends of a connection after its handshake."""

    server: ssl.SSLObject
    client: ssl.SSLObject


def client_context(trusted: str | None = None, identity: Identity | None = None) -> ssl.SSLContext:
    """A client that trusts PEM certificates, or whatever comes, and may show a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if trusted is None:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    else:
        context.load_verify_locations(cadata=trusted)
    if identity is not None:
        show(context, identity)
    return context


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> Ends:
    """Both ends after a handshake; raises ssl.SSLError where one end refuses."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = Ends(
        server.wrap_bio(to_server, to_client, server_side=True),
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
    )
    waiting = [ends.client, ends.server]
    for _ in range(10):
        for end in list(waiting):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            waiting.remove(end)
        if not waiting:
            return ends
    raise AssertionError("a handshake without an end")
