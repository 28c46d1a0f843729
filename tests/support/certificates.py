"""Certificates for tests: made anew each time, by an authority that nobody else trusts."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    pkcs12,
)

PASSWORD = "store-secret"
"""The password of stores, unless a test is about passwords."""

LOOPBACK = ("localhost", "127.0.0.1")

Key = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey

_MAKERS: dict[str, Callable[[], Key]] = {
    "EC": lambda: ec.generate_private_key(ec.SECP256R1()),
    "RSA": lambda: rsa.generate_private_key(65537, 2048),
    "weak RSA": lambda: rsa.generate_private_key(65537, 1024),
    "Ed25519": ed25519.Ed25519PrivateKey.generate,
}


class Identity(NamedTuple):
    """A private key and its certificate chain, its own certificate first."""

    key: Key
    chain: tuple[x509.Certificate, ...]

    @property
    def certificate(self) -> x509.Certificate:
        """Its own certificate."""
        return self.chain[0]

    def key_pem(self, password: str | None = None) -> str:
        """The private key in PKCS#8, encrypted if there is a password."""
        encryption = _encryption(password)
        return self.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()

    def chain_pem(self) -> str:
        """The certificates one after the other."""
        return pem(*self.chain)

    def pem(self, password: str | None = None) -> str:
        """Key and chain, as a PEM key store holds them."""
        return self.key_pem(password) + self.chain_pem()

    def pkcs12(self, password: str = PASSWORD, alias: str = "broker") -> bytes:
        """A PKCS#12 key store."""
        return pkcs12.serialize_key_and_certificates(
            alias.encode(), self.key, self.certificate, self.chain[1:], _encryption(password)
        )


class Authority:
    """A certificate authority; with an `issuer` it is an intermediate one."""

    def __init__(self, name: str = "Test CA", issuer: Authority | None = None) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = x509.Name.from_rfc4514_string(f"CN={name}")
        self._issuer = issuer
        signer = issuer or self
        built = _builder(self.name, signer.name, self.key).add_extension(
            x509.BasicConstraints(ca=True, path_length=None), critical=True
        )
        self.certificate = built.sign(signer.key, hashes.SHA256())

    @property
    def chain(self) -> tuple[x509.Certificate, ...]:
        """Its certificate and those above it, without the root."""
        return (self.certificate, *self._issuer.chain) if self._issuer else ()

    def issue(
        self,
        subject: str = "CN=localhost",
        *,
        kind: str = "EC",
        names: Sequence[str] = LOOPBACK,
        days: float = 30,
    ) -> Identity:
        """Issue a certificate; `kind` is that of its key, and if `days` < 0 it expired."""
        key = _MAKERS[kind]()
        name = x509.Name.from_rfc4514_string(subject)
        builder = _builder(name, self.name, key, days)
        if names:
            san = x509.SubjectAlternativeName([_general_name(each) for each in names])
            builder = builder.add_extension(san, critical=False)
        certificate = builder.sign(self.key, hashes.SHA256())
        return Identity(key, (certificate, *self.chain))


def self_signed(subject: str, *, kind: str = "EC") -> Identity:
    """A certificate that is its own issuer, as `keytool -genkeypair` makes one."""
    key = _MAKERS[kind]()
    name = x509.Name.from_rfc4514_string(subject)
    algorithm = None if kind == "Ed25519" else hashes.SHA256()
    return Identity(key, (_builder(name, name, key).sign(key, algorithm),))


def pem(*certificates: x509.Certificate) -> str:
    """Certificates as a PEM trust store holds them."""
    return "".join(each.public_bytes(Encoding.PEM).decode() for each in certificates)


def pkcs12_truststore(*certificates: x509.Certificate, password: str = PASSWORD) -> bytes:
    """Certificates as Java writes a PKCS#12 trust store."""
    trusted = [
        pkcs12.PKCS12Certificate(each, f"ca{number}".encode())
        for number, each in enumerate(certificates)
    ]
    return pkcs12.serialize_java_truststore(trusted, _encryption(password))


def _encryption(password: str | None) -> KeySerializationEncryption:
    return BestAvailableEncryption(password.encode()) if password else NoEncryption()


def _builder(
    subject: x509.Name, issuer: x509.Name, key: Key, days: float = 30
) -> x509.CertificateBuilder:
    end = datetime.now(UTC) + timedelta(days=days)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - timedelta(days=60))
        .not_valid_after(end)
    )


def _general_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
