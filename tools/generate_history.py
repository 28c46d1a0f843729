"""Writes a store with a long history of ACLs, and the log of what was decided meanwhile.

    python tools/generate_history.py OUTPUT --events 1000000 --changes 100000 --seed 7
    aclbroker audit point-in-time --input OUTPUT/audit.jsonl --history sqlite:///OUTPUT/acls.db \\
        --output OUTPUT/report

OUTPUT/acls.db is a store as a broker keeps it, in which principals grant and revoke ACLs, one each
time, half of which are there at a time. OUTPUT/audit.jsonl is a log in our own form (docs/audit.md)
whose events were decided at positions all over that history, each by the ACLs that were there, one
in ten of them rolled up over some positions; all are of as many clients as ACLs name. OUTPUT must
not be there. The same options and seed give the same ACLs and events.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import Origin

Change = tuple[bool, AclBinding]
PRINCIPALS, TOPICS = 1_000, 2_000
READ, WRITE = AclOperation.READ, AclOperation.WRITE


def changes(count: int, seed: int) -> list[Change]:
    """Return changes: whether an ACL is revoked, and which one."""
    rng = random.Random(seed)
    there: list[AclBinding] = []
    known: set[AclBinding] = set()
    found: list[Change] = []
    while len(found) < count:
        if there and rng.random() < len(there) / count * 2:
            place = rng.randrange(len(there))
            there[place], there[-1] = there[-1], there[place]
            acl = there.pop()
            known.remove(acl)
            found.append((True, acl))
            continue
        acl = AclBinding(
            ResourceType.TOPIC,
            f"topic-{rng.randrange(TOPICS)}",
            PatternType.LITERAL if rng.random() < 0.9 else PatternType.PREFIXED,
            f"User:{rng.randrange(PRINCIPALS)}",
            "*" if rng.random() < 0.9 else f"10.0.0.{rng.randrange(200)}",
            rng.choice((READ, WRITE)),
            AclPermission.ALLOW if rng.random() < 0.95 else AclPermission.DENY,
        )
        if acl not in known:
            known.add(acl)
            there.append(acl)
            found.append((False, acl))
    return found


async def write_store(path: Path, made: list[Change], start: datetime) -> str:
    """Make the changes, one a second, each by another principal; return the id of the cluster."""
    store = SqliteStore(path, history_changes=len(made) + 1)
    await store.open()
    try:
        for number, (removed, acl) in enumerate(made):
            time_ms = round((start.timestamp() + number) * 1000)
            origin = Origin(f"User:admin-{number % 7}", "192.0.2.1", time_ms)
            await store.apply(*(([], [acl]) if removed else ([acl], [])), origin)
        return await store.cluster_id()
    finally:
        await store.close()


def lines(
    cluster: str, made: list[Change], events: int, start: datetime, seed: int
) -> Iterator[str]:
    """Yield the lines of a log: as many events are decided at each position, in order."""
    rng = random.Random(seed + 1)
    authorizer = StandardAuthorizerData(AclIndex())
    written = 0
    for number, (removed, acl) in enumerate(made, 1):
        (authorizer.index.remove if removed else authorizer.index.add)(acl)
        while written < number * events // len(made):
            written += 1
            concerned = made[rng.randrange(len(made))][1]
            host = concerned.host if concerned.host != "*" else f"10.0.0.{rng.randrange(200)}"
            session = Session((concerned.principal,), host, "SASL_SSL")
            name, operation = concerned.resource_name, concerned.operation
            (decision,) = authorizer.authorize(session, operation, ResourceType.TOPIC, [name])
            time = start + timedelta(seconds=number - 1, milliseconds=rng.randrange(1000))
            record = {
                "timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%f}Z",
                "level": "debug" if decision.allowed else "info",
                "event": "authorization",
                "cluster_id": cluster,
                "node_id": 1,
                "listener": "SASL_SSL",
                "principal": concerned.principal,
                "host": host,
                "operation": operation.name,
                "resource_type": "TOPIC",
                "pattern_type": "LITERAL",
                "resource_name": name,
                "resource_ref_count": 1,
                "api_name": "Fetch",
                "api_version": 17,
                "client_id": "client",
                "correlation_id": written,
                "allowed": decision.allowed,
                "rule": decision.kind.value,
                "acls": number,
                "acl": None,
            }
            if written % 10 == 0 and number > 5:
                # Of some positions, that is, as the broker writes it, but of one event.
                ends = {"first_acls": number - rng.randrange(1, 5), "count": 1}
                record |= ends | {"last_timestamp": record["timestamp"]}
            yield json.dumps(record, separators=(",", ":"))


def main(arguments: list[str] | None = None) -> None:
    """Write what the command line asks for."""
    parser = argparse.ArgumentParser(description="Write a store with a history, and its log.")
    parser.add_argument("output", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--changes", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    options.output.mkdir(parents=True)
    start = datetime(2026, 1, 1, tzinfo=UTC)
    made = changes(options.changes, options.seed)
    cluster = asyncio.run(write_store(options.output / "acls.db", made, start))
    with (options.output / "audit.jsonl").open("w") as file:
        for line in lines(cluster, made, options.events, start, options.seed):
            file.write(f"{line}\n")


if __name__ == "__main__":
    main()
