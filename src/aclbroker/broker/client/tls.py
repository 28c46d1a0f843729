"""From a client's settings to an SSLContext, as Kafka's DefaultSslEngineFactory makes one."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import Final

from cryptography.hazmat.primitives.serialization import Encoding

from aclbroker.broker.auth.tls import ciphers, key_stores
from aclbroker.broker.auth.tls.context import load_entry, own_entries
from aclbroker.broker.auth.tls.settings import JKS, PEM, PKCS12, TLS_1_2, TLS_1_3, TlsError
from aclbroker.broker.auth.tls.settings import TlsSettings as Stores
from aclbroker.broker.client.errors import ClientConfigError

_TYPES: Final = (JKS, PEM, PKCS12)
_VERSIONS: Final = (TLS_1_2, TLS_1_3)
_IDENTIFICATION: Final = "ssl.endpoint.identification.algorithm"
_OWN: Final = ("keystore_location", "keystore_key", "keystore_certificate_chain")


def client_context(values: Mapping[str, str]) -> ssl.SSLContext:
    """Return the context of settings ``ssl.*``, by name; raises `ClientConfigError`.

    Without a trust store those are trusted whom the system trusts. The name in the broker's
    certificate must be the host's, unless ``ssl.endpoint.identification.algorithm`` is empty.
    """
    stores = _stores(values)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        ciphers.apply(ciphers.offer(stores.enabled_protocols, stores.cipher_suites), context)
        trusted = key_stores.read_trust_store(stores)
        if trusted is None:
            context.load_default_certs()
        elif not trusted:
            raise TlsError("ssl.truststore.location", "it holds no certificate to trust")
        else:
            # As in Java every certificate of the trust store is trusted, also one that is no root.
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
            encoded = b"".join(each.public_bytes(Encoding.DER) for each in trusted)
            context.load_verify_locations(cadata=encoded)
        if any(getattr(stores, name) is not None for name in _OWN):
            for entry in own_entries(stores):
                load_entry(context, entry, stores)
    except TlsError as error:
        raise ClientConfigError(f"{error.setting}: {error}") from None
    context.check_hostname = _checks_hostname(values)
    return context


def _checks_hostname(values: Mapping[str, str]) -> bool:
    algorithm = values.get(_IDENTIFICATION, "https")
    if algorithm.lower() not in ("", "https"):
        raise ClientConfigError(f"{_IDENTIFICATION}={algorithm!r}: allowed: https, or empty")
    return bool(algorithm)


def _stores(values: Mapping[str, str]) -> Stores:
    def text(name: str) -> str | None:
        return values.get(f"ssl.{name}")

    def words(name: str) -> tuple[str, ...]:
        return tuple(filter(None, (each.strip() for each in values.get(name, "").split(","))))

    versions = words("ssl.enabled.protocols") or _VERSIONS
    for version in versions:
        if version not in _VERSIONS:
            raise ClientConfigError(
                f"ssl.enabled.protocols: {version!r}: allowed: {', '.join(_VERSIONS)}"
            )
    return Stores(
        keystore_type=_type(values, "ssl.keystore.type"),
        keystore_location=text("keystore.location"),
        keystore_password=text("keystore.password"),
        key_password=text("key.password"),
        keystore_key=text("keystore.key"),
        keystore_certificate_chain=text("keystore.certificate.chain"),
        truststore_type=_type(values, "ssl.truststore.type"),
        truststore_location=text("truststore.location"),
        truststore_password=text("truststore.password"),
        truststore_certificates=text("truststore.certificates"),
        enabled_protocols=versions,
        cipher_suites=words("ssl.cipher.suites"),
    )


def _type(values: Mapping[str, str], name: str) -> str:
    given = values.get(name, JKS).upper()
    if given not in _TYPES:
        raise ClientConfigError(f"{name}={given!r}: allowed: {', '.join(_TYPES)}")
    return given
