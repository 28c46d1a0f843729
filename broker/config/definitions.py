"""The table of settings; it drives parsing, the messages and docs/configuration.md.

Names, defaults and ranges are Kafka's own (SocketServerConfigs, BrokerSecurityConfigs and
StandardAuthorizer of 4.3.0) except those that start with `aclbroker.`.
"""

from enum import Enum
from typing import NamedTuple

from broker.config import values
from broker.config.model import BUILT_IN_AUTHORIZER, BUILT_IN_PRINCIPAL_BUILDER
from broker.config.values import INT_MAX, LONG_MAX, ValueType, choice, integer, nothing_but


class Scope(Enum):
    """Where a setting may stand: alone, or behind the prefix `listener.name.<listener>.`."""

    BROKER = "broker"
    EITHER = "broker or listener"
    LISTENER = "listener"


class Definition(NamedTuple):
    """One setting. `field` is its place in Config, "" if something else is made of it.

    `default` is text that `type` parses; None is a default that depends on other things, which
    `default_doc` describes. A `secret` is never shown.
    """

    name: str
    field: str
    type: ValueType
    default: str | None
    doc: str
    scope: Scope = Scope.BROKER
    default_doc: str = ""
    secret: bool = False


_NO_EFFECT = "Accepted; there is no other broker to talk to."
_ENGINE_FACTORY = "org.apache.kafka.common.security.ssl.DefaultSslEngineFactory"
_DEFAULT_MAP = ",".join(f"{name}:{name}" for name in values.SECURITY_PROTOCOLS)

_LISTENERS = (
    Definition(
        "listeners", "", values.ENDPOINTS, "PLAINTEXT://:9092",
        "The addresses to listen on. An empty host is every interface, port 0 any free port; "
        "IPv6 addresses stand in brackets.",
    ),
    Definition(
        "advertised.listeners", "", values.ENDPOINTS, None,
        "The addresses that clients are told. An empty host is this machine's name. A listener "
        "that is not named here advertises its own address.",
        default_doc="`listeners`",
    ),
    Definition(
        "listener.security.protocol.map", "", values.PROTOCOL_MAP, _DEFAULT_MAP,
        "The security protocol of each listener name.",
    ),
    Definition(
        "controller.listener.names", "", values.NAMES, "",
        "Names in `listeners` that belong to a controller: not opened here.",
    ),
    Definition(
        "inter.broker.listener.name", "", values.OPTIONAL_TEXT, None,
        "The listener of which `broker.users` may do everything; no broker connects to it.",
        default_doc="the one named like `security.inter.broker.protocol`",
    ),
    Definition(
        "security.inter.broker.protocol", "",
        choice(*values.SECURITY_PROTOCOLS), "PLAINTEXT",
        "The name of the listener of brokers where `inter.broker.listener.name` is not set.",
    ),
    Definition(
        "node.id", "node_id", integer(0), None,
        "The id under which this broker appears in Metadata answers.", default_doc="`broker.id`",
    ),
    Definition(
        "broker.id", "", integer(0), "1",
        "The older name of `node.id`; if both are set they must be equal.",
    ),
)  # fmt: skip

_AUTHORIZATION = (
    Definition(
        "authorizer.class.name", "authorizer_class_name", values.AUTHORIZER,
        BUILT_IN_AUTHORIZER,
        "Who decides. Unlike in Kafka, leaving it out does not switch authorization off: only "
        "an explicitly empty value does.",
    ),
    Definition(
        "super.users", "super_users", values.PRINCIPALS, "",
        "Principals who may do everything, whatever the ACLs say.",
    ),
    Definition(
        "allow.everyone.if.no.acl.found", "allow_everyone_if_no_acl_found", values.BOOLEAN,
        "false", "Whether a resource that no ACL names is open to everyone.",
    ),
    Definition(
        "auto.create.topics.enable", "auto_create_topics_enable", values.BOOLEAN, "true",
        "Whether Metadata asks for the right to create a topic that is missing and asked for. "
        "Topics are not created either way.",
    ),
    Definition(
        "broker.users", "broker_users", values.PRINCIPALS, "",
        "Principals who may do everything that they ask for on the listener of the brokers "
        "(`inter.broker.listener.name`), and on other listeners what the ACLs say.",
    ),
    Definition(
        "principal.builder.class", "", values.PRINCIPAL_BUILDER, BUILT_IN_PRINCIPAL_BUILDER,
        "Who names the principals of a connection: see authentication.md.", Scope.EITHER,
    ),
    Definition(
        "ssl.principal.mapping.rules", "", values.SSL_PRINCIPAL_MAPPING_RULES, "DEFAULT",
        "Which principal the subject of a client's certificate stands for; the first rule that "
        "matches counts. See principals.md.", Scope.EITHER,
    ),
    Definition(
        "sasl.kerberos.principal.to.local.rules", "", values.KERBEROS_RULES, "DEFAULT",
        "Which principal a Kerberos name stands for; the first rule that matches counts. See "
        "principals.md.", Scope.EITHER,
    ),
)  # fmt: skip

