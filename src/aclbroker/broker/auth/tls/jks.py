"""Java key stores (JKS), the format of Java's `sun.security.provider.JavaKeyStore`.

A store is a list of entries and, at its end, SHA-1 of the password and all bytes before. A private
key is encrypted with a stream of SHA-1 digests, each of the password and the digest before. That
is weak, and the format will not change any more: Java has written PKCS#12 in its place since
Java 9. The packages that read it (pyjks) are no longer kept and cannot be installed without a C
compiler.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
import struct
from collections.abc import Iterator
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key

from aclbroker.broker.auth.der import OCTET_STRING, SEQUENCE, element
from aclbroker.broker.auth.tls.entries import (
    KeyEntry,
    KeyStore,
    KeyStoreError,
    WrongKeyPassword,
    WrongPassword,
)

MAGIC: Final = b"\xfe\xed\xfe\xed"

_PRIVATE_KEY: Final = 1
_DIGEST_BYTES: Final = 20
_WHITENER: Final = b"Mighty Aphrodite"


def read_jks(data: bytes, password: str | None, key_password: str | None) -> KeyStore:
    """Read a store; raises `KeyStoreError`.

    Without a password it is not known whether somebody changed the store, as in Java, and without
    a ``key_password`` its private keys are left out, and their own certificates are among those
    to trust, as Java's trust managers have it.
    """
    content, digest = data[:-_DIGEST_BYTES], data[-_DIGEST_BYTES:]
    if password is not None and not hmac.compare_digest(
        digest, _sha1(_encoded(password), _WHITENER, content)
    ):
        raise WrongPassword("the password does not open it, or it is damaged")
    try:
        return _store(_Reader(content[len(MAGIC) :]), key_password)
    except (ValueError, UnsupportedAlgorithm, struct.error) as error:
        raise KeyStoreError("it is damaged") from error


def _store(reader: _Reader, key_password: str | None) -> KeyStore:
    keys: list[KeyEntry] = []
    trusted: list[x509.Certificate] = []
    version, count = reader.numbers(">II")
    for _ in range(count):
        (tag,) = reader.numbers(">I")
        alias = reader.text()
        reader.numbers(">Q")
        if tag != _PRIVATE_KEY:
            trusted.append(reader.certificate(version))
            continue
        protected = reader.block()
        (length,) = reader.numbers(">I")
        chain = tuple(reader.certificate(version) for _ in range(length))
        if key_password is None:
            trusted += chain[:1]
        else:
            keys.append(KeyEntry(alias.lower(), _private_key(protected, key_password), chain))
    return KeyStore(tuple(keys), tuple(trusted))


def _private_key(protected: bytes, password: str) -> PrivateKeyTypes:
    _, content = element(protected).children(SEQUENCE)
    if content.tag != OCTET_STRING:
        raise ValueError("a private key that is not protected as in a JKS store")
    data = content.content
    salt, encrypted = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:-_DIGEST_BYTES]
    secret = _encoded(password)
    stream = itertools.chain.from_iterable(_digests(secret, salt))
    key = bytes(byte ^ mask for byte, mask in zip(encrypted, stream, strict=False))
    if not hmac.compare_digest(data[-_DIGEST_BYTES:], _sha1(secret, key)):
        raise WrongKeyPassword("the password does not open the private key, or it is damaged")
    return load_der_private_key(key, None)


def _digests(secret: bytes, salt: bytes) -> Iterator[bytes]:
    digest = salt
    while True:
        digest = _sha1(secret, digest)
        yield digest


def _sha1(*parts: bytes) -> bytes:
    return hashlib.sha1(b"".join(parts), usedforsecurity=False).digest()


def _encoded(password: str) -> bytes:
    return password.encode("utf-16-be")


class _Reader:
    """Takes values off the front; raises ValueError or struct.error where there are too few."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._position = 0

    def numbers(self, layout: str) -> tuple[int, ...]:
        return struct.unpack(layout, self._take(struct.calcsize(layout)))

    def text(self) -> str:
        (length,) = self.numbers(">H")
        # Java's modified UTF-8: a surrogate is a character of its own.
        return self._take(length).decode("utf-8", "surrogatepass")

    def block(self) -> bytes:
        (length,) = self.numbers(">I")
        return self._take(length)

    def certificate(self, version: int) -> x509.Certificate:
        if version > 1 and self.text() != "X.509":
            raise ValueError("a certificate of another kind than X.509")
        return x509.load_der_x509_certificate(self.block())

    def _take(self, length: int) -> bytes:
        end = self._position + length
        if end > len(self._data):
            raise ValueError("it ends too early")
        taken = self._data[self._position : end]
        self._position = end
        return taken
