"""The parts of a broker that serve clients, made from what is loaded."""

from __future__ import annotations

import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType

from aclbroker.acl.authorizer import Position
from aclbroker.broker.authorizer.migration import SETTING as MIGRATES
from aclbroker.broker.authorizer.standard import StandardAuthorizer, explained
from aclbroker.broker.config import Config
from aclbroker.broker.credentials import DelegationToken
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.handlers.changes import expired_tokens, first_acls, migrated_acls
from aclbroker.broker.handlers.faults import Faults
from aclbroker.broker.logins.jwks_source import JwksUnavailable
from aclbroker.broker.observability.audit import Audit, Explain, nowhere
from aclbroker.broker.observability.limited_log import LimitedLog
from aclbroker.broker.observability.line_lock import LineLock
from aclbroker.broker.observability.logs import LogOutput
from aclbroker.broker.observability.metrics import Metrics
from aclbroker.broker.server.doors import Doors
from aclbroker.broker.server.held_clusters import HeldClusters, LoadedCluster
from aclbroker.broker.server.loading import Loaded
from aclbroker.broker.server.server import Server
from aclbroker.broker.server.start_error import StartError, naming
from aclbroker.broker.server.store_figures import show_stores
from aclbroker.broker.stores import StoreError


async def start_parts(
    config: Config,
    output: LogOutput,
    loaded: Loaded,
    metrics: Metrics,
    lines: LimitedLog,
    *,
    audit_class: type[Audit] = Audit,
    rights_class: type[RequestRights] = RequestRights,
    faults: Faults | None = None,
    sockets: Mapping[tuple[int, str], socket.socket] = MappingProxyType({}),
    doors: Doors | None = None,
    is_first: bool = True,
    audit_lock: LineLock | None = None,
) -> tuple[Audit, Server, dict[str, str]]:
    """Let clients in; return what serves them, and the address of each listener by its name.

    ``audit_class`` is told of each decision, ``rights_class`` asks for them, and ``faults`` come
    before all else. ``sockets`` are bound already; ``doors`` are where clients come in, its own if
    they are None. Of several processes the one that ``is_first`` does what is to be done once, and
    all have the same ``audit_lock``. Raises StartError.
    """
    authorizer = loaded.authorizer
    explain: Explain | None = None
    position: Callable[[], Position | None] = nowhere
    if isinstance(authorizer, StandardAuthorizer):
        explain = partial(explained, authorizer)
        position = authorizer.position()
    try:
        with naming("aclbroker.audit.file", config.audit_file, "cannot be opened"):
            audit = audit_class(
                *(config, loaded.cluster_id, output, explain), position=position, lock=audit_lock
            )
        _count_missing_records(metrics, audit)
        held = loaded.clusters
        await show_stores(metrics, (authorizer, *(each.authorizer for each in held.loaded)))
        # A person at a console needs their number, which the log tells, and not a line for each.
        tells_each = config.audit_file is not None or output.is_json
        if is_first:
            _record_changes_without_request(audit, loaded, tells_first_acls=tells_each)
        server = Server(
            config,
            loaded,
            audit,
            metrics,
            lines,
            clusters=[(each, _audit_of(each, audit, sweeps=is_first)) for each in held.loaded],
            missing=held.missing,
            rights_class=rights_class,
            faults=faults,
            sockets=sockets,
            doors=doors,
        )
        listeners = await server.start()
        _serve_late(held, server, audit, metrics, sweeps=is_first)
        return audit, server, listeners
    except OSError as error:
        raise StartError(error.strerror or str(error)) from error
    except (ValueError, JwksUnavailable, StoreError) as error:
        raise StartError(str(error)) from error


def _serve_late(
    clusters: HeldClusters, server: Server, audit: Audit, metrics: Metrics, *, sweeps: bool
) -> None:
    """Have clusters served that are waited for, when they come."""

    async def serve(cluster: LoadedCluster) -> None:
        await show_stores(metrics, (cluster.authorizer,))
        await server.take_in(cluster, _audit_of(cluster, audit, sweeps=sweeps))

    clusters.serve_late(serve, server.refuse)


def _audit_of(cluster: LoadedCluster, audit: Audit, *, sweeps: bool) -> Audit:
    """Return what records a further cluster's decisions and changes."""
    explain = partial(explained, cluster.authorizer)
    own = audit.of_cluster(cluster.cluster_id, explain, cluster.authorizer.position())
    if sweeps:
        cluster.credentials.start(partial(_record_expired, own))
    return own


def _record_expired(audit: Audit, tokens: Sequence[DelegationToken]) -> None:
    audit.changed_by("broker", expired_tokens(tokens))


def _record_changes_without_request(
    audit: Audit, loaded: Loaded, *, tells_first_acls: bool
) -> None:
    """Have the audit log tell of the ACLs of a new store, and of tokens that are swept."""
    authorizer = loaded.authorizer
    if isinstance(authorizer, StandardAuthorizer):
        if tells_first_acls:
            audit.changed_by("aclbroker.acls.file", first_acls(authorizer.first_acls))
        authorizer.first_acls = ()
        authorizer.migrate(lambda *acls: audit.changed_by(MIGRATES, migrated_acls(*acls)))
    if loaded.credentials is not None:
        loaded.credentials.start(partial(_record_expired, audit))


def _count_missing_records(metrics: Metrics, audit: Audit) -> None:
    for kind in audit.left_out():
        source = partial(_left_out, audit, kind)
        metrics.read("aclbroker_left_out_audit_records", source, kind)
    metrics.read("aclbroker_lost_audit_records", lambda: audit.lost)


def _left_out(audit: Audit, kind: str) -> int:
    return audit.left_out()[kind]
