"""The keys of tokens: at the start, and when the issuer changes them."""

import ssl
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.conftest import StartBroker
from tests.logins.conftest import OAUTHBEARER_MODULE, OTHER_RSA, PREFIX, RSA, token_properties
from tests.support.access_tokens import initial_response, jwks, token
from tests.support.certificates import PASSWORD, Authority, pkcs12_truststore
from tests.support.client import Client
from tests.support.process import wait_for

RETRY = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"


class Issuer(ThreadingHTTPServer):
    """An HTTP server that publishes keys at every path."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        self.text = jwks(RSA)
        self.url = f"http://127.0.0.1:{self.server_port}/jwks"

    def speak_tls(self, certificate: Path) -> None:
        """From now on."""
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate)
        # The handshake is the thread's that serves the connection.
        self.socket = context.wrap_socket(
            self.socket, server_side=True, do_handshake_on_connect=False
        )
        self.url = self.url.replace("http:", "https:")

    def handle_error(self, request: object, client_address: object) -> None:
        """Be quiet of clients that do not trust the certificate."""


class _Answer(BaseHTTPRequestHandler):
    server: Issuer

    def do_GET(self) -> None:
        body = self.server.text.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Be quiet."""


@pytest.fixture
def issuer(monkeypatch: pytest.MonkeyPatch) -> Iterator[Issuer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    with Issuer() as issuer:
        thread = threading.Thread(target=issuer.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield issuer
        issuer.shutdown()
        thread.join()


def is_accepted(address: str, access_token: str) -> bool:
    with Client(address) as client:
        client.handshake("OAUTHBEARER")
        return bool(client.authenticate(initial_response(access_token)).auth_bytes == b"")


def test_a_key_that_the_issuer_adds_is_asked_for_when_a_token_names_it(
    issuer: Issuer, start_broker: StartBroker
) -> None:
    address = start_broker(token_properties(issuer.url)).listeners["SASL_PLAINTEXT"]
    assert is_accepted(address, token(RSA))
    assert not is_accepted(address, token(RSA, kid="not-of-this-issuer"))
    issuer.text = jwks(OTHER_RSA)
    # The token above made the broker ask; it asks again 10 seconds later at the earliest.
    wait_for("the key", lambda: is_accepted(address, token(OTHER_RSA)) or None, seconds=30)
    assert not is_accepted(address, token(RSA))


def test_a_key_that_is_added_to_the_file_is_good_for_the_next_login(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    file = tmp_path / "jwks.json"
    file.write_text(jwks(RSA))
    address = start_broker(token_properties(file.as_uri())).listeners["SASL_PLAINTEXT"]
    assert not is_accepted(address, token(OTHER_RSA))
    file.write_text(jwks(RSA, OTHER_RSA))
    assert is_accepted(address, token(OTHER_RSA))
    assert is_accepted(address, token(RSA))


def test_keys_come_from_an_endpoint_that_a_trust_store_knows(
    issuer: Issuer, start_broker: StartBroker, tmp_path: Path
) -> None:
    authority = Authority()
    certificate, store = tmp_path / "issuer.pem", tmp_path / "trust.p12"
    certificate.write_text(authority.issue().pem())
    store.write_bytes(pkcs12_truststore(authority.certificate))
    issuer.speak_tls(certificate)
    options = f'ssl.truststore.location="{store}" ssl.truststore.password="{PASSWORD}"'
    jaas = {f"{PREFIX}oauthbearer.sasl.jaas.config": f"{OAUTHBEARER_MODULE} required {options};"}
    with pytest.raises(RuntimeError, match="CERTIFICATE_VERIFY_FAILED"):
        start_broker(token_properties(issuer.url) | {RETRY: "200"})
    broker = start_broker(token_properties(issuer.url) | jaas)
    assert is_accepted(broker.listeners["SASL_PLAINTEXT"], token(RSA))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file or directory"),
        ("<html>", "it is no JWK set"),
        (jwks(), "it has no key that verifies signatures"),
    ],
)
def test_the_start_is_refused_without_keys(
    text: str | None, reason: str, start_broker: StartBroker, tmp_path: Path
) -> None:
    file = tmp_path / "jwks.json"
    if text is not None:
        file.write_text(text)
    with pytest.raises(RuntimeError) as refused:
        start_broker(token_properties(file.as_uri()))
    assert f"the keys at {file.as_uri()} cannot be read: " in str(refused.value)
    assert reason in str(refused.value)


def test_the_start_is_refused_when_nobody_answers(
    start_broker: StartBroker, unused_tcp_port: int
) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/jwks"
    with pytest.raises(RuntimeError, match=f"the keys at {url} cannot be read: Cannot connect"):
        start_broker(token_properties(url) | {RETRY: "200"})
