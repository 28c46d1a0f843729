"""Reads the key store and the trust store that settings name.

The rules are those of Kafka's DefaultSslEngineFactory. JKS and PKCS12 are told apart by the
content, whichever the type says, as Java does it since Java 9.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from cryptography import x509

from aclbroker.broker.auth.tls import jks, pem, pkcs12
from aclbroker.broker.auth.tls.entries import (
    KeyStore,
    KeyStoreError,
    WrongKeyPassword,
    WrongPassword,
)
from aclbroker.broker.auth.tls.settings import PEM, TlsError, TlsSettings

_KEYSTORE: Final = "ssl.keystore."
_TRUSTSTORE: Final = "ssl.truststore."
_KEY_PASSWORD: Final = "ssl.key.password"  # noqa: S105 # the name of a setting


def key_store_setting(settings: TlsSettings) -> str:
    """Return the name of the setting that the private key comes from."""
    inline = settings.keystore_key is not None
    return _KEYSTORE + ("certificate.chain" if inline else "location")


def read_key_store(settings: TlsSettings) -> KeyStore:
    """Read the private keys of the broker; raises `TlsError`."""
    _check_key_store(settings)
    setting = key_store_setting(settings)
    try:
        if settings.keystore_key is not None:
            chain = settings.keystore_certificate_chain or ""
            return pem.key_store(settings.keystore_key, chain, settings.key_password)
        data = _read(setting, settings.keystore_location or "")
        if settings.keystore_type == PEM:
            text = data.decode(errors="replace")
            return pem.key_store(text, text, settings.key_password)
        password = settings.keystore_password or ""
        key_password = password if settings.key_password is None else settings.key_password
        if data.startswith(jks.MAGIC):
            return jks.read_jks(data, password, key_password)
        return pkcs12.read_key_store(data, password, key_password)
    except WrongPassword as error:
        raise TlsError(f"{_KEYSTORE}password", f"{_of(settings)}{error}") from error
    except WrongKeyPassword as error:
        own = settings.key_password is not None or settings.keystore_type == PEM
        name = _KEY_PASSWORD if own else f"{_KEYSTORE}password"
        raise TlsError(name, f"{_of(settings)}{error}") from error
    except KeyStoreError as error:
        raise TlsError(setting, str(error)) from error


def read_trust_store(settings: TlsSettings) -> tuple[x509.Certificate, ...] | None:
    """Read the certificates to trust, None if nothing says which; raises `TlsError`."""
    _check_trust_store(settings)
    inline, path = settings.truststore_certificates, settings.truststore_location
    setting = _TRUSTSTORE + ("certificates" if inline is not None else "location")
    password = settings.truststore_password
    try:
        if inline is not None:
            return pem.trust_store(inline).trusted
        if path is None:
            return None
        data = _read(setting, path)
        if settings.truststore_type == PEM:
            return pem.trust_store(data.decode(errors="replace")).trusted
        if data.startswith(jks.MAGIC):
            return jks.read_jks(data, password, None).trusted
        return pkcs12.read_trust_store(data, password).trusted
    except WrongPassword as error:
        raise TlsError(f"{_TRUSTSTORE}password", f"{path}: {error}") from error
    except KeyStoreError as error:
        raise TlsError(setting, str(error)) from error


def _check_key_store(settings: TlsSettings) -> None:
    key, chain = settings.keystore_key, settings.keystore_certificate_chain
    path, password = settings.keystore_location, settings.keystore_password
    is_pem = settings.keystore_type == PEM
    if key is not None or chain is not None:
        _check_inline(_KEYSTORE, "key" if key is not None else "certificate.chain", is_pem, path)
    if key is None and chain is not None:
        raise TlsError(f"{_KEYSTORE}certificate.chain", "it needs ssl.keystore.key beside it")
    if key is not None and chain is None:
        raise TlsError(f"{_KEYSTORE}key", "it needs ssl.keystore.certificate.chain beside it")
    _check_password(_KEYSTORE, is_pem, password, path or key)
    if path is None and key is None:
        reason = "a listener with TLS needs a private key and its certificate"
        raise TlsError(f"{_KEYSTORE}location", reason)
    if not is_pem and password is None:
        raise TlsError(f"{_KEYSTORE}password", "ssl.keystore.location needs it beside it")


def _check_trust_store(settings: TlsSettings) -> None:
    path = settings.truststore_location
    is_pem = settings.truststore_type == PEM
    inline = settings.truststore_certificates
    if inline is not None:
        _check_inline(_TRUSTSTORE, "certificates", is_pem, path)
    _check_password(_TRUSTSTORE, is_pem, settings.truststore_password, path or inline)


def _check_inline(store: str, name: str, is_pem: bool, path: str | None) -> None:
    if not is_pem:
        raise TlsError(store + name, f"it needs {store}type=PEM beside it")
    if path is not None:
        raise TlsError(store + name, f"it cannot stand beside {store}location")


def _check_password(store: str, is_pem: bool, password: str | None, place: str | None) -> None:
    if password is None:
        return
    if is_pem:
        hint = ", whose keys have ssl.key.password" if store == _KEYSTORE else ""
        raise TlsError(f"{store}password", f"a store of type PEM has none{hint}")
    if place is None:
        raise TlsError(f"{store}password", f"it needs {store}location beside it")


def _read(setting: str, path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise TlsError(setting, f"cannot be read: {reason}") from error


def _of(settings: TlsSettings) -> str:
    return f"{settings.keystore_location}: " if settings.keystore_location else ""
