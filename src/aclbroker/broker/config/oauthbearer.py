"""Reads the settings of OAUTHBEARER on one listener."""

from __future__ import annotations

from typing import Any, NamedTuple

from aclbroker.broker.auth.sasl.access_token import TokenRules
from aclbroker.broker.auth.sasl.jaas import JaasError, parse_jaas
from aclbroker.broker.auth.tls.settings import JKS, PEM, PKCS12, TlsError, TlsSettings
from aclbroker.broker.config.reader import Reader, listener_prefix

_LOGIN_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_JAAS = "oauthbearer.sasl.jaas.config"
_TRUST_STORE = tuple(
    f"ssl.truststore.{each}" for each in ("type", "location", "password", "certificates")
)
_RETRY_BACKOFF_MAX = "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
_JWKS_URL = "sasl.oauthbearer.jwks.endpoint.url"


class OAuthBearerSettings(NamedTuple):
    """What an access token must say, and where the keys are that verify it.

    Keys are fetched every ``refresh_ms``. If that fails it is tried again after
    ``retry_backoff_ms``, then twice that and so on, for ``retry_backoff_max_ms`` in all.
    ``trusted`` are the certificates (DER, one after the other) that an https endpoint is verified
    with, None for those that the system trusts.
    """

    rules: TokenRules
    jwks_url: str
    refresh_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    trusted: bytes | None = None


def read_oauthbearer(reader: Reader, name: str) -> OAuthBearerSettings | None:
    """The settings of a listener; None if there are problems, which are in the report."""

    def value(setting: str) -> Any:
        return reader.mechanism_value("OAUTHBEARER", f"sasl.oauthbearer.{setting}", name)

    reader.value("oauthbearer.sasl.server.callback.handler.class", name)
    reader.value("sasl.oauthbearer.jwt.validator.class", name)
    trusted = _trusted_certificates(reader, name)
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
        reader.value("aclbroker.oauthbearer.groups.claim", name),
    )
    url = value("jwks.endpoint.url")
    if url is None:
        _miss_url(reader, name)
        return None
    refresh_ms = value("jwks.endpoint.refresh.ms")
    return OAuthBearerSettings(rules, url, refresh_ms, backoff, backoff_max, trusted)


def _miss_url(reader: Reader, name: str) -> None:
    reader.report.problems.append(
        f"{reader.setting('listeners').origin}: listener {name} needs "
        f"{listener_prefix(name)}{_JWKS_URL}: nothing else tells a token of the issuer from one "
        "that anybody has made"
    )


def _trusted_certificates(reader: Reader, name: str) -> bytes | None:
    """The certificates that the JAAS value's options name, as in Kafka's JaasOptionsUtils."""
    if not reader.given(_JAAS, name):
        return None
    try:
        settings = _trust_store(reader.setting(_JAAS, name).value)
        if settings is None:
            return None
        from cryptography.hazmat.primitives.serialization import Encoding

        from aclbroker.broker.auth.tls.key_stores import read_trust_store

        trusted = read_trust_store(settings) or ()
        if not trusted:
            raise JaasError("ssl.truststore: there is no certificate in it")
    except (JaasError, TlsError) as error:
        where = f"{error.setting}: " if isinstance(error, TlsError) else ""
        reader.refuse(_JAAS, f"{where}{error}", listener=name)
        return None
    return b"".join(each.public_bytes(Encoding.DER) for each in trusted)


def _trust_store(jaas: str) -> TlsSettings | None:
    """The trust store that the JAAS value has for the endpoint, or None; raises JaasError."""
    entry = parse_jaas(jaas)
    if entry.login_module != _LOGIN_MODULE:
        raise JaasError("the login module is not OAuthBearerLoginModule")
    options = {key: value for key, value in entry.options.items() if key.startswith("ssl.")}
    # Any other option would weaken TLS, or ask for something that is not done here.
    for option in options:
        if option not in _TRUST_STORE:
            raise JaasError(f"the option {option} is not supported; {', '.join(_TRUST_STORE)} are")
    if not options:
        return None
    store_type = options.get("ssl.truststore.type", JKS).upper()
    if store_type not in (JKS, PKCS12, PEM):
        raise JaasError("ssl.truststore.type is not JKS, PKCS12 or PEM")
    return TlsSettings(
        truststore_type=store_type,
        truststore_location=options.get("ssl.truststore.location"),
        truststore_password=options.get("ssl.truststore.password"),
        truststore_certificates=options.get("ssl.truststore.certificates"),
    )
