"""Where the keys of access tokens come from, and how they are kept up to date."""

import asyncio
import os
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from cryptography.hazmat.primitives.serialization import Encoding

from aclbroker.broker.logins.jwks_source import (
    LARGEST_SET,
    JwksEndpoint,
    JwksFile,
    JwksSource,
    JwksUnavailable,
    KeySources,
    Refreshing,
    jwks_source,
)
from tests.support.access_tokens import ec_key, jwks
from tests.support.certificates import Authority

P256, OTHER = ec_key("p256"), ec_key("other")
HOURLY = Refreshing(interval=3600, backoff=0.01, backoff_max=0.05)
SOON = 20.0


class Issuer:
    """An HTTP server with a JWK set at every path; `answer` may be replaced.

    With an `authority`, which issued its certificate for `localhost`, it is an HTTPS server.
    """

    def __init__(self) -> None:
        self.authority = Authority()
        self.text = jwks(P256)
        self.status = 200
        self.asked = 0
        self.answer: Callable[[web.Request], Awaitable[web.StreamResponse]] = self.key_set
        self.url = ""
        self.tls_url = ""

    async def key_set(self, _: web.Request) -> web.StreamResponse:
        return web.Response(text=self.text, status=self.status)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        self.asked += 1
        return await self.answer(request)


@pytest.fixture
async def issuer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> AsyncIterator[Issuer]:
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    issuer = Issuer()
    application = web.Application()
    application.router.add_get("/{path:.*}", issuer.handle)
    runner = web.AppRunner(application, shutdown_timeout=0)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    certificate = tmp_path / "issuer.pem"
    certificate.write_text(issuer.authority.issue(names=["localhost"]).pem())
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate)
    with_tls = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await with_tls.start()
    issuer.url, issuer.tls_url = (
        f"{scheme}://{host}:{address[1]}/jwks"
        for scheme, host, address in zip(
            ("http", "https"), ("127.0.0.1", "localhost"), runner.addresses, strict=True
        )
    )
    yield issuer
    await runner.cleanup()


def key_ids(source: JwksSource) -> list[str | None]:
    return [key.key_id for key in source.keys().keys]


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():
            await asyncio.sleep(0.005)


async def failure(source: JwksSource) -> str:
    with pytest.raises(JwksUnavailable) as failed:
        await source.start()
    return str(failed.value)


async def test_a_file_is_read_again_when_it_has_changed(tmp_path: Path) -> None:
    path = tmp_path / "jwks with blanks.json"
    path.write_text(jwks(P256))
    source = jwks_source(path.as_uri(), HOURLY, None)
    await source.start()
    assert key_ids(source) == ["p256"]

    path.write_text(jwks(P256, OTHER))
    assert key_ids(source) == ["p256", "other"]

    replacement = tmp_path / "new.json"
    replacement.write_text(jwks(OTHER, P256))
    os.replace(replacement, path)
    assert key_ids(source) == ["other", "p256"]

    path.write_text(jwks())
    assert key_ids(source) == []


