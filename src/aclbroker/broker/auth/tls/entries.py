"""The entries of key stores, the same for all formats."""

from __future__ import annotations

from typing import Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

SERVER_KEYS: Final = (
    rsa.RSAPrivateKey,
    ec.EllipticCurvePrivateKey,
    ed25519.Ed25519PrivateKey,
    ed448.Ed448PrivateKey,
)
"""The types of keys that a server can have in TLS 1.2 and 1.3."""


class KeyStoreError(Exception):
    """The store is damaged or of another format; the text says so without any of its content."""


class WrongPassword(KeyStoreError):
    """The store's password does not open it, or the store is damaged."""


class WrongKeyPassword(KeyStoreError):
    """The password of a private key does not open it, or it needs one, or has none."""


class KeyEntry(NamedTuple):
    """A private key and its certificate chain, the key's own certificate first.

    ``alias`` is in lower case, as Java has it.
    """

    alias: str
    key: PrivateKeyTypes
    chain: tuple[x509.Certificate, ...]


class KeyStore(NamedTuple):
    """The entries of a store, in its order: private keys, and certificates to trust."""

    keys: tuple[KeyEntry, ...] = ()
    trusted: tuple[x509.Certificate, ...] = ()


def belongs(key: PrivateKeyTypes, certificate: x509.Certificate) -> bool:
    """Tell whether the certificate belongs to this key."""
    encoded = (Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    of_key = key.public_key().public_bytes(*encoded)
    return of_key == certificate.public_key().public_bytes(*encoded)
