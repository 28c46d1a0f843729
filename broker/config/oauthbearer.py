"""Reads the settings of OAUTHBEARER on one listener."""

from __future__ import annotations

from typing import Any, NamedTuple

from broker.auth.access_token import TokenRules
from broker.auth.jaas import JaasError, parse_jaas
from broker.config.reader import Reader, listener_prefix

_LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_RETRY_BACKOFF_MAX = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
_JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"


class OAuthBearerSettings(NamedTuple):
    """What an access token must say, and where the keys are that verify it.

    An endpoint is asked every ``refresh_ms``, and when it fails again after ``retry_backoff_ms``
    and then twice that, for ``retry_backoff_max_ms`` in all.
    """

    rules: TokenRules
    jwks_url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int


def read_oauthbearer(reader: Reader, name: str) -> OAuthBearerSettings | None:
    """The settings of a listener; None if there are problems, which are in the report."""

    def value(setting: str) -> Any:
        return reader.mechanism_value("OAUTHBEARER", f"sasl.oauthbearer.{setting}", name)

    reader.value("oauthbearer.sasl.server.callback.handler.class", name)
    reader.value("sasl.oauthbearer.jwt.validator.class", name)
    _check_jaas(reader, name)
    backoff, backoff_max = (value(f"jwks.endpoint.retry.backoff.{end}") for end in ("ms", "max.ms"))
    if backoff > backoff_max:
        reader.refuse(
            reader.mechanism_name("OAUTHBEARER", _RETRY_BACKOFF_MAX, name),
            "less than sasl.oauthbearer.jwks.endpoint.retry.backoff.ms",
            f"{backoff} or more",
            name,
        )
    rules = TokenRules(
        value("expected.issuer"),
        frozenset(value("expected.audience")),
        value("clock.skew.seconds"),
        value("sub.claim.name"),
        value("scope.claim.name"),
    )
    url = value("jwks.endpoint.url")
    if url is None:
        _miss_url(reader, name)
        return None
    return OAuthBearerSettings(rules, url, value("jwks.endpoint.refresh.ms"), backoff, backoff_max)


def _miss_url(reader: Reader, name: str) -> None:
    reader.report.problems.append(
        f"{reader.setting('listeners').origin}: listener {name} needs "
        f"{listener_prefix(name)}{_JWKS_URL}: nothing else tells a token of the issuer from one "
        "that anybody has made"
    )


def _check_jaas(reader: Reader, name: str) -> None:
    """Check what Kafka requires there to be; all that counts here stands in other settings."""
    setting = "oauthbearer.sasl.jaas.config"
    if not reader.given(setting, name):
        return
    try:
        entry = parse_jaas(reader.setting(setting, name).value)
    except JaasError as error:
        reader.refuse(setting, str(error), listener=name)
        return
    if entry.login_module != _LOGIN_MODULE:
        reader.refuse(setting, "the login module is not OAuthBearerLoginModule", listener=name)
