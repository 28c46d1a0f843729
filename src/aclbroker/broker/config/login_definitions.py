"""The settings of how clients authenticate: TLS, SASL and its mechanisms, delegation tokens.

Names, defaults and ranges are those of Kafka's SslConfigs, SaslConfigs and BrokerSecurityConfigs of
4.3.0.
"""

from aclbroker.broker.config import values
from aclbroker.broker.config.definition import Definition, Scope
from aclbroker.broker.config.values import LONG_MAX, ValueType, choice, integer, nothing_but

_NO_EFFECT = "Accepted; there is no other broker to talk to."
_ENGINE_FACTORY = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"

AUTHENTICATION = (
    Definition(
        "sasl.enabled.mechanisms", "", values.NAMES, "GSSAPI",
        "The SASL mechanisms offered: see authentication.md.",
        Scope.EITHER,
    ),
    Definition(
        "plain.sasl.jaas.config", "", values.JAAS, None,
        "Users and passwords of a listener with PLAIN, one `user_NAME=\"PASSWORD\"` for each. "
        "As in Kafka it has no effect without the listener's prefix.",
        Scope.LISTENER, default_doc="none: required with PLAIN", secret=True,
    ),
    Definition(
        "plain.sasl.server.callback.handler.class", "",
        nothing_but("", "a class that checks passwords in another way is not supported"), "",
        "Refused, since passwords come from `plain.sasl.jaas.config` alone.", Scope.LISTENER,
    ),
    *(
        Definition(
            f"{mechanism.lower()}.sasl.jaas.config", "", values.LOGIN_MODULE, None,
            f"Accepted: with it a broker of Kafka logs in to others. Users of {mechanism} are in "
            "the store, see authentication.md.",
            Scope.LISTENER, default_doc="none", secret=True,
        )
        for mechanism in values.SCRAM_MECHANISMS
    ),
    *(
        Definition(
            f"{mechanism.lower()}.sasl.server.callback.handler.class", "",
            nothing_but("", "a class that finds credentials in another way is not supported"), "",
            "Refused, since credentials are in the store alone.", Scope.LISTENER,
        )
        for mechanism in values.SCRAM_MECHANISMS
    ),
    Definition(
        "sasl.mechanism.inter.broker.protocol", "",
        values.TEXT, "GSSAPI", _NO_EFFECT,
    ),
    Definition(
        "connections.max.reauth.ms", "", integer(0, LONG_MAX), "0",
        "After how long a SASL session must authenticate again (KIP-368); 0 is never, as long as "
        "the credential itself does not expire. A request after that closes the connection.",
        Scope.EITHER,
    ),
    *(
        Definition(
            f"{mechanism.lower()}.connections.max.reauth.ms", "", integer(0, LONG_MAX), None,
            f"The same for {mechanism} alone.", Scope.LISTENER,
            default_doc="`connections.max.reauth.ms`",
        )
        for mechanism in values.MECHANISMS
    ),
    Definition(
        "connection.failed.authentication.delay.ms",
        "connection_failed_authentication_delay_ms", integer(0), "100",
        "How long a client whose authentication failed waits for the answer, and then for the end "
        "of its connection.",
    ),
)  # fmt: skip