_AUTHENTICATION = (
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

_TLS = (
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

_TOKENS = (
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


_OAUTHBEARER = (
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

_KERBEROS = (
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

_CONNECTIONS = (
    Definition(
        "socket.request.max.bytes", "socket_request_max_bytes", integer(1), "104857600",
        "The longest request, in bytes. A longer one closes its connection.",
    ),
    Definition(
        "sasl.server.max.receive.size", "sasl_server_max_receive_size", integer(1), "524288",
        "The longest request before authentication is complete, in bytes.",
    ),
    Definition(
        "connections.max.idle.ms", "connections_max_idle_ms", integer(1, LONG_MAX, never=-1),
        "600000", "After how long without a request a connection is closed.",
    ),
    Definition(
        "max.connections", "max_connections", integer(0), str(INT_MAX),
        "How many connections may be open; with the prefix, on that listener.", Scope.EITHER,
    ),
    Definition(
        "max.connections.per.ip", "max_connections_per_ip", integer(0), str(INT_MAX),
        "How many connections may be open from one address. 0 needs "
        "`max.connections.per.ip.overrides`.",
    ),
    Definition(
        "max.connections.per.ip.overrides", "max_connections_per_ip_overrides",
        values.CONNECTIONS_BY_ADDRESS, "",
        "Limits of single addresses. Host names are resolved once, at start.",
    ),
    Definition(
        "socket.listen.backlog.size", "socket_listen_backlog_size", integer(1), "1024",
        "How many connections may wait to be accepted. Kafka's default is 50; who finds the queue "
        "full waits for a second.",
    ),
)  # fmt: skip

_OWN = (
    Definition(
        "aclbroker.store", "store", values.STORE, "sqlite:///aclbroker.db",
        "Where ACLs, SCRAM credentials and delegation tokens are kept. A relative path starts at "
        "the working directory.",
    ),
    Definition(
        "aclbroker.acl.host.cidr", "acl_host_cidr", values.BOOLEAN, "false",
        "Whether the host of an ACL may be a subnet such as 10.1.0.0/16 (KIP-252).",
    ),
    Definition(
        "aclbroker.acl.limit", "acl_limit", values.OPTIONAL_COUNT, "",
        "How many ACLs there may be; creating more is refused.",
    ),
    Definition(
        "aclbroker.gate.profile", "gate_profile", choice("kafka-4.3", "documented"), "kafka-4.3",
        "Whose rules API keys are held to where Kafka and its documentation differ: see gate.md.",
    ),
    Definition(
        "aclbroker.catalog.topics", "catalog_topics", values.TOPICS, "",
        "Topics that the broker says it has. They are empty, and stay so.",
    ),
    Definition(
        "aclbroker.catalog.groups", "catalog_groups", values.NAMES, "",
        "Consumer groups that the broker says it has, without members.",
    ),
    Definition(
        "aclbroker.log.format", "log_format", choice("console", "json"), None,
        "The form of the log, which goes to stderr.",
        default_doc="console on a terminal, else json",
    ),
    Definition(
        "aclbroker.log.level", "log_level",
        choice(
            "debug", "info", "warning", "error", also={"trace": "debug", "warn": "warning"}
        ),
        "info", "The least level that is logged. It does not concern audit records.",
    ),
    Definition(
        "aclbroker.audit.level", "audit_level",
        choice(
            "off", "denied", "all", "trace", also={"info": "denied", "debug": "all"},
        ),
        "denied",
        "Which decisions are recorded. denied: refusals (Kafka's INFO); all: also what was "
        "allowed (DEBUG); trace: also decisions that only filter an answer or fill "
        "authorized-operations fields (TRACE).",
    ),
    Definition(
        "aclbroker.audit.format", "audit_format", choice("json", "kafka"), "json",
        "json: see docs/audit.md. kafka: the lines of Kafka's authorizer log.",
    ),
    Definition(
        "aclbroker.audit.file", "audit_file", values.PATH, "",
        "The file that audit records are appended to, opened anew on SIGHUP; if empty they go to "
        "stderr with the log.",
    ),
    Definition(
        "aclbroker.sasl.timeout.ms", "sasl_timeout_ms", integer(1, never=-1), "30000",
        "How long a client may take to authenticate, with its TLS handshake.",
    ),
    Definition(
        "aclbroker.max.unauthenticated.connections", "max_unauthenticated_connections",
        integer(1), "1000",
        "How many connections may be open that have not authenticated; of more the oldest is "
        "closed.",
    ),
    Definition(
        "aclbroker.metrics.address", "metrics_address", values.ADDRESS, "",
        "Where figures for Prometheus are served over HTTP, to whoever asks; if empty, nowhere.",
    ),
    Definition(
        "aclbroker.shutdown.timeout.ms", "shutdown_timeout_ms", integer(0), "10000",
        "How long requests that are being answered may take once the broker is told to stop.",
    ),
)  # fmt: skip

SECTIONS = {
    "Listeners and identity": _LISTENERS,
    "Authorization": _AUTHORIZATION,
    "Authentication": _AUTHENTICATION,
    "TLS": _TLS,
    "Delegation tokens": _TOKENS,
    "OAUTHBEARER": _OAUTHBEARER,
    "GSSAPI (Kerberos)": _KERBEROS,
    "Connections": _CONNECTIONS,
    "Settings of aclbroker": _OWN,
}
DEFINITIONS = {row.name: row for rows in SECTIONS.values() for row in rows}
