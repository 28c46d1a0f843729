"""The settings of the HTTP API for centralised ACLs, and of the clusters that one server holds.

Names with ``confluent.`` are those of Confluent's Metadata Service (MDS).
"""

from aclbroker.broker.config import access_rules, values
from aclbroker.broker.config.definition import Definition, Scope
from aclbroker.broker.config.values import LONG_MAX, integer

CLUSTER_PREFIX = "aclbroker.clusters."
METADATA_PREFIX = "confluent.metadata.server."

METADATA = (
    Definition(
        f"{METADATA_PREFIX}listeners", "", values.METADATA_URLS, "",
        "Where the HTTP API for centralised ACLs is served, which Confluent's MDS has: see mds.md. "
        "TLS is set by `ssl.*` with the prefix `confluent.metadata.server.`, or without it for "
        "all listeners.",
    ),
    Definition(
        f"{METADATA_PREFIX}advertised.listeners", "metadata_advertised", values.METADATA_URLS, "",
        "The URLs that clients of the API are told.",
        default_doc=f"`{METADATA_PREFIX}listeners`",
    ),
    Definition(
        f"{METADATA_PREFIX}token.key.path", "metadata_token_key_path", values.PATH, "",
        "A PEM file with the private key (RSA of 2048 bits or more, or EC) that signs tokens. If "
        "empty they are signed with a random key, and end with the process.",
    ),
    Definition(
        f"{METADATA_PREFIX}token.max.lifetime.ms", "metadata_token_max_lifetime_ms",
        integer(1000, LONG_MAX), "3600000", "How long a token is valid.",
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.store", "", values.STORE, None,
        "Makes this server hold the ACLs of a further cluster with that id, and says where. The id "
        "has letters, digits, `_` and `-`.",
        Scope.CLUSTER, default_doc="(needed)",
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.listeners", "", values.NAMES, "",
        "Names in `listeners`: who connects to them talks to that cluster.", Scope.CLUSTER,
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.super.users", "", values.PRINCIPALS, "",
        "Principals who may do everything in that cluster. Those of `super.users` may not.",
        Scope.CLUSTER,
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.broker.users", "", values.PRINCIPALS, "",
        "Principals who may do everything in that cluster that they ask for on the listener of its "
        "brokers: its only listener, or the one that `inter.broker.listener.name` names.",
        Scope.CLUSTER,
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.inter.broker.listener.name", "", values.OPTIONAL_TEXT, None,
        "Which of the cluster's listeners is that of its brokers.", Scope.CLUSTER,
        default_doc="its only listener",
    ),
    Definition(
        f"{CLUSTER_PREFIX}<id>.acl.limit", "", values.OPTIONAL_COUNT, "",
        "How many ACLs that cluster may have; MDS documents 1000. Creating more is refused.",
        Scope.CLUSTER,
    ),
)  # fmt: skip

PROVIDERS = (
    Definition(
        access_rules.PROVIDERS, "", values.NAMES, access_rules.DEFAULT,
        "With the authorizer `io.confluent.kafka.security.authorizer.ConfluentServerAuthorizer`: "
        "whose ACLs decide, one of these or `CONFLUENT` and one of the others. `CONFLUENT`: the "
        "centralised ones; `ZK_ACL`: the cluster's own, at `zookeeper.connect`; `KRAFT_ACL`: the "
        f"cluster's own, at `{access_rules.KRAFT_STORE}`. See providers.md.",
    ),
    Definition(
        access_rules.MIGRATES, "", values.BOOLEAN, "false",
        "Whether this broker copies the cluster's own ACLs to the centralised ones, and goes on "
        "to copy their changes. One broker of a cluster is enough.",
    ),
    Definition(
        access_rules.MAX_LOSS, "", integer(0, 100), str(access_rules.MAX_LOSS_PERCENT),
        "The largest share of its ACLs, in percent, that the cluster may lose within a minute: "
        "beyond that nothing more is copied, and the broker is not ready, until the ACLs are there "
        "again or the loss is confirmed. Two ACLs may always go, unless none is left.",
    ),
    Definition(
        access_rules.ACCEPTED_LOSS, "", values.OPTIONAL_TEXT, "",
        "Confirms one loss: the value that the log and `/readyz` tell after it. See providers.md.",
    ),
    Definition(
        access_rules.CENTRAL_STORE, "", values.OPTIONAL_STORE, "",
        "The store with the centralised ACLs, that of the cluster's "
        "`aclbroker.clusters.<id>.store` in the server.", default_doc="`aclbroker.store`",
    ),
    Definition(
        access_rules.CENTRAL_CLIENT, "", values.PATH, "",
        "A Kafka client's properties file: how to reach, and log in to, the cluster of that store "
        "if it is a topic.", default_doc="`aclbroker.store.client.config`",
    ),
    Definition(
        access_rules.KRAFT_STORE, "", values.STORE_OR_CLUSTER, "",
        "Where the cluster's own ACLs are for `KRAFT_ACL`: `kafka+acls://HOST:PORT,...` is a Kafka "
        "that is asked for them (DescribeAcls), and asked again.", default_doc="`aclbroker.store`",
    ),
    Definition(
        access_rules.KRAFT_CLIENT, "", values.PATH, "",
        "A Kafka client's properties file: how to reach, and log in to, that Kafka.",
        default_doc="`aclbroker.store.client.config`",
    ),
    Definition(
        access_rules.KRAFT_INTERVAL, "", integer(10), "1000",
        "How long to wait until that Kafka is asked again.",
    ),
)  # fmt: skip
