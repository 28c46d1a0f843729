"""PKCS#12 stores (RFC 7292), as Java and OpenSSL write them.

The package cryptography reads a store with one private key. Stores that keytool fills may hold
several: those stand outside of what is encrypted as a whole, and are found there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key
from cryptography.hazmat.primitives.serialization.pkcs12 import (
    PKCS12KeyAndCertificates,
    load_pkcs12,
)

from aclbroker.broker.auth.der import OCTET_STRING, SEQUENCE, SET, Element, element
from aclbroker.broker.auth.tls.entries import (
    KeyEntry,
    KeyStore,
    KeyStoreError,
    WrongKeyPassword,
    WrongPassword,
    belongs,
)

# Object identifiers as DER has them: PKCS#7 data, an encrypted key bag, its friendlyName.
_DATA: Final = bytes.fromhex("2a864886f70d010701")
_SHROUDED_KEY_BAG: Final = bytes.fromhex("2a864886f70d010c0a0102")
_FRIENDLY_NAME: Final = bytes.fromhex("2a864886f70d010914")

_UNREADABLE: Final = "the password does not open it, or it is damaged"


def read_key_store(data: bytes, password: str, key_password: str) -> KeyStore:
    """Read the private keys with their chains; raises `KeyStoreError`."""
    found = _load(data, password)
    certificates = list(_certificates(found))
    keys = list(_keys(data, key_password))
    if not keys and found.key is not None:
        name = found.cert.friendly_name if found.cert is not None else None
        keys = [((name or b"").decode(errors="replace"), found.key)]
    entries = []
    for alias, key in keys:
        own = next((each for each in certificates if belongs(key, each)), None)
        # Java passes over a key without a certificate, which can serve nobody.
        if own is not None:
            entries.append(KeyEntry(alias.lower(), key, tuple(_chain(own, certificates))))
    return KeyStore(tuple(entries))


def read_trust_store(data: bytes, password: str | None) -> KeyStore:
    """Read the certificates to trust; raises `KeyStoreError`.

    Beside a private key there are the certificates of its chain, which Java does not trust, and
    which cannot be told from others here: such a store is refused. Without one all are trusted,
    also those that lack the attribute by which Java knows what to trust.
    """
    found = _load(data, password)
    certificates = tuple(_certificates(found))
    if found.key is not None and len(certificates) > 1:
        raise KeyStoreError(
            "it holds a private key, so that it does not tell which certificates to trust; "
            "a trust store in PKCS12 must hold certificates alone"
        )
    return KeyStore(trusted=certificates)


def _load(data: bytes, password: str | None) -> PKCS12KeyAndCertificates:
    try:
        return load_pkcs12(data, None if password is None else password.encode())
    except (ValueError, UnsupportedAlgorithm) as error:
        raise WrongPassword(_UNREADABLE) from error


def _certificates(found: PKCS12KeyAndCertificates) -> Iterator[x509.Certificate]:
    if found.cert is not None:
        yield found.cert.certificate
    for each in found.additional_certs:
        yield each.certificate


def _chain(
    own: x509.Certificate, certificates: Iterable[x509.Certificate]
) -> Iterator[x509.Certificate]:
    """A certificate, that of its issuer, and so on, as far as they are there."""
    of_subject = {each.subject: each for each in certificates}
    sent: set[x509.Certificate] = set()
    current: x509.Certificate | None = own
    while current is not None and current not in sent:
        yield current
        sent.add(current)
        current = of_subject.get(current.issuer)


def _keys(data: bytes, password: str) -> Iterator[tuple[str, PrivateKeyTypes]]:
    """The private keys with their aliases. One without a name has a number, as in Java."""
    unnamed = 0
    for bag, attributes in _shrouded_keys(data):
        name = _friendly_name(attributes)
        if name is None:
            unnamed += 1
            name = str(unnamed)
        try:
            yield name, load_der_private_key(bag, password.encode())
        except (ValueError, UnsupportedAlgorithm) as error:
            text = "the password does not open the private key, or it is damaged"
            raise WrongKeyPassword(text) from error


def _shrouded_keys(data: bytes) -> list[tuple[bytes, list[Element]]]:
    """The key bags outside of encrypted parts; none if the store is not in DER, as some are."""
    try:
        _, contents, *_ = element(data).children(SEQUENCE)
        safes = element(_data(contents)).children(SEQUENCE)
        bags = [bag for safe in safes if _is_data(safe) for bag in _bags(safe)]
    except (ValueError, IndexError):
        return []
    return bags


def _bags(safe: Element) -> Iterator[tuple[bytes, list[Element]]]:
    for bag in element(_data(safe)).children(SEQUENCE):
        kind, value, *attributes = bag.children(SEQUENCE)
        if kind.content == _SHROUDED_KEY_BAG:
            yield value.content, attributes[0].children(SET) if attributes else []


def _is_data(content: Element) -> bool:
    return content.children(SEQUENCE)[0].content == _DATA


def _data(content: Element) -> bytes:
    _, value = content.children(SEQUENCE)
    [octets] = value.children()
    if octets.tag != OCTET_STRING:
        raise ValueError("data that is no octet string")
    return octets.content


def _friendly_name(attributes: Iterable[Element]) -> str | None:
    for attribute in attributes:
        kind, values = attribute.children(SEQUENCE)
        if kind.content == _FRIENDLY_NAME:
            return values.children(SET)[0].content.decode("utf-16-be", "replace")
    return None
