"""The TLS settings of one listener: those of Kafka's SslConfigs and BrokerSecurityConfigs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

PEM: Final = "PEM"
JKS: Final = "JKS"
PKCS12: Final = "PKCS12"
TLS_1_2: Final = "TLSv1.2"
TLS_1_3: Final = "TLSv1.3"


class TlsError(Exception):
    """A setting cannot be used. ``setting`` is its name; the text says why, and holds no secret."""

    def __init__(self, setting: str, reason: str) -> None:
        super().__init__(reason)
        self.setting = setting


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsSettings:
    """Kafka's ``ssl.*`` settings, where None is not set.

    Store types are PEM, JKS or PKCS12, ``client_auth`` is none, requested or required. No
    ``cipher_suites`` means the defaults of OpenSSL and Python. A certificate that replaces another
    may have another subject with ``allow_dn_changes``, and fewer subject alternative names with
    ``allow_san_changes``.
    """

    keystore_type: str = JKS
    keystore_location: str | None = None
    keystore_password: str | None = field(default=None, repr=False)
    key_password: str | None = field(default=None, repr=False)
    keystore_key: str | None = field(default=None, repr=False)
    keystore_certificate_chain: str | None = field(default=None, repr=False)
    truststore_type: str = JKS
    truststore_location: str | None = None
    truststore_password: str | None = field(default=None, repr=False)
    truststore_certificates: str | None = field(default=None, repr=False)
    client_auth: str = "none"
    enabled_protocols: tuple[str, ...] = (TLS_1_2, TLS_1_3)
    cipher_suites: tuple[str, ...] = ()
    allow_dn_changes: bool = False
    allow_san_changes: bool = False

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the stores that are files."""
        return tuple(path for path in (self.keystore_location, self.truststore_location) if path)
