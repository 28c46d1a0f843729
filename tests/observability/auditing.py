"""Audits that write to a file or a stream at times of the test's choice."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aclbroker.acl.authorizer import (
    Decision,
    Position,
    RequestContext,
    Rule,
    RuleKind,
    Session,
)
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.config import load
from aclbroker.broker.observability import logs
from aclbroker.broker.observability.audit import Audit, Explain
from aclbroker.protocol.messages import ApiKey

DENIED = Decision(False, Rule(RuleKind.DEFAULT_DENY))
ALLOWED = Decision(True, Rule(RuleKind.SUPER_USER))
NOON = 1_795_262_400.0
"""2026-11-21, 12:00 in UTC."""


class Audited:
    """An audit of every level in a file; ``now`` is its clock.

    Settings are those below `aclbroker.audit.`, with underscores for dots.
    """

    def __init__(self, directory: Path, explain: Explain | None = None, **settings: object) -> None:
        self.path = directory / "audit"
        self.now = NOON
        found = {"level": "trace", "file": self.path, **settings}
        overrides = {
            f"aclbroker.audit.{name.replace('_', '.')}": str(value) for name, value in found.items()
        }
        # A log of its own keeps what is logged out of pytest's output.
        output = logs.LogOutput(io.StringIO(), lambda *_: "")
        config = load(None, overrides)
        self.audit = Audit(config, "cluster-1", output, explain, lambda: self.now)

    def decide(
        self,
        names: str | Sequence[str | None],
        decision: Decision = DENIED,
        *,
        context: RequestContext | None = None,
        references: int = 1,
        loud: bool = True,
        acls: Position | None = None,
    ) -> None:
        """Record the decision on READ of topics, as one request."""
        some = [names] if isinstance(names, str) else names
        self.audit.record(
            context or asked(),
            AclOperation.READ,
            ResourceType.TOPIC,
            [(name, references, decision) for name in some],
            log_if_denied=loud,
            acls=acls,
        )

    def lines(self) -> list[dict[str, Any]]:
        """Return what is in the file."""
        return [json.loads(line) for line in self.path.read_text().splitlines()]

    def closed(self) -> list[dict[str, Any]]:
        """Close the audit; return what is in the file then."""
        self.audit.close()
        return self.lines()


def asked(
    principal: str = "User:alice", client_id: str | None = "app", host: str = "127.0.0.1"
) -> RequestContext:
    """Return a Metadata of somebody."""
    return RequestContext(Session((principal,), host, "SASL"), ApiKey.METADATA, 3, client_id, 42)


def counted(lines: Sequence[dict[str, Any]]) -> dict[str, int]:
    """Return for how many decisions the lines of each name stand."""
    found: dict[str, int] = {}
    for line in lines:
        if line["event"] == "authorization":
            name = line["resource_name"]
            found[name] = found.get(name, 0) + line.get("count", 1)
    return found
