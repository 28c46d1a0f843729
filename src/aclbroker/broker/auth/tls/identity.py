"""Whether a new certificate may take the place of one in use, by Kafka's rule of SslFactory.

Unless it is allowed, the subject must stay the same, and every subject alternative name must still
be there, so that nobody serves another broker's certificate by mistake.
"""

from __future__ import annotations

from collections.abc import Sequence

from cryptography import x509

from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings


def check_same_identity(
    before: Sequence[x509.Certificate], after: Sequence[x509.Certificate], settings: TlsSettings
) -> None:
    """Raise `TlsError` if the certificates in use must not be replaced by these."""
    if settings.allow_dn_changes and settings.allow_san_changes:
        return
    if len(before) != len(after):
        raise TlsError(
            "ssl.keystore.location",
            f"it has {len(after)} certificates to serve, those in use are {len(before)}",
        )
    for old, new in zip(before, after, strict=True):
        if not settings.allow_dn_changes and old.subject != new.subject:
            raise TlsError(
                "ssl.allow.dn.changes",
                f"the new certificate is of {new.subject.rfc4514_string()}, the one in use of "
                f"{old.subject.rfc4514_string()}",
            )
        missing = _names(old) - _names(new)
        if missing and not settings.allow_san_changes:
            raise TlsError(
                "ssl.allow.san.changes",
                f"the new certificate lacks names of the one in use: {', '.join(sorted(missing))}",
            )


def _names(certificate: x509.Certificate) -> set[str]:
    try:
        extension = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return set()
    return {f"{type(name).__name__}:{name.value}" for name in extension.value}