@pytest.mark.parametrize("text", [None, "", "{", "x" * (LARGEST_SET + 1)])
async def test_while_a_file_cannot_be_used_its_keys_stay(text: str | None, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(jwks(P256))
    source = JwksFile(path)
    await source.start()
    if text is None:
        path.unlink()
    else:
        path.write_text(text)
    assert key_ids(source) == ["p256"]
    path.write_text(jwks(OTHER))
    assert key_ids(source) == ["other"]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "No such file or directory"),
        ("{}", "no JWK set"),
        (jwks(), "no key that verifies signatures (it is empty)"),
        (jwks({"kty": "oct", "k": "AAAA"}), "no key that verifies signatures (key 1: its kty"),
    ],
)
async def test_a_file_without_keys_is_refused_at_start(
    text: str | None, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "jwks.json"
    if text is not None:
        path.write_text(text)
    assert reason in await failure(JwksFile(path))


async def test_an_endpoint_is_asked_again_after_the_interval(issuer: Issuer) -> None:
    source = jwks_source(issuer.url, HOURLY._replace(interval=0.02), None)
    await source.start()
    assert key_ids(source) == ["p256"]
    issuer.text = jwks(OTHER)
    await until(lambda: key_ids(source) == ["other"])
    await source.stop()


async def test_a_token_with_an_unknown_key_makes_it_ask_at_once_and_not_again_soon(
    issuer: Issuer,
) -> None:
    source = JwksEndpoint(issuer.url, HOURLY, None)
    await source.start()
    issuer.text = jwks(P256, OTHER)
    for number in range(1000):
        source.missing(f"kid-{number}")
        await asyncio.sleep(0)
    await until(lambda: key_ids(source) == ["p256", "other"])
    assert issuer.asked == 2
    await source.stop()


async def test_while_an_endpoint_fails_its_keys_stay(issuer: Issuer) -> None:
    source = JwksEndpoint(issuer.url, HOURLY._replace(interval=0.02), None)
    await source.start()
    issuer.status = 500
    asked = issuer.asked
    await until(lambda: issuer.asked > asked + 3)
    assert key_ids(source) == ["p256"]
    issuer.status, issuer.text = 200, jwks(OTHER)
    await until(lambda: key_ids(source) == ["other"])
    await source.stop()


async def test_an_endpoint_may_revoke_all_its_keys(issuer: Issuer) -> None:
    source = JwksEndpoint(issuer.url, HOURLY._replace(interval=0.02), None)
    await source.start()
    issuer.text = jwks()
    await until(lambda: key_ids(source) == [])
    await source.stop()


async def test_the_first_fetch_is_tried_again(issuer: Issuer) -> None:
    async def fail_twice(request: web.Request) -> web.StreamResponse:
        if issuer.asked < 3:
            return web.Response(status=503)
        return await issuer.key_set(request)

    issuer.answer = fail_twice
    source = JwksEndpoint(issuer.url, HOURLY._replace(backoff_max=SOON), None)
    await source.start()
    assert (issuer.asked, key_ids(source)) == (3, ["p256"])
    await source.stop()


async def test_an_endpoint_that_answers_with_anything_else_is_refused_at_start(
    issuer: Issuer,
) -> None:
    source = JwksEndpoint(issuer.url, HOURLY, None)
    issuer.status = 404
    assert await failure(source) == "the answer has status 404"
    issuer.status, issuer.text = 200, "<html>"
    assert "no JWK set" in await failure(source)
    issuer.text = jwks()
    assert "no key that verifies signatures" in await failure(source)


async def test_an_answer_that_is_too_long_is_not_read_to_its_end(issuer: Issuer) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 100 * LARGEST_SET:
            await response.write(b" " * 65_536)
            sent += 65_536
        return response

    issuer.answer = endless
    source = JwksEndpoint(issuer.url, HOURLY._replace(backoff_max=0), None)
    assert await failure(source) == f"it has more than {LARGEST_SET} bytes"
    assert sent < 50 * LARGEST_SET


async def test_an_answer_that_never_ends_is_given_up(issuer: Issuer) -> None:
    async def drip(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        while True:
            await response.write(b" ")
            await asyncio.sleep(0.01)

    issuer.answer = drip
    source = JwksEndpoint(issuer.url, HOURLY._replace(attempt=0.2, backoff_max=0), None)
    assert await failure(source) == "no answer in 0.2 seconds"


async def test_nobody_at_the_endpoint_is_refused_at_start(unused_tcp_port: int) -> None:
    url = f"http://127.0.0.1:{unused_tcp_port}/jwks"
    assert "Cannot connect" in await failure(JwksEndpoint(url, HOURLY, None))


def trusted(authority: Authority) -> bytes:
    return authority.certificate.public_bytes(Encoding.DER)


async def test_an_endpoint_is_known_by_a_certificate_of_a_trusted_authority(
    issuer: Issuer,
) -> None:
    source = KeySources().add(issuer.tls_url, HOURLY, trusted(issuer.authority))
    await source.start()
    assert key_ids(source) == ["p256"]
    await source.stop()


async def test_an_endpoint_whose_certificate_is_of_nobody_known_or_for_another_name_is_refused(
    issuer: Issuer,
) -> None:
    of_another = KeySources().add(issuer.tls_url, HOURLY, trusted(Authority()))
    assert "CERTIFICATE_VERIFY_FAILED" in await failure(of_another)
    of_the_system = KeySources().add(issuer.tls_url, HOURLY)
    assert "CERTIFICATE_VERIFY_FAILED" in await failure(of_the_system)
    by_address = issuer.tls_url.replace("localhost", "127.0.0.1")
    of_another_name = KeySources().add(by_address, HOURLY, trusted(issuer.authority))
    assert "IP address mismatch" in await failure(of_another_name)
    assert issuer.asked == 0


async def test_keys_do_not_come_over_http_where_https_was_asked_for(issuer: Issuer) -> None:
    async def redirect(request: web.Request) -> web.StreamResponse:
        if request.secure:
            raise web.HTTPFound(issuer.url)
        return await issuer.key_set(request)

    issuer.answer = redirect
    source = KeySources().add(issuer.tls_url, HOURLY, trusted(issuer.authority))
    assert await failure(source) == "it redirects to another scheme"


async def test_a_redirect_is_followed_a_few_times(issuer: Issuer) -> None:
    async def redirect(request: web.Request) -> web.StreamResponse:
        if request.path == "/there":
            return await issuer.key_set(request)
        raise web.HTTPFound("/there" if request.path == "/jwks" else "/endless")

    issuer.answer = redirect
    source = jwks_source(issuer.url, HOURLY, None)
    await source.start()
    assert key_ids(source) == ["p256"]
    await source.stop()
    assert await failure(jwks_source(issuer.url + "/endless", HOURLY, None))
    assert issuer.asked < 100
