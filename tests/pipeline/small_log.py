"""A log of a few events with its ACLs, written as a user would have them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"

_POLICY = """\
version: 1
cluster: {cluster}
acls:
- principal: User:alice
  rules:
  - topic: orders.eu
    allow: [READ]
  - topic: pay.
    pattern: prefixed
    allow: [WRITE]
"""


class SmallLog(NamedTuple):
    """Where it lies: 12 events of two days, of them 9 allowed, and one line that is none."""

    log: Path
    acls: Path
    proposed: Path


def small_log(directory: Path, cluster: str = CLUSTER) -> SmallLog:
    """Write the log as two files, and the policy files of the ACLs in force and proposed ones.

    Proposed is that alice may no longer write to ``pay.``, which denies 5 events.
    """
    log = directory / "log"
    log.mkdir()
    days = ("2026-01-01", "2026-01-02")
    for number, day in enumerate(days):
        lines = [
            *(event(cluster, day, hour, "alice", "READ", "orders.eu") for hour in range(2)),
            *(event(cluster, day, hour, "alice", "WRITE", "pay.in") for hour in range(2 + number)),
            event(cluster, day, 9, "bob\u202e\n<b>", "READ", "orders.eu", allowed=False),
        ]
        if number:
            lines.append(event(cluster, day, 10, "bob", "READ", "orders.eu", allowed=False))
            lines.append("something else")
        (log / f"audit-{number}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    acls = directory / "acls.yaml"
    acls.write_text(_POLICY.format(cluster=cluster))
    proposed = directory / "proposed.yaml"
    proposed.write_text(_POLICY.format(cluster=cluster).partition("  - topic: pay.")[0])
    return SmallLog(log, acls, proposed)


def event(
    cluster: str,
    day: str,
    hour: int,
    name: str,
    operation: str,
    topic: str,
    *,
    allowed: bool = True,
    acl_operation: str | None = None,
) -> str:
    """One line of our own audit log (docs/audit.md); its ACL is of the operation, or of another."""
    acl = {
        "resource_type": "TOPIC", "resource_name": topic, "pattern_type": "LITERAL",
        "principal": f"User:{name}", "host": "*",
        "operation": acl_operation or operation, "permission_type": "ALLOW",
    }  # fmt: skip
    record: dict[str, Any] = {
        "timestamp": f"{day}T{hour:02}:00:00.000000Z",
        "level": "debug" if allowed else "info",
        "event": "authorization",
        "cluster_id": cluster,
        "node_id": 1,
        "listener": "SASL_PLAINTEXT",
        "principal": f"User:{name}",
        "host": "10.0.0.1",
        "operation": operation,
        "resource_type": "TOPIC",
        "pattern_type": "LITERAL",
        "resource_name": topic,
        "resource_ref_count": 1,
        "api_name": "Fetch" if operation == "READ" else "Produce",
        "api_version": 12,
        "client_id": "c",
        "correlation_id": 7,
        "allowed": allowed,
        "rule": "MatchingAcl" if allowed else "DefaultDeny",
        "acl": acl if allowed else None,
    }
    return json.dumps(record, separators=(",", ":"))
