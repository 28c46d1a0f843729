"""The settings of the cluster behind a gateway: the names of Kafka's clients, with a prefix."""

from typing import Any

from aclbroker.broker.config import values
from aclbroker.broker.config.definition import Definition, Scope
from aclbroker.broker.config.values import choice, integer

UPSTREAM_PREFIX = "aclbroker.upstream."
BOOTSTRAP_SERVERS = f"{UPSTREAM_PREFIX}bootstrap.servers"
FIRST_PORT = f"{UPSTREAM_PREFIX}nodes.first.port"
UPSTREAM_MECHANISMS = ("PLAIN", *values.SCRAM_MECHANISMS)
"""The SASL mechanisms of the login; those of other mechanisms would block the event loop."""

_TEXT = values.OPTIONAL_TEXT


def _client(
    name: str, type_: values.ValueType, default: str | None, doc: str, **more: Any
) -> Definition:
    return Definition(f"{UPSTREAM_PREFIX}{name}", "", type_, default, doc, **more)


UPSTREAM = (
    Definition(
        BOOTSTRAP_SERVERS, "", _TEXT, "",
        "Addresses `HOST:PORT,HOST:PORT` of brokers of a real cluster. This broker is then a "
        "gateway: it forwards to that cluster what the ACLs allow. See gateway.md.",
    ),
    Definition(
        FIRST_PORT, "", values.OPTIONAL_PORT, "",
        "The port at which clients reach the broker with the id 0; the others follow by their "
        "ids. It is needed for a cluster of several brokers.", Scope.EITHER,
    ),
    _client(
        "security.protocol", choice(*values.SECURITY_PROTOCOLS), "PLAINTEXT",
        "The security protocol of the cluster's listener.",
    ),
    _client(
        "sasl.mechanism", choice(*UPSTREAM_MECHANISMS), None,
        "The mechanism of the login.", default_doc="(needed with SASL)",
    ),
    _client(
        "sasl.jaas.config", _TEXT, "",
        "The login module of the mechanism with user name and password. The cluster must allow "
        "this principal everything that any client of the gateway may do.", secret=True,
    ),
    _client(
        "client.id", _TEXT, "aclbroker-gateway", "The client id of the gateway's own requests."
    ),
    _client(
        "socket.connection.setup.timeout.ms", integer(0), "10000",
        "The time limit of a new connection, with its TLS handshake.",
    ),
    _client(
        "request.timeout.ms", integer(0), "30000",
        "The time limit of a login and of each of the gateway's own requests.",
    ),
    _client("ssl.truststore.type", values.STORE_TYPE, "JKS", "The format of the trust store."),
    _client(
        "ssl.truststore.location", _TEXT, "",
        "The file with the trusted certificates; without one, those of the system.",
    ),
    _client("ssl.truststore.password", _TEXT, "", "Its password.", secret=True),
    _client("ssl.truststore.certificates", _TEXT, "", "The trusted certificates as PEM."),
    _client("ssl.keystore.type", values.STORE_TYPE, "JKS", "The format of the key store."),
    _client("ssl.keystore.location", _TEXT, "", "The file with the gateway's certificate and key."),
    _client("ssl.keystore.password", _TEXT, "", "Its password.", secret=True),
    _client("ssl.key.password", _TEXT, "", "The password of the key.", secret=True),
    _client("ssl.keystore.key", _TEXT, "", "The key as PEM.", secret=True),
    _client("ssl.keystore.certificate.chain", _TEXT, "", "The certificate chain as PEM."),
    _client(
        "ssl.endpoint.identification.algorithm", choice("https", ""), "https",
        "`https` compares the host name with the broker's certificate; empty does not.",
    ),
    _client(
        "ssl.enabled.protocols", values.TLS_PROTOCOLS, "TLSv1.2,TLSv1.3", "The versions of TLS."
    ),
    _client("ssl.cipher.suites", values.NAMES, "", "The cipher suites; empty is all."),
)  # fmt: skip
