"""The settings of a store in ZooKeeper, by Kafka's names (ZkConfigs of 3.9.1) where it has them."""

from aclbroker.broker.config import values
from aclbroker.broker.config.definition import Definition
from aclbroker.broker.config.values import integer

PREFIXES = ("zookeeper.", "authorizer.zookeeper.", "aclbroker.zookeeper.")
"""How the names begin of what has an effect with a store in ZooKeeper alone."""

_STORE_TYPE = values.choice("JKS", "PKCS12", "PEM")

ZOOKEEPER = (
    Definition(
        "zookeeper.connect", "", values.OPTIONAL_TEXT, "",
        "Where ZooKeeper is, HOST:PORT,.../CHROOT. With the authorizer "
        "`kafka.security.authorizer.AclAuthorizer` the store is there, unless `aclbroker.store` "
        "names another. Each setting here may be given as `authorizer.zookeeper.*`, too, which "
        "comes first; this one as `authorizer.zookeeper.url`.",
    ),
    Definition(
        "zookeeper.session.timeout.ms", "", integer(1), "18000",
        "How long a session outlives its connection, and how long an answer is waited for.",
    ),
    Definition(
        "zookeeper.connection.timeout.ms", "", integer(1), None,
        "How long to wait for a connection to one of the servers.",
        default_doc="`zookeeper.session.timeout.ms`",
    ),
    Definition(
        "zookeeper.set.acl", "", values.BOOLEAN, "false",
        "Whether nodes that are made here may be changed by the user of "
        "`aclbroker.zookeeper.sasl.jaas.config` alone.",
    ),
    Definition(
        "aclbroker.zookeeper.sasl.jaas.config", "", values.LOGIN_MODULE, "",
        "The login to ZooKeeper (DIGEST-MD5): "
        '`org.apache.zookeeper.server.auth.DigestLoginModule required username="USER" '
        'password="PASSWORD";`. In Kafka it stands in the section `Client` of a file of its own.',
        secret=True,
    ),
    Definition(
        "zookeeper.ssl.client.enable", "", values.BOOLEAN, "false",
        "Whether ZooKeeper is reached by TLS.",
    ),
    Definition(
        "zookeeper.ssl.keystore.location", "", values.PATH, "",
        "The file with the certificate and the key that are shown to ZooKeeper.",
    ),
    Definition(
        "zookeeper.ssl.keystore.password", "", values.OPTIONAL_TEXT, "",
        "The password of that file.", secret=True,
    ),
    Definition(
        "zookeeper.ssl.keystore.type", "", _STORE_TYPE, "JKS", "The type of that file.",
    ),
    Definition(
        "zookeeper.ssl.truststore.location", "", values.PATH, "",
        "The file with whom to trust; those whom the system trusts if it is empty.",
    ),
    Definition(
        "zookeeper.ssl.truststore.password", "", values.OPTIONAL_TEXT, "",
        "The password of that file.", secret=True,
    ),
    Definition(
        "zookeeper.ssl.truststore.type", "", _STORE_TYPE, "JKS", "The type of that file.",
    ),
    Definition(
        "zookeeper.ssl.enabled.protocols", "", values.TLS_PROTOCOLS, "",
        "The versions of TLS.",
    ),
    Definition(
        "zookeeper.ssl.cipher.suites", "", values.NAMES, "",
        "The cipher suites; empty is the defaults.",
    ),
    Definition(
        "zookeeper.ssl.endpoint.identification.algorithm", "",
        values.choice("HTTPS", "https", ""), "HTTPS",
        "Whether the name in the certificate of ZooKeeper must be that of its host; empty is no.",
    ),
)  # fmt: skip
