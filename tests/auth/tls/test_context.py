"""Who may connect: client certificates, and what is not asked twice."""

import ssl
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from aclbroker.broker.auth.tls.context import server_tls
from aclbroker.broker.auth.tls.identity import check_same_identity
from aclbroker.broker.auth.tls.settings import TlsError, TlsSettings
from tests.auth.tls.conftest import Ask
from tests.auth.tls.handshakes import Ends, client_context, handshake
from tests.auth.tls.test_ciphers import inline
from tests.support.certificates import PASSWORD, Authority, Identity, pem, self_signed

VERSIONS = [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3]


def _server(identity: Identity, client_auth: str, *trusted) -> ssl.SSLContext:
    others = {"truststore_type": "PEM", "truststore_certificates": pem(*trusted)}
    return server_tls(inline(identity, client_auth=client_auth, **others)).context


def _connect(server: ssl.SSLContext, shown: Identity | None, version: ssl.TLSVersion) -> Ends:
    client = client_context(identity=shown)
    client.minimum_version = client.maximum_version = version
    return handshake(server, client)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_certificate_that_is_trusted_reaches_the_server(
    identity: Identity, authority: Authority, client_auth: str, version: ssl.TLSVersion
) -> None:
    server = _server(identity, client_auth, authority.certificate)
    for client in (
        authority.issue("CN=alice", names=()),
        Authority("Intermediate", authority).issue("CN=bob", names=()),
    ):
        shown = _connect(server, client, version).server.getpeercert(binary_form=True)
        assert shown == client.certificate.public_bytes(Encoding.DER)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("client_auth", ["requested", "required"])
def test_a_certificate_that_is_not_trusted_or_expired_is_refused_even_if_only_requested(
    identity: Identity, authority: Authority, client_auth: str, version: ssl.TLSVersion
) -> None:
    server = _server(identity, client_auth, authority.certificate)
    for client in (
        Authority().issue("CN=alice"),
        self_signed("CN=alice"),
        authority.issue("CN=alice", days=-1),
    ):
        with pytest.raises(ssl.SSLError, match="CERTIFICATE_VERIFY_FAILED"):
            _connect(server, client, version)


@pytest.mark.parametrize("version", VERSIONS)
def test_without_a_certificate_it_depends_on_whether_one_is_required(
    identity: Identity, authority: Authority, version: ssl.TLSVersion
) -> None:
    requested = _server(identity, "requested", authority.certificate)
    assert _connect(requested, None, version).server.getpeercert(binary_form=True) is None
    required = _server(identity, "required", authority.certificate)
    with pytest.raises(ssl.SSLError, match="PEER_DID_NOT_RETURN"):
        _connect(required, None, version)


def test_a_listener_that_asks_for_none_takes_no_notice_of_certificates(
    identity: Identity, authority: Authority
) -> None:
    server = _server(identity, "none", authority.certificate)
    ends = _connect(server, self_signed("CN=alice"), VERSIONS[1])
    assert ends.server.getpeercert(binary_form=True) is None


def test_what_is_trusted_need_not_be_a_root(identity: Identity, authority: Authority) -> None:
    between = Authority("Between", authority)
    alice, bob = between.issue("CN=alice"), authority.issue("CN=bob")
    server = _server(identity, "required", between.certificate, bob.certificate)
    for client in (alice, bob):
        assert _connect(server, client, VERSIONS[1]).server.getpeercert(binary_form=True)
    with pytest.raises(ssl.SSLError):
        _connect(server, authority.issue("CN=carol"), VERSIONS[1])


def test_the_whole_chain_is_sent(identity: Identity, authority: Authority) -> None:
    server = server_tls(inline(identity)).context
    client = client_context(trusted=pem(authority.certificate))
    certificate = handshake(server, client).client.getpeercert()
    assert certificate is not None
    assert certificate["subject"]


def test_a_key_of_each_type_serves_the_clients_that_can_verify_it(
    oracle: Ask, tmp_path: Path
) -> None:
    entries = []
    for kind in ("RSA", "EC"):
        (tmp_path / kind).write_bytes(self_signed("CN=localhost", kind=kind).pkcs12())
        entries.append(f"key:{kind}:{tmp_path / kind}")
    store = tmp_path / "keystore"
    oracle("make", "PKCS12", store, PASSWORD, PASSWORD, *entries)
    settings = TlsSettings(keystore_location=str(store), keystore_password=PASSWORD)
    server = server_tls(settings).context
    client = client_context()
    client.maximum_version = ssl.TLSVersion.TLSv1_2
    for suite in ("ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-ECDSA-AES128-GCM-SHA256"):
        client.set_ciphers(suite)
        cipher = handshake(server, client).client.cipher()
        assert cipher is not None
        assert cipher[0] == suite


def test_no_session_is_taken_up_again(identity: Identity, authority: Authority) -> None:
    """It would outlive the certificate, or the trust store, that let its client in."""
    server = _server(identity, "required", authority.certificate)
    client = client_context(identity=authority.issue("CN=alice"))
    ends = handshake(server, client)
    ends.server.write(b"x")
    assert ends.client.read() == b"x"
    assert ends.client.session is not None
    assert not ends.client.session.has_ticket


def test_an_expired_certificate_of_the_broker_is_told_and_served(authority: Authority) -> None:
    expired = authority.issue("CN=localhost", days=-1)
    [warning] = server_tls(inline(expired)).warnings
    assert "CN=localhost expired on " in warning


def _replaced(before: Identity, after: Identity, **allowed: Any) -> None:
    check_same_identity([before.certificate], [after.certificate], TlsSettings(**allowed))


def test_a_new_certificate_must_be_of_the_same_name_and_for_the_same_hosts(
    authority: Authority,
) -> None:
    old = authority.issue("CN=broker", names=["a.example", "127.0.0.1"])
    _replaced(old, authority.issue("CN=broker", names=["127.0.0.1", "a.example", "b.example"]))
    other = authority.issue("CN=other", names=["a.example", "127.0.0.1"])
    fewer = authority.issue("CN=broker", names=["a.example"])
    with pytest.raises(TlsError, match="CN=other") as caught:
        _replaced(old, other, allow_san_changes=True)
    assert caught.value.setting == "ssl.allow.dn.changes"
    with pytest.raises(TlsError, match=r"127\.0\.0\.1") as caught:
        _replaced(old, fewer, allow_dn_changes=True)
    assert caught.value.setting == "ssl.allow.san.changes"
    _replaced(old, other, allow_dn_changes=True)
    _replaced(old, fewer, allow_san_changes=True)
