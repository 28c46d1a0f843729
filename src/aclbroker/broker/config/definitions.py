"""The table of settings; it drives parsing, the messages and docs/configuration.md.

Names, defaults and ranges are Kafka's own (SocketServerConfigs, BrokerSecurityConfigs and
StandardAuthorizer of 4.3.0) except those that start with `aclbroker.`.
"""

from aclbroker.broker.config import login_definitions, values, zookeeper_definitions
from aclbroker.broker.config.definition import Definition, Scope
from aclbroker.broker.config.group_definitions import GROUPS
from aclbroker.broker.config.metadata_definitions import METADATA, PROVIDERS
from aclbroker.broker.config.model import BUILT_IN_AUTHORIZER, BUILT_IN_PRINCIPAL_BUILDER
from aclbroker.broker.config.store_url import DEFAULT_STORE
from aclbroker.broker.config.topic_definitions import TOPICS
from aclbroker.broker.config.upstream_definitions import UPSTREAM
from aclbroker.broker.config.values import INT_MAX, LONG_MAX, choice, integer

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
        "super.users", "", values.PRINCIPALS, "",
        "Principals who may do everything, whatever the ACLs say.",
    ),
    Definition(
        "allow.everyone.if.no.acl.found", "", values.BOOLEAN,
        "false", "Whether a resource that no ACL names is open to everyone.",
    ),
    Definition(
        "auto.create.topics.enable", "auto_create_topics_enable", values.BOOLEAN, "true",
        "Whether Metadata asks for the right to create a topic that is missing and asked for. "
        "Topics are not created either way.",
    ),
    Definition(
        "broker.users", "", values.PRINCIPALS, "",
        "Principals who may do everything that they ask for on the listener of the brokers "
        "(`inter.broker.listener.name`), and on other listeners what the ACLs say.",
    ),
    Definition(
        "principal.builder.class", "", values.PRINCIPAL_BUILDER, BUILT_IN_PRINCIPAL_BUILDER,
        "Who names the principals of a connection: see authentication.md.", Scope.EITHER,
    ),
    Definition(
        "aclbroker.groups.file", "groups_file", values.PATH, "",
        "A YAML file that says who is in which group. Each is a principal `Group:name` beside the "
        "user's own. It is read again when it changes, and on SIGHUP. See principals.md.",
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

_CONNECTIONS = (
    Definition(
        "socket.request.max.bytes", "socket_request_max_bytes", integer(1), "104857600",
        "The longest request, in bytes. A longer one closes its connection.",
    ),
    Definition(
        "aclbroker.max.request.bytes.per.principal", "max_request_bytes_per_principal", integer(1),
        "104857600", "How many bytes of large requests that are not answered yet, and of large "
        "answers that are not read yet, a principal may have on all its connections. Beyond that "
        "its next requests wait.",
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
        "How many connections may be open; with the prefix, on that listener. For one more the "
        "oldest that has not authenticated is closed; where all have, it waits until one ends. The "
        "hard limit of file descriptors is a limit, too.",
        Scope.EITHER,
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
        "aclbroker.workers", "workers", integer(1, 64), "1",
        "How many processes serve the listeners, for more than one core. With more than one, a "
        "further process owns the store and hands connections out. See docs/workers.md.",
    ),
    Definition(
        "aclbroker.store", "store", values.STORE, DEFAULT_STORE,
        "Where ACLs, SCRAM credentials and delegation tokens are kept. A relative path starts at "
        "the working directory. A file is shared by all brokers of one machine that name it "
        "(store.md), a topic by all that name it; for that each needs a `node.id` of its own.",
    ),
    Definition(
        "aclbroker.store.client.config", "", values.PATH, "",
        "A Kafka client's properties file: how to reach, and log in to, the cluster of a store "
        "that is a topic.",
    ),
    Definition(
        "aclbroker.store.snapshot.dir", "", values.PATH, "",
        "A directory for snapshots of a store that is a topic, so that a start reads only what "
        "came since (topic-store.md). They have the secrets of SCRAM users. Without it none are "
        "written, and the whole topic is read.",
    ),
    Definition(
        "aclbroker.store.read", "", choice("local", "latest"), "local",
        "What DescribeAcls shows of a shared store: what this broker has read of it, or, after "
        "waiting for that, all that any broker had changed when the request came.",
    ),
    Definition(
        "aclbroker.store.max.lag.ms", "", integer(0), "30000",
        "How long a store that others may change may be out of reach until the broker says "
        "so in its log and does what `aclbroker.store.stale` says.",
    ),
    Definition(
        "aclbroker.store.stale", "", choice("serve", "deny"), "serve",
        "Whether decisions go on with the ACLs in memory then, or all but super users and broker "
        "users are denied everything until the store is within reach again.",
    ),
    Definition(
        "aclbroker.store.history.max.changes", "", integer(0), "100000",
        "How many of the last changes of ACLs and records the store keeps, with who made them, "
        "also those that are undone (store.md). Older ones are deleted when 20,000 can be.",
    ),
    Definition(
        "aclbroker.acls.file", "", values.PATH, "",
        "A policy file (policy.md) with the ACLs that a store begins with. A store is given them "
        "at its first start with this setting, unless it has ACLs, and never again.",
    ),
    Definition(
        "aclbroker.acl.host.cidr", "", values.BOOLEAN, "false",
        "Whether the host of an ACL may be a subnet such as 10.1.0.0/16 (KIP-252).",
    ),
    Definition(
        "aclbroker.acl.limit", "", values.OPTIONAL_COUNT, "",
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
        "aclbroker.cluster", "cluster", choice("none", "memory"), "none",
        "`memory` keeps topics, records, groups and transactions in memory, for tests of "
        "applications (testing.md); all of it is lost at the end. With `none` there is no data.",
    ),
    Definition(
        "aclbroker.nodes", "nodes", integer(1, 100), "1",
        "How many brokers the cluster in memory shows. Each further one has the next id after "
        "`node.id`, and the next port of each listener.",
    ),
    Definition(
        "aclbroker.memory.max.bytes", "memory_max_bytes", integer(1 << 20, LONG_MAX),
        str(256 << 20), "How many bytes the records that the cluster in memory keeps may take, and "
        "what its partitions know of idempotent producers.",
    ),
    Definition(
        "aclbroker.memory.full", "memory_full", choice("delete", "refuse"), "delete",
        "What happens to records beyond that: with `delete` the oldest of topics whose "
        "`cleanup.policy` is delete go, with `refuse` Produce gets KAFKA_STORAGE_ERROR.",
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
        "aclbroker.audit.rollup.seconds", "audit_rollup_seconds", integer(0, 86_400), "60",
        "How long equal decisions are put together into one record with their number; the first "
        "denial is recorded at once. 0: a record for each decision, as always in the form kafka.",
    ),
    Definition(
        "aclbroker.audit.max.bytes.per.second", "audit_max_bytes_per_second",
        integer(1024, LONG_MAX, never=0), "1048576",
        "How many bytes of decisions are recorded a second, over ten seconds; of what is left out "
        "the number is recorded. 0 is no limit.",
    ),
    Definition(
        "aclbroker.audit.file.max.bytes", "audit_file_max_bytes",
        integer(1_048_576, LONG_MAX, never=0), "0",
        "How large the audit file gets before it is rotated: kept under its name with the time "
        "behind it.",
    ),
    Definition(
        "aclbroker.audit.file.max.seconds", "audit_file_max_seconds", integer(60, never=0), "0",
        "After which time the audit file is rotated; 86400 is at midnight in UTC.",
    ),
    Definition(
        "aclbroker.audit.files.max.total.bytes", "audit_files_max_total_bytes",
        integer(1_048_576, LONG_MAX, never=0), "0",
        "How large the audit file and those that were rotated may be together; the oldest are "
        "deleted.",
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
        "Where figures for Prometheus (/metrics) and whether the broker is alive (/healthz) and "
        "ready (/readyz) are served over HTTP, to whoever asks; if empty, nowhere. See "
        "docs/operations.md.",
    ),
    Definition(
        "aclbroker.faults.address", "faults_address", values.ADDRESS, "",
        "Where tests ask a cluster in memory over HTTP to let requests fail (/faults): an address "
        "of this machine alone, or any with a token; if empty, nowhere. See docs/testing.md.",
    ),
    Definition(
        "aclbroker.faults.token", "faults_token", values.OPTIONAL_TEXT, "",
        "What they have to send for that, as `Authorization: Bearer TOKEN`, of at least 16 "
        "characters; if empty, nothing.", secret=True,
    ),
    Definition(
        "aclbroker.shutdown.timeout.ms", "shutdown_timeout_ms", integer(0), "10000",
        "How long requests that are being answered may take once the broker is told to stop.",
    ),
)  # fmt: skip

_PROVIDERS = (
    Definition(
        "config.providers", "", values.NAMES, "",
        "Names of providers, whose references `${NAME:PATH:KEY}` in values are replaced: see "
        "\"Secrets elsewhere\".",
    ),
)  # fmt: skip

SECTIONS = {
    "Listeners and identity": _LISTENERS,
    "Authorization": _AUTHORIZATION,
    "Authentication": login_definitions.AUTHENTICATION,
    "TLS": login_definitions.TLS,
    "Delegation tokens": login_definitions.TOKENS,
    "OAUTHBEARER": login_definitions.OAUTHBEARER,
    "GSSAPI (Kerberos)": login_definitions.KERBEROS,
    "Connections": _CONNECTIONS,
    "Centralised ACLs": METADATA,
    "Access rule providers": PROVIDERS,
    "Config providers": _PROVIDERS,
    "Gateway: the cluster upstream": UPSTREAM,
    "Topics of a cluster in memory": TOPICS,
    "Groups of a cluster in memory": GROUPS,
    "ZooKeeper": zookeeper_definitions.ZOOKEEPER,
    "Settings of aclbroker": _OWN,
}
DEFINITIONS = {row.name: row for rows in SECTIONS.values() for row in rows}
