"""Which cipher suites and protocols a listener offers, from the names that Java gives suites.

Python cannot select single suites of TLS 1.3, and has no parameters for finite-field
Diffie-Hellman. What follows from that is refused, or left out where that makes nothing weaker.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from aclbroker.broker.auth.tls.settings import TLS_1_2, TLS_1_3, TlsError

_SUITES: Final = "ssl.cipher.suites"
_TLS_1_3_SUITES: Final = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_CHACHA20_POLY1305_SHA256",
    "TLS_AES_128_GCM_SHA256",
)
# No suite: Java's sign of safe renegotiation (RFC 5746). Here nothing is renegotiated.
_SIGNALS: Final = ("TLS_EMPTY_RENEGOTIATION_INFO_SCSV",)
_FINITE_FIELD: Final = "TLS_DHE_"
_KEY_EXCHANGES: Final = {
    "TLS_ECDHE_ECDSA_WITH_": "ECDHE-ECDSA-",
    "TLS_ECDHE_RSA_WITH_": "ECDHE-RSA-",
    "TLS_RSA_WITH_": "",
}
_CIPHERS: Final = {
    "AES_128_GCM_SHA256": "AES128-GCM-SHA256",
    "AES_256_GCM_SHA384": "AES256-GCM-SHA384",
    "CHACHA20_POLY1305_SHA256": "CHACHA20-POLY1305",
    "AES_128_CBC_SHA256": "AES128-SHA256",
    "AES_256_CBC_SHA256": "AES256-SHA256",
    "AES_256_CBC_SHA384": "AES256-SHA384",
    "AES_128_CBC_SHA": "AES128-SHA",
    "AES_256_CBC_SHA": "AES256-SHA",
}
_VERSIONS: Final = {TLS_1_2: ssl.TLSVersion.TLSv1_2, TLS_1_3: ssl.TLSVersion.TLSv1_3}


class Offer(NamedTuple):
    """The protocols to offer, the suites of TLS 1.2 by OpenSSL's names, and what was left out."""

    protocols: tuple[str, ...]
    suites: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


def offer(protocols: Sequence[str], suites: Sequence[str]) -> Offer:
    """Return what to offer when ``suites`` are asked for, all good ones if none is.

    Raises `TlsError` for a suite that is not to be had, and where nothing is left to offer. As in
    Java a protocol is not offered when none of its suites is asked for.
    """
    if not suites:
        return Offer(tuple(protocols))
    of_1_3 = [name for name in suites if name in _TLS_1_3_SUITES]
    of_1_2 = [name for name in suites if name not in (*_TLS_1_3_SUITES, *_SIGNALS)]
    left_out = tuple(name for name in of_1_2 if name.startswith(_FINITE_FIELD))
    names = tuple(_openssl_name(name) for name in of_1_2 if name not in left_out)
    offered = tuple(
        protocol
        for protocol in protocols
        if (protocol == TLS_1_3 and of_1_3) or (protocol == TLS_1_2 and names)
    )
    if not offered:
        raise TlsError(_SUITES, f"it has no suite for {', '.join(protocols)}{_why(left_out)}")
    if TLS_1_3 in offered and len(of_1_3) < len(_TLS_1_3_SUITES):
        missing = ", ".join(name for name in _TLS_1_3_SUITES if name not in of_1_3)
        raise TlsError(
            _SUITES,
            "the suites of TLS 1.3 cannot be offered one by one: add "
            f"{missing}, or leave TLS 1.3 out",
        )
    return Offer(offered, names, left_out)


def apply(offered: Offer, context: ssl.SSLContext) -> None:
    """Make a context offer just this; raises `TlsError` for a suite that OpenSSL lacks."""
    versions = [_VERSIONS[protocol] for protocol in offered.protocols]
    context.minimum_version = min(versions)
    context.maximum_version = max(versions)
    for name in offered.suites:
        _select(context, [name])
    if offered.suites:
        _select(context, offered.suites)


def _select(context: ssl.SSLContext, names: Sequence[str]) -> None:
    try:
        context.set_ciphers(":".join(names))
    except ssl.SSLError:
        selected: set[str] = set()
    else:
        selected = {cipher["name"] for cipher in context.get_ciphers()}
    if missing := set(names) - selected:
        raise TlsError(_SUITES, f"this OpenSSL does not offer {', '.join(sorted(missing))}")


def _openssl_name(name: str) -> str:
    for prefix, exchange in _KEY_EXCHANGES.items():
        cipher = _CIPHERS.get(name.removeprefix(prefix))
        if cipher is not None and name.startswith(prefix):
            return exchange + cipher
    raise TlsError(_SUITES, f"{name} is not known, or too weak to be offered")


def _why(left_out: Iterable[str]) -> str:
    names = ", ".join(left_out)
    return f"; finite-field Diffie-Hellman ({names}) is not offered" if names else ""
