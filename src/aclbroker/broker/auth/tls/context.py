"""From TLS settings to an SSLContext for a server, as Kafka's DefaultSslEngineFactory makes one.

Stricter than there: a listener needs a private key, its certificate must belong to it, and who asks
for client certificates must say which to trust (Java would trust all public authorities).
"""

from __future__ import annotations

import os
import secrets
import ssl
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
)

from aclbroker.broker.auth.tls import ciphers, key_stores
from aclbroker.broker.auth.tls.entries import KeyEntry, belongs
from aclbroker.broker.auth.tls.key_manager import served
from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings

_PASSWORD_BYTES: Final = 32
_VERIFY_MODES: Final = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


@dataclass(frozen=True, slots=True)
class ServerTls:
    """The TLS context of a listener, and the certificates in it, one for each type of key.

    ``warnings`` are about these certificates, for the operator.
    """

    context: ssl.SSLContext
    certificates: tuple[x509.Certificate, ...]
    warnings: tuple[str, ...] = ()


def server_tls(settings: TlsSettings) -> ServerTls:
    """Read the stores and make a context; raises `TlsError`."""
    offered = ciphers.offer(settings.enabled_protocols, settings.cipher_suites)
    entries = own_entries(settings)
    trusted = key_stores.read_trust_store(settings)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.options |= ssl.OP_NO_RENEGOTIATION
    # A TLS 1.3 session that is resumed would outlive the client's certificate.
    context.num_tickets = 0
    ciphers.apply(offered, context)
    _verify_clients(context, settings.client_auth, trusted)
    for entry in entries:
        load_entry(context, entry, settings)
    certificates = tuple(entry.chain[0] for entry in entries)
    return ServerTls(context, certificates, (*_left_out(offered), *_not_valid(certificates)))


def own_entries(settings: TlsSettings) -> list[KeyEntry]:
    """Return the private keys to show, with their chains; raises `TlsError`."""
    setting = key_stores.key_store_setting(settings)
    entries = served(key_stores.read_key_store(settings).keys)
    if not entries:
        raise TlsError(setting, "it holds no private key with a certificate that TLS can use")
    for entry in entries:
        if not belongs(entry.key, entry.chain[0]):
            raise TlsError(
                setting, "its first certificate is not that of its private key: they do not match"
            )
    return entries


def _verify_clients(
    context: ssl.SSLContext, client_auth: str, trusted: Sequence[x509.Certificate] | None
) -> None:
    context.verify_mode = _VERIFY_MODES[client_auth]
    if client_auth == "none":
        return
    if not trusted:
        raise TlsError(
            "ssl.client.auth",
            "there is no certificate to trust: it needs ssl.truststore.location or "
            "ssl.truststore.certificates",
        )
    # As in Java every certificate of the trust store is trusted, also one that is no root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    encoded = b"".join(each.public_bytes(Encoding.DER) for each in trusted)
    context.load_verify_locations(cadata=encoded)


def load_entry(context: ssl.SSLContext, entry: KeyEntry, settings: TlsSettings) -> None:
    """Have a context show a private key and its chain; raises `TlsError`."""
    # Python reads keys from files only; the key in such a file is encrypted.
    password = secrets.token_hex(_PASSWORD_BYTES)
    key = entry.key.private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(password.encode())
    )
    chain = b"".join(certificate.public_bytes(Encoding.PEM) for certificate in entry.chain)
    with _as_file(key + chain) as path:
        try:
            context.load_cert_chain(path, password=password)
        except ssl.SSLError as error:
            reason = (error.reason or str(error)).replace("_", " ").lower()
            raise TlsError(
                key_stores.key_store_setting(settings), f"OpenSSL does not accept it: {reason}"
            ) from error


@contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """A file that nobody else can read, in memory where the system has that; removed afterwards."""
    if hasattr(os, "memfd_create"):
        with open(os.memfd_create("aclbroker"), "wb") as file:
            file.write(data)
            file.flush()
            yield f"/proc/self/fd/{file.fileno()}"
    else:
        with tempfile.NamedTemporaryFile() as file:
            file.write(data)
            file.flush()
            yield file.name


def _left_out(offered: ciphers.Offer) -> Iterator[str]:
    if offered.left_out:
        yield (
            f"{', '.join(offered.left_out)}: not offered, since finite-field Diffie-Hellman is "
            "not; the other suites of ssl.cipher.suites are"
        )


def _not_valid(certificates: Sequence[x509.Certificate]) -> Iterator[str]:
    now = datetime.now(UTC)
    for each in certificates:
        name = each.subject.rfc4514_string()
        if each.not_valid_after_utc <= now:
            yield f"the certificate of {name} expired on {each.not_valid_after_utc:%Y-%m-%d}"
        elif each.not_valid_before_utc > now:
            yield f"the certificate of {name} is not valid before {each.not_valid_before_utc}"