TLS = (
    Definition(
        "ssl.keystore.type", "", values.STORE_TYPE, "JKS",
        "The format of the private key and its certificates. JKS and PKCS12 are told apart by the "
        "file, whichever of them stands here.", Scope.EITHER,
    ),
    Definition(
        "ssl.keystore.location", "", values.PATH, "",
        "The file with the private key and its certificate chain. A listener with SSL needs it, "
        "or `ssl.keystore.key`.", Scope.EITHER,
    ),
    Definition(
        "ssl.keystore.password", "", values.TEXT, None,
        "The password of the file; needed with JKS and PKCS12, not allowed with PEM.",
        Scope.EITHER, default_doc="none", secret=True,
    ),
    Definition(
        "ssl.key.password", "", values.TEXT, None,
        "The password of the private key.", Scope.EITHER,
        default_doc="`ssl.keystore.password`; none with PEM", secret=True,
    ),
    Definition(
        "ssl.keystore.key", "", values.TEXT, None,
        "The private key itself in place of a file, in PEM (PKCS#8); `ssl.keystore.type=PEM`.",
        Scope.EITHER, default_doc="none", secret=True,
    ),
    Definition(
        "ssl.keystore.certificate.chain", "", values.TEXT, None,
        "The certificates that belong to `ssl.keystore.key`, in PEM, the broker's own first.",
        Scope.EITHER, default_doc="none", secret=True,
    ),
    Definition(
        "ssl.truststore.type", "", values.STORE_TYPE, "JKS",
        "The format of the certificates that clients' certificates are held against.",
        Scope.EITHER,
    ),
    Definition(
        "ssl.truststore.location", "", values.PATH, "",
        "The file with these certificates. A listener that asks for client certificates needs it, "
        "or `ssl.truststore.certificates`.", Scope.EITHER,
    ),
    Definition(
        "ssl.truststore.password", "", values.TEXT, None,
        "The password of the file. JKS is read without one, and then nobody knows whether it was "
        "changed.", Scope.EITHER, default_doc="none", secret=True,
    ),
    Definition(
        "ssl.truststore.certificates", "", values.TEXT, None,
        "The certificates themselves in place of a file, in PEM; `ssl.truststore.type=PEM`.",
        Scope.EITHER, default_doc="none", secret=True,
    ),
    Definition(
        "ssl.client.auth", "", choice("none", "requested", "required"), "none",
        "Whether clients show a certificate. One that is shown must be good, also if it is only "
        "requested. Without a listener's prefix it is for SSL listeners alone, as in Kafka, not "
        "for SASL_SSL.", Scope.EITHER,
    ),
    Definition(
        "ssl.enabled.protocols", "", values.TLS_PROTOCOLS, "TLSv1.2,TLSv1.3",
        "The versions of TLS that are spoken. Older ones are refused.", Scope.EITHER,
    ),
    Definition(
        "ssl.protocol", "", choice("TLS", "TLSv1.2", "TLSv1.3"), "TLSv1.3",
        "As in Kafka it has no effect on a listener: see `ssl.enabled.protocols`.", Scope.EITHER,
    ),
    Definition(
        "ssl.cipher.suites", "", values.NAMES, "",
        "The cipher suites, by Java's names and in order of preference; if empty, those with "
        "forward secrecy and authenticated encryption or SHA-2. Of TLS 1.3 all three suites must "
        "be there, or none.", Scope.EITHER,
    ),
    Definition(
        "ssl.allow.dn.changes", "", values.BOOLEAN, "false",
        "Whether a certificate that is read while the broker runs may name another subject.",
        Scope.EITHER,
    ),
    Definition(
        "ssl.allow.san.changes", "", values.BOOLEAN, "false",
        "Whether it may lack subject alternative names of the one before.", Scope.EITHER,
    ),
    Definition(
        "ssl.trustmanager.algorithm", "",
        nothing_but("PKIX", "another way to trust certificates is not supported"), "PKIX",
        "Certificates are checked as RFC 5280 says.", Scope.EITHER,
    ),
    Definition(
        "ssl.engine.factory.class", "",
        nothing_but(_ENGINE_FACTORY, "another factory is not supported"), _ENGINE_FACTORY,
        "What makes TLS of these settings.", Scope.EITHER,
    ),
)  # fmt: skip

TOKENS = (
    Definition(
        "delegation.token.secret.key", "delegation_token_secret_key", values.OPTIONAL_TEXT, "",
        "The key that delegation tokens are made with. If it is empty there are none; if it "
        "changes, those that there are are good for nothing.", secret=True,
    ),
    Definition(
        "delegation.token.max.lifetime.ms", "delegation_token_max_lifetime_ms",
        integer(1, LONG_MAX), "604800000",
        "How long a token may be renewed at most.",
    ),
    Definition(
        "delegation.token.expiry.time.ms", "delegation_token_expiry_time_ms",
        integer(1, LONG_MAX), "86400000",
        "How long a token is good for, unless it is renewed.",
    ),
    Definition(
        "delegation.token.expiry.check.interval.ms", "delegation_token_expiry_check_interval_ms",
        integer(1, LONG_MAX), "3600000",
        "How often expired tokens are removed. Nobody can log in with them before that either.",
    ),
    Definition(
        "aclbroker.delegation.tokens.per.requester", "delegation_tokens_per_requester",
        integer(1, 1_000_000), "1000",
        "How many delegation tokens there may be that one principal has asked for.",
    ),
)  # fmt: skip

