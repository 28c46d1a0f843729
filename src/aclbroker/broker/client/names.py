"""The settings of Kafka's clients by name: which are honoured here, and which cannot be.

They are those of Kafka 4.3.0's AdminClientConfig, SaslConfigs, SslConfigs and SecurityConfig.
"""

from __future__ import annotations

from typing import Final

_OAUTHBEARER: Final = "org.apache.kafka.common.security.oauthbearer."
_UNSECURED: Final = f"{_OAUTHBEARER}internals.unsecured.OAuthBearerUnsecuredLoginCallbackHandler"

HONOURED: Final = frozenset(
    [
        "bootstrap.controllers",
        "bootstrap.servers",
        "client.id",
        "request.timeout.ms",
        "sasl.jaas.config",
        "sasl.kerberos.service.name",
        "sasl.login.connect.timeout.ms",
        "sasl.login.read.timeout.ms",
        "sasl.mechanism",
        "sasl.oauthbearer.client.credentials.client.id",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.header.urlencode",
        "sasl.oauthbearer.scope",
        "sasl.oauthbearer.token.endpoint.url",
        "security.protocol",
        "socket.connection.setup.timeout.ms",
        "ssl.cipher.suites",
        "ssl.enabled.protocols",
        "ssl.endpoint.identification.algorithm",
        "ssl.key.password",
        "ssl.keystore.certificate.chain",
        "ssl.keystore.key",
        "ssl.keystore.location",
        "ssl.keystore.password",
        "ssl.keystore.type",
        "ssl.truststore.certificates",
        "ssl.truststore.location",
        "ssl.truststore.password",
        "ssl.truststore.type",
    ]
)

ALLOWED: Final = {
    "client.dns.lookup": ("use_all_dns_ips",),
    "sasl.client.callback.handler.class": (),
    "sasl.login.callback.handler.class": (
        f"{_OAUTHBEARER}OAuthBearerLoginCallbackHandler",
        f"{_OAUTHBEARER}secured.OAuthBearerLoginCallbackHandler",
        _UNSECURED,
    ),
    "sasl.login.class": (),
    "sasl.oauthbearer.assertion.claim.iss": (),
    "sasl.oauthbearer.assertion.file": (),
    "sasl.oauthbearer.assertion.private.key.file": (),
    "sasl.oauthbearer.jwt.retriever.class": (
        f"{_OAUTHBEARER}DefaultJwtRetriever",
        f"{_OAUTHBEARER}FileJwtRetriever",
        f"{_OAUTHBEARER}ClientCredentialsJwtRetriever",
    ),
    "sasl.oauthbearer.jwt.validator.class": (
        f"{_OAUTHBEARER}DefaultJwtValidator",
        f"{_OAUTHBEARER}ClientJwtValidator",
    ),
    "security.providers": (),
    "ssl.engine.factory.class": (),
    "ssl.provider": (),
    "ssl.trustmanager.algorithm": ("PKIX",),
}
"""What may stand in settings that name a class or an algorithm of Java's: what it does, is done
here, too. All else would be a client that trusts, or proves, something else than was asked for."""

_WITHOUT_EFFECT: Final = frozenset(
    [
        "auto.include.jmx.reporter",
        "connections.max.idle.ms",
        "default.api.timeout.ms",
        "enable.metrics.push",
        "metadata.max.age.ms",
        "metadata.recovery.rebootstrap.trigger.ms",
        "metadata.recovery.strategy",
        "metric.reporters",
        "metrics.num.samples",
        "metrics.recording.level",
        "metrics.sample.window.ms",
        "receive.buffer.bytes",
        "reconnect.backoff.max.ms",
        "reconnect.backoff.ms",
        "retries",
        "retry.backoff.max.ms",
        "retry.backoff.ms",
        "send.buffer.bytes",
        "socket.connection.setup.timeout.max.ms",
        "ssl.keymanager.algorithm",
        "ssl.protocol",
        "ssl.secure.random.implementation",
    ]
)
_WITHOUT_EFFECT_PREFIXES: Final = (
    "config.providers",
    "sasl.kerberos.",
    "sasl.login.refresh.",
    "sasl.login.retry.",
    "sasl.oauthbearer.",
)


def is_known(name: str) -> bool:
    """Tell whether Kafka's clients have a setting of this name."""
    return (
        name in HONOURED
        or name in ALLOWED
        or name in _WITHOUT_EFFECT
        or name.startswith(_WITHOUT_EFFECT_PREFIXES)
    )
