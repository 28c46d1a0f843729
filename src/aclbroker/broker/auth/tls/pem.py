"""PEM stores (KIP-651): certificates and one private key, each in a block of base64.

As in Kafka's DefaultSslEngineFactory whatever stands around the blocks is passed over, and the
line breaks in a block may be any white space, since a properties file tends to lose them.
"""

from __future__ import annotations

import base64
import itertools
import re
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import load_der_private_key

from aclbroker.broker.auth.tls.entries import KeyEntry, KeyStore, KeyStoreError, WrongKeyPassword

_ALIAS: Final = "kafka"
_BLOCK: Final = re.compile(
    r"-----BEGIN (?P<label>[A-Z0-9 ]+)-----\s(?P<body>.*?)-----END (?P=label)-----", re.DOTALL
)


def key_store(key: str, chain: str, key_password: str | None) -> KeyStore:
    """Read the private key of one text and the certificates of another, or of the same.

    Raises `KeyStoreError`.
    """
    certificates = _certificates(chain)
    for below, above in itertools.pairwise(certificates):
        if below.issuer != above.subject:
            raise KeyStoreError(
                "its certificates are no chain: each must be followed by that of its issuer, "
                "and the broker's own be first"
            )
    return KeyStore((KeyEntry(_ALIAS, _private_key(key, key_password), certificates),))


def trust_store(text: str) -> KeyStore:
    """Read certificates to trust; raises `KeyStoreError`."""
    return KeyStore(trusted=_certificates(text))


def _certificates(text: str) -> tuple[x509.Certificate, ...]:
    blocks = [data for label, data in _blocks(text) if label.endswith("CERTIFICATE")]
    if not blocks:
        raise KeyStoreError("it holds no certificate (-----BEGIN CERTIFICATE-----)")
    try:
        return tuple(x509.load_der_x509_certificate(data) for data in blocks)
    except (ValueError, UnsupportedAlgorithm):
        raise KeyStoreError("one of its certificates is no X.509 certificate") from None


def _private_key(text: str, password: str | None) -> PrivateKeyTypes:
    blocks = [data for label, data in _blocks(text) if label.endswith("PRIVATE KEY")]
    if len(blocks) != 1:
        raise KeyStoreError(f"it holds {len(blocks)} private keys and must hold one")
    try:
        return load_der_private_key(blocks[0], None if password is None else password.encode())
    except TypeError:
        problem = "is encrypted, and no password is given"
        if password is not None:
            problem = "is not encrypted, and a password is given"
        raise WrongKeyPassword(f"the private key {problem}") from None
    except (ValueError, UnsupportedAlgorithm) as error:
        if password is not None:
            text = "the password does not open the private key, or it is no PKCS#8 key"
            raise WrongKeyPassword(text) from error
        raise KeyStoreError("its private key is no PKCS#8 key") from error


def _blocks(text: str) -> list[tuple[str, bytes]]:
    found = []
    for match in _BLOCK.finditer(text):
        label, body = match["label"], match["body"]
        if ":" in body:
            raise KeyStoreError(f"its {label} has headers, as a key in PKCS#8 has not")
        try:
            found.append((label, base64.b64decode("".join(body.split()), validate=True)))
        except ValueError:
            raise KeyStoreError(f"its {label} is not in base64") from None
    return found