_TOKEN_VALIDATORS = (
    "org.apache.kafka.common.security.oauthbearer.DefaultJwtValidator",
    "org.apache.kafka.common.security.oauthbearer.BrokerJwtValidator",
)
_TOKEN_CALLBACK_HANDLERS = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler",
    "org.apache.kafka.common.security.oauthbearer.secured.OAuthBearerValidatorCallbackHandler",
)


def _for_oauthbearer(name: str, type: ValueType, default: str, doc: str) -> tuple[Definition, ...]:
    """Both names that Kafka's ConfigurationUtils looks a setting of OAUTHBEARER up by."""
    return (
        Definition(name, "", type, default, doc, Scope.EITHER),
        Definition(
            f"oauthbearer.{name}", "", type, None, "The same; this one counts if both are set.",
            Scope.LISTENER, default_doc=f"`{name}`",
        ),
    )  # fmt: skip


OAUTHBEARER = (
    *_for_oauthbearer(
        "sasl.oauthbearer.jwks.endpoint.url", values.JWKS_URL, "",
        "Where the keys are with which access tokens are signed: a JWK set. Required with "
        "OAUTHBEARER.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.expected.audience", values.NAMES, "",
        "The audiences of which a token must name one (`aud`). If there is none here, a token must "
        "name none.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.expected.issuer", values.OPTIONAL_TEXT, "",
        "The issuer that a token must name (`iss`).",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.clock.skew.seconds", integer(0), "30",
        "By how much the clocks of the issuer and of this machine may differ.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.sub.claim.name", values.CLAIM, "sub",
        "The claim that is the name of the principal.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.scope.claim.name", values.CLAIM, "scope",
        "The claim that holds the scopes. It may be missing, and must not be malformed.",
    ),
    Definition(
        "aclbroker.oauthbearer.groups.claim", "", values.OPTIONAL_TEXT, "",
        "The claim with the groups of the user: strings, or one string. Each is a principal "
        "`Group:name` beside the user's own. If empty, tokens name no groups. See principals.md.",
        Scope.EITHER,
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.jwks.endpoint.refresh.ms", integer(1, LONG_MAX), "3600000",
        "How often an HTTP endpoint is asked for the keys. A token with an unknown key makes the "
        "broker ask sooner, at most every 10 seconds. A file is read when it has changed.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms", integer(0, LONG_MAX), "100",
        "How long to wait when it does not answer, before asking again; twice as long each time.",
    ),
    *_for_oauthbearer(
        "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms", integer(0, LONG_MAX), "10000",
        "For how long to ask again and again. After that the broker does not start; if it has "
        "started, the keys stay as they are.",
    ),
    Definition(
        "sasl.oauthbearer.jwt.validator.class", "",
        choice(*_TOKEN_VALIDATORS), _TOKEN_VALIDATORS[0],
        "Both mean what happens here.", Scope.EITHER,
    ),
    Definition(
        "oauthbearer.sasl.server.callback.handler.class", "",
        choice(*_TOKEN_CALLBACK_HANDLERS), None,
        "Both mean what happens here, which is the default too: Kafka's default accepts tokens "
        "that nobody has signed.",
        Scope.LISTENER, default_doc=f"`{_TOKEN_CALLBACK_HANDLERS[0]}`",
    ),
    Definition(
        "oauthbearer.sasl.jaas.config", "", values.OAUTHBEARER_JAAS, None,
        "Needed only where the certificate of an https endpoint is to be known by a trust store of "
        "one's own: `ssl.truststore.type`, `.location`, `.password` or `.certificates`.",
        Scope.LISTENER, default_doc="none", secret=True,
    ),
)  # fmt: skip

KERBEROS = (
    Definition(
        "gssapi.sasl.jaas.config", "", values.KERBEROS_JAAS, None,
        "The broker's Kerberos principal, and the file with its keys. Without `keyTab` it is the "
        "default keytab of krb5.conf. Other options are accepted and have no effect.",
        Scope.LISTENER, default_doc="none: required with GSSAPI", secret=True,
    ),
    Definition(
        "sasl.kerberos.service.name", "", values.OPTIONAL_TEXT, "",
        "The first part of the broker's principal, by which clients ask for tickets.",
        Scope.EITHER,
    ),
    Definition(
        "gssapi.sasl.server.callback.handler.class", "",
        nothing_but("", "a class that authorizes in another way is not supported"), "",
        "Refused, since a client is who its ticket says.", Scope.LISTENER,
    ),
)  # fmt: skip
