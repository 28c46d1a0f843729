"""The result of reading a configuration: `Config` with its `Listener`s, or `ConfigError`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from aclbroker.broker.auth.tls.settings import TlsSettings

if TYPE_CHECKING:
    from aclbroker.broker.auth.mapping.kerberos_name import KerberosRule
    from aclbroker.broker.auth.mapping.ssl_principal_mapping import SslPrincipalMapper
    from aclbroker.broker.config.setting import Setting
    from aclbroker.broker.topic_configs import BrokerDefault

BUILT_IN_AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
NO_AUTHORIZER = ""
BUILT_IN_PRINCIPAL_BUILDER = (
    "org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder"
)


class ConfigError(Exception):
    """The configuration cannot be used.

    `problems` holds one line for each thing that is wrong, `warnings` what else should be told.
    No line contains a secret.
    """

    def __init__(self, problems: tuple[str, ...], warnings: tuple[str, ...] = ()) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems
        self.warnings = warnings


class ServerUrl(NamedTuple):
    """Where an HTTP server listens; ``host`` None is every interface."""

    scheme: str
    host: str | None
    port: int

    def __str__(self) -> str:
        host = self.host or ""
        return f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Listener:
    """One address to listen on, and the settings of the connections to it.

    `name` is in upper case. `host` None is every interface. `port` 0 lets the system choose, and
    `advertised_port` 0 is the port it chose. `mechanisms` are the settings of each SASL mechanism
    that is offered, empty where the security protocol has no SASL; `max_reauth_ms` has the
    milliseconds after which a session of a mechanism must authenticate again, 0 for never.
    `ssl_principal_mapping_rules` are there if the security protocol is SSL,
    `sasl_kerberos_principal_to_local_rules` if GSSAPI is among the mechanisms, or if they were set.
    `tls` is None where the security protocol has no TLS. `first_broker_port` is the port of the
    broker with the id 0 behind a gateway, None without ports of brokers.
    """

    name: str
    security_protocol: str
    host: str | None
    port: int
    advertised_host: str
    advertised_port: int
    mechanisms: Mapping[str, Any] = field(repr=False)
    max_reauth_ms: Mapping[str, int]
    principal_builder_class: str
    ssl_principal_mapping_rules: SslPrincipalMapper | None
    sasl_kerberos_principal_to_local_rules: Sequence[KerberosRule] | None
    max_connections: int
    tls: TlsSettings | None = None
    first_broker_port: int | None = None

    @property
    def admits_anybody(self) -> bool:
        """Whether clients may connect without proving who they are."""
        by_certificate = self.tls is not None and self.tls.client_auth == "required"
        return not self.mechanisms and not by_certificate


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A further cluster whose ACLs this server holds.

    ``store`` is a URL, ``listeners`` are the names of those that serve it, ``properties`` what its
    authorizer takes.
    """

    cluster_id: str
    store: str
    listeners: tuple[str, ...]
    properties: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings, checked and typed; docs/configuration.md says what each of them means.

    `authorizer_class_name` is BUILT_IN_AUTHORIZER, NO_AUTHORIZER or "package.module:Class".
    `delegation_token_secret_key` None is no delegation tokens. `log_format` None is console on a
    terminal, else json. `metadata_listeners` are those of the HTTP API for centralised ACLs; the
    name of each is its URL. `clusters` are those besides the server's own.
    `upstream` has the settings of the cluster behind a gateway by name, and is empty without one.
    `reserved_topics` are the topics in which ACLs are kept, those of further clusters included.
    `connections_max_idle_ms` -1 is never. `properties` are the settings as text, from which an
    authorizer, the built-in one too, takes its own. `warnings` and `notes` are lines to log once
    at start.
    """

    listeners: tuple[Listener, ...]
    node_id: int
    authorizer_class_name: str
    groups_file: str | None
    delegation_token_secret_key: str | None = field(repr=False)
    delegation_token_max_lifetime_ms: int
    delegation_token_expiry_time_ms: int
    delegation_token_expiry_check_interval_ms: int
    delegation_tokens_per_requester: int
    socket_request_max_bytes: int
    max_request_bytes_per_principal: int
    sasl_server_max_receive_size: int
    connections_max_idle_ms: int
    connection_failed_authentication_delay_ms: int
    sasl_timeout_ms: int
    max_unauthenticated_connections: int
    metrics_address: tuple[str, int] | None
    faults_address: tuple[str, int] | None
    faults_token: str | None = field(repr=False)
    max_connections: int
    max_connections_per_ip: int
    max_connections_per_ip_overrides: Mapping[str, int]
    socket_listen_backlog_size: int
    workers: int
    store: str
    reserved_topics: frozenset[str]
    gate_profile: str
    auto_create_topics_enable: bool
    catalog_topics: Mapping[str, int]
    catalog_groups: tuple[str, ...]
    cluster: str
    nodes: int
    memory_max_bytes: int
    memory_full: str
    num_partitions: int
    default_replication_factor: int
    topic_defaults: Mapping[str, BrokerDefault]
    group_initial_rebalance_delay_ms: int
    group_min_session_timeout_ms: int
    group_max_session_timeout_ms: int
    group_max_size: int
    group_consumer_session_timeout_ms: int
    group_consumer_heartbeat_interval_ms: int
    group_consumer_max_size: int
    group_consumer_assignors: tuple[str, ...]
    group_consumer_migration_policy: str
    group_consumer_regex_refresh_interval_ms: int
    group_share_session_timeout_ms: int
    group_share_heartbeat_interval_ms: int
    group_share_record_lock_duration_ms: int
    group_share_delivery_count_limit: int
    group_share_partition_max_record_locks: int
    group_share_max_size: int
    group_share_max_share_sessions: int
    offsets_retention_minutes: int
    offsets_retention_check_interval_ms: int
    offset_metadata_max_bytes: int
    memory_groups_max_bytes: int
    log_format: str | None
    log_level: str
    audit_format: str
    audit_file: str | None
    audit_level: str
    audit_rollup_seconds: int
    audit_max_bytes_per_second: int
    audit_file_max_bytes: int
    audit_file_max_seconds: int
    audit_files_max_total_bytes: int
    shutdown_timeout_ms: int
    metadata_listeners: tuple[Listener, ...]
    metadata_advertised: tuple[ServerUrl, ...]
    metadata_token_key_path: str | None
    metadata_token_max_lifetime_ms: int
    clusters: tuple[ClusterSettings, ...]
    upstream: Mapping[str, Setting] = field(repr=False)
    properties: Mapping[str, str] = field(repr=False)
    warnings: tuple[str, ...]
    notes: tuple[str, ...]
