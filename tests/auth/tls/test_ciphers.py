"""Protocols and cipher suites: by Java's names, and never weaker than asked for."""

import ssl
import subprocess
from contextlib import suppress

import pytest

from aclbroker.broker.auth.tls import ciphers
from aclbroker.broker.auth.tls.context import server_tls
from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings
from tests.auth.tls.handshakes import client_context, handshake
from tests.support.certificates import Identity, self_signed
from tests.support.toolchain import require

BOTH = ("TLSv1.2", "TLSv1.3")
ALL_OF_1_3 = (
    "TLS_AES_256_GCM_SHA384",
    "TLS_AES_128_GCM_SHA256",
    "TLS_CHACHA20_POLY1305_SHA256",
)
ECDSA = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256"


def inline(identity: Identity, **others) -> TlsSettings:
    return TlsSettings(
        keystore_type="PEM",
        keystore_key=identity.key_pem(),
        keystore_certificate_chain=identity.chain_pem(),
        **others,
    )


def refused(identity: Identity, **others) -> str:
    with pytest.raises(TlsError) as caught:
        server_tls(inline(identity, **others))
    assert caught.value.setting == "ssl.cipher.suites"
    return str(caught.value)


def test_suites_have_the_names_that_openssl_says_are_standard() -> None:
    command = [require("openssl"), "ciphers", "-stdname", "ALL:COMPLEMENTOFALL:@SECLEVEL=0"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = [line.split() for line in printed.splitlines()]
    openssl = {standard: name for standard, _, name, *_ in lines}
    known = 0
    for standard, name in openssl.items():
        with suppress(TlsError):
            offered = ciphers.offer(BOTH, [standard, *ALL_OF_1_3])
            assert offered.suites in ((name,), ())
            known += 1
    assert known > 20


@pytest.mark.parametrize("protocol", BOTH)
def test_a_protocol_that_is_not_enabled_is_not_spoken(identity: Identity, protocol: str) -> None:
    server = server_tls(inline(identity, enabled_protocols=(protocol,))).context
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        client = client_context()
        client.minimum_version = client.maximum_version = version
        if version.name.replace("_", ".") == protocol:
            assert handshake(server, client).client.version() == protocol
        else:
            with pytest.raises(ssl.SSLError):
                handshake(server, client)


def test_the_suites_that_are_asked_for_are_those_offered_in_their_order() -> None:
    server = server_tls(
        inline(
            self_signed("CN=rsa", kind="RSA"),
            cipher_suites=(
                "TLS_RSA_WITH_AES_128_CBC_SHA",
                "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384",
                "TLS_EMPTY_RENEGOTIATION_INFO_SCSV",
            ),
        )
    ).context
    client = client_context()
    client.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384:AES128-SHA")
    assert handshake(server, client).client.cipher() == ("AES128-SHA", "SSLv3", 128)
    client.set_ciphers("ECDHE-RSA-AES256-GCM-SHA384")
    assert handshake(server, client).client.version() == "TLSv1.2"
    client.set_ciphers("ECDHE-RSA-AES128-GCM-SHA256")
    with pytest.raises(ssl.SSLError):
        handshake(server, client)


def test_with_suites_of_tls_1_3_alone_tls_1_2_is_not_spoken(identity: Identity) -> None:
    server = server_tls(inline(identity, cipher_suites=ALL_OF_1_3)).context
    client = client_context()
    assert handshake(server, client).client.version() == "TLSv1.3"
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    with pytest.raises(ssl.SSLError):
        handshake(server, client)


def test_single_suites_of_tls_1_3_are_refused_with_what_to_do(identity: Identity) -> None:
    text = refused(identity, cipher_suites=(ECDSA, "TLS_AES_256_GCM_SHA384"))
    assert "add TLS_CHACHA20_POLY1305_SHA256, TLS_AES_128_GCM_SHA256, or leave TLS 1.3 out" in text
    # Where TLS 1.3 is not enabled its suites do not matter.
    suites = (ECDSA, "TLS_AES_256_GCM_SHA384")
    settings = inline(identity, cipher_suites=suites, enabled_protocols=("TLSv1.2",))
    assert handshake(server_tls(settings).context, client_context()).client.version() == "TLSv1.2"


@pytest.mark.parametrize(
    "suite",
    [
        "TLS_RSA_WITH_NULL_SHA256",
        "TLS_DH_anon_WITH_AES_128_GCM_SHA256",
        "SSL_RSA_WITH_RC4_128_SHA",
        "SSL_RSA_WITH_3DES_EDE_CBC_SHA",
        "ECDHE-RSA-AES256-GCM-SHA384",
        "TLS_RSA_WITH_CHACHA20_POLY1305_SHA256",
        "ALL",
        "",
    ],
)
def test_a_suite_that_is_not_to_be_had_is_refused(identity: Identity, suite: str) -> None:
    text = refused(identity, cipher_suites=(ECDSA, suite))
    assert "not known, or too weak" in text or "this OpenSSL does not offer" in text


def test_finite_field_suites_are_left_out_with_a_warning(identity: Identity) -> None:
    finite = "TLS_DHE_RSA_WITH_AES_256_GCM_SHA384"
    [warning] = server_tls(inline(identity, cipher_suites=(finite, ECDSA))).warnings
    assert finite in warning
    assert finite in refused(identity, cipher_suites=(finite,))


def test_suites_for_none_of_the_protocols_are_refused(identity: Identity) -> None:
    text = refused(identity, cipher_suites=(ECDSA,), enabled_protocols=("TLSv1.3",))
    assert text == "it has no suite for TLSv1.3"
