"""Where a client of OAUTHBEARER gets its access token: from a file, an endpoint, or itself.

The settings and the options of the JAAS text are Kafka's. With
``sasl.oauthbearer.token.endpoint.url`` the token is what a ``file:`` URL holds, or what an
authorization server gives for the client's id and secret (RFC 6749 section 4.4). Without it the
token is one that nobody signed, of the claims in the JAAS text, which is good for tests alone.
"""

from __future__ import annotations

import json
import re
import time
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote_plus, unquote, urlsplit

from aclbroker.broker.client.errors import AuthenticationRefused, ClientConfigError

if TYPE_CHECKING:
    import ssl

    from aclbroker.broker.client.settings import ClientSettings

_URL: Final = "sasl.oauthbearer.token.endpoint.url"
_CLAIM: Final = re.compile(
    r"unsecuredLogin(?P<kind>String|Number|List)Claim_(?P<name>.+)", re.DOTALL
)
_RESERVED: Final = ("iat", "exp")
_LIFETIME_SECONDS: Final = "3600"
_LARGEST_ANSWER: Final = 1024 * 1024
_TIMEOUT_MS: Final = 10_000


def token_source(settings: ClientSettings) -> Callable[[], str]:
    """Return what gets a token; it raises `AuthenticationRefused` if there is none to be had.

    Raises `ClientConfigError` for settings that do not say how.
    """
    options = settings.jaas.options if settings.jaas else {}
    url = settings.values.get(_URL, "")
    if not url:
        return _unsecured(options)
    parts = urlsplit(url)
    if parts.scheme == "file":
        return lambda: _from_file(Path(unquote(parts.path)))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ClientConfigError(f"{_URL}: allowed: a URL of http, https or file")
    return _Endpoint(settings, options, url).token


def _from_file(path: Path) -> str:
    try:
        return path.read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise AuthenticationRefused(f"{_URL}: {path}: cannot be read: {reason}") from None


class _Endpoint:
    """An authorization server that gives tokens to whoever has a client's id and secret."""

    def __init__(self, settings: ClientSettings, options: Mapping[str, str], url: str) -> None:
        self._url = url
        own, name = settings.values, "sasl.oauthbearer.client.credentials.client."
        client_id = own.get(f"{name}id") or options.get("clientId", "")
        secret = own.get(f"{name}secret") or options.get("clientSecret", "")
        scope = own.get("sasl.oauthbearer.scope") or options.get("scope", "")
        if not client_id or not secret:
            raise ClientConfigError(f"{_URL}: it needs {name}id and {name}secret")
        if own.get("sasl.oauthbearer.header.urlencode", "").lower() == "true":
            client_id, secret, scope = map(quote_plus, (client_id, secret, scope))
        self._authorization = b64encode(f"{client_id}:{secret}".encode()).decode()
        self._body = "grant_type=client_credentials" + (f"&scope={scope}" if scope else "")
        # Two settings in Kafka; Python has one timeout for both.
        timeouts = ("sasl.login.connect.timeout.ms", "sasl.login.read.timeout.ms")
        given = [own[each] for each in timeouts if own.get(each, "").isdecimal()]
        self._timeout = max([int(each) for each in given] or [_TIMEOUT_MS]) / 1000 or None
        self._tls = self._context(options) if urlsplit(url).scheme == "https" else None

    def token(self) -> str:
        """Return a new token; raises `AuthenticationRefused`."""
        # Imported where there is an endpoint, for it takes long.
        from http.client import HTTPException
        from urllib.error import HTTPError
        from urllib.request import HTTPRedirectHandler, HTTPSHandler, Request, build_opener

        class RefuseRedirects(HTTPRedirectHandler):
            """Another place must not get the client's secret, which urllib would send there."""

            def redirect_request(self, *_: object) -> None:
                return None

        request = Request(  # noqa: S310 # the scheme was looked at
            self._url,
            self._body.encode(),
            {
                "Accept": "application/json",
                "Authorization": f"Basic {self._authorization}",
                "Cache-Control": "no-cache",
                "Content-Type": "application/x-www-form-urlencoded",
            },
        )
        opener = build_opener(HTTPSHandler(context=self._tls), RefuseRedirects())
        try:
            with opener.open(request, timeout=self._timeout) as response:
                return _token_in(response.read(_LARGEST_ANSWER))
        except HTTPError as error:
            raise _refused(f"answered {error.code}") from None
        except (OSError, HTTPException) as error:
            raise _refused(str(getattr(error, "reason", None) or error)) from None

    @staticmethod
    def _context(options: Mapping[str, str]) -> ssl.SSLContext:
        """The TLS of an https endpoint: as in Kafka, of the JAAS text's options ``ssl.*``."""
        from aclbroker.broker.client.tls import client_context

        return client_context(options)


def _token_in(body: bytes) -> str:
    try:
        answer = json.loads(body)
        token = answer.get("access_token") or answer.get("id_token")
    except (ValueError, AttributeError, RecursionError):
        token = None
    if not isinstance(token, str) or not token:
        raise _refused("its answer has no access_token")
    return token


def _refused(reason: str) -> AuthenticationRefused:
    return AuthenticationRefused(f"no access token from {_URL}: {reason}")


def _unsecured(options: Mapping[str, str]) -> Callable[[], str]:
    lifetime = options.get("unsecuredLoginLifetimeSeconds", _LIFETIME_SECONDS)
    if not lifetime.isdecimal():
        raise ClientConfigError(
            "sasl.jaas.config: unsecuredLoginLifetimeSeconds: allowed: a number of seconds"
        )
    claims: dict[str, Any] = {}
    for option, value in options.items():
        match = _CLAIM.fullmatch(option)
        if match is not None:
            if match["name"] in _RESERVED:
                raise ClientConfigError(f"sasl.jaas.config: {option}: it is set by itself")
            claims[match["name"]] = _claim(option, match["kind"], value)
    principal = options.get("unsecuredLoginPrincipalClaimName", "").strip() or "sub"
    if not isinstance(claims.get(principal), str) or not claims[principal].strip():
        raise ClientConfigError(
            f"OAUTHBEARER needs {_URL}, or in sasl.jaas.config "
            f"unsecuredLoginStringClaim_{principal}"
        )
    return lambda: _unsigned_token(claims, int(lifetime))


def _claim(option: str, kind: str, value: str) -> Any:
    if kind == "String":
        return value
    if kind == "List":
        # Its first character divides the others.
        return value[1:].split(value[0]) if len(value) > 1 else []
    try:
        return float(value)
    except ValueError:
        raise ClientConfigError(f"sasl.jaas.config: {option}: allowed: a number") from None


def _unsigned_token(claims: Mapping[str, Any], lifetime: int) -> str:
    now = time.time()
    payload = {"exp": now + lifetime, "iat": now, **claims}
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, payload))
    return ".".join([*(urlsafe_b64encode(each).decode().rstrip("=") for each in parts), ""])
