"""Settings of brokers with TLS, ours and Kafka's alike, and clients for them."""

import os
import ssl
from pathlib import Path

from tests.support.accounts import PLAIN_JAAS
from tests.support.certificates import Authority, Identity, pem

LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SSL://127.0.0.1:0,SASL_SSL://127.0.0.1:0",
    "sasl.enabled.mechanisms": "PLAIN",
    "listener.name.sasl_ssl.plain.sasl.jaas.config": PLAIN_JAAS,
}
"""The part of server.properties with a listener of each kind, and the users of `accounts`."""


def pem_stores(directory: Path, identity: Identity, authority: Authority) -> dict[str, str]:
    """Write a PEM key store and trust store; returns the settings that name them."""
    keystore, truststore = directory / "keystore.pem", directory / "truststore.pem"
    keystore.write_text(identity.pem())
    truststore.write_text(pem(authority.certificate))
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(keystore),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(truststore),
    }


def client_tls(authority: Authority, identity: Identity | None = None) -> ssl.SSLContext:
    """A client that trusts an authority, and shows a certificate if it has one."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=pem(authority.certificate))
    if identity is not None:
        show(context, identity)
    return context


def show(context: ssl.SSLContext, identity: Identity) -> None:
    """Make a client show a certificate."""
    # A file in memory, so that nothing is left behind.
    with open(os.memfd_create("client"), "w") as file:
        file.write(identity.pem())
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
