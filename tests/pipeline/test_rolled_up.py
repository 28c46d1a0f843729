"""The same traffic, audited with roll-ups and without, has the same answers."""

from __future__ import annotations

import argparse
import io
import random
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.support import toolchain

toolchain.require_spark()

import pyarrow.parquet as pq

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.ingest.read import Reading
from aclbroker.pipeline.ingest.stored import EVENTS, USAGE, read_table
from aclbroker.pipeline.ingest.tables import ingest
from aclbroker.protocol.messages import ApiKey
from tests.acl.examples import ALL, PREFIXED, READ, WRITE, allow, authorizer, deny
from tests.observability.auditing import Audited
from tests.pipeline.ingesting import added_up, usage_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RULES = authorizer(
    allow(name="topic-1"),
    allow(name="topic-", operation=WRITE, pattern_type=PREFIXED, host="10.0.0.1"),
    allow("User:bob", ALL, "topic-2"),
    allow("User:nobody", ALL, "topic-9"),
    deny("User:bob", READ, "topic-3"),
    allow("User:*", READ, "topic-3"),
    super_users=["User:admin"],
)
POLICY = """\
version: 1
cluster: cluster-1
acls:
- principal: User:alice
  rules:
  - topic: topic-1
    allow: [READ]
  - topic: topic-
    pattern: prefixed
    host: 10.0.0.1
    allow: [WRITE]
- principal: User:bob
  rules:
  - topic: topic-2
    allow: [ALL]
  - topic: topic-3
    deny: [READ]
- principal: User:nobody
  rules:
  - topic: topic-9
    allow: [ALL]
- principal: User:*
  rules:
  - topic: topic-3
    allow: [READ]
"""
REQUESTS = 6_000


def traffic(audited: Audited) -> int:
    """Have the same requests of three days audited; return how many decisions there were."""
    randomly = random.Random(20261121)
    decided = 0
    for _ in range(REQUESTS):
        audited.now += randomly.choice([0.001, 1, 40])
        principals = tuple(randomly.choice(["User:alice", "User:bob", "User:admin"]).split())
        if randomly.random() < 0.1:
            principals += ("Group:ops",)
        host = randomly.choice(["10.0.0.1", "10.0.0.2", "::1"])
        session = Session(principals, host, "SASL" if host == "::1" else "SSL")
        key = randomly.choice([ApiKey.METADATA, ApiKey.FETCH])
        client_id = randomly.choice(["a", "b", None])
        operation = randomly.choice([AclOperation.READ, AclOperation.WRITE])
        names = [f"topic-{randomly.randrange(6)}" for _ in range(randomly.randrange(1, 4))]
        counts = dict.fromkeys(names, randomly.randrange(1, 3))
        context = RequestContext(session, key, 3, client_id, randomly.randrange(1000))
        decisions = RULES.authorize(session, operation, ResourceType.TOPIC, counts)
        found = [
            (name, count, decision)
            for (name, count), decision in zip(counts.items(), decisions, strict=True)
        ]
        loud = randomly.random() < 0.8
        topic = ResourceType.TOPIC
        audited.audit.record(context, operation, topic, found, log_if_denied=loud)
        decided += len(found)
    audited.audit.close()
    return decided


def answers(spark: SparkSession, log: Path, rules: Path, out: Path) -> dict[str, list[str]]:
    """Return the rows of all tables that all jobs make of a log."""
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    words = ["all", "--input", log, "--acls", rules, "--super-user", "User:admin", "--output", out]
    arguments = list(map(str, words))
    options = audit_options(parser.parse_args(arguments), arguments)
    report = answered(spark, options, read_rules(options, None), Progress(io.StringIO()))
    assert report.unanswered.keys() == {"what-if", "diff", "point-in-time"}  # they need more
    assert report.quarantined == {}
    tables: dict[str, list[str]] = {}
    for marker in out.rglob("_SUCCESS"):
        place = marker.parent
        rows = pq.read_table(place).to_pylist()
        tables[str(place.relative_to(out))] = sorted(map(repr, rows))
    return tables


def gathered(spark: SparkSession, log: Path, place: Path) -> Counter[Any]:
    """Return the usage that is in the tables when a log was gathered, half of it and the rest."""
    lines = log.read_bytes().splitlines(keepends=True)
    growing = place.with_name(f"{place.name}.jsonl")
    for part in (lines[: len(lines) // 2], lines[len(lines) // 2 :]):
        with growing.open("ab") as file:
            file.writelines(part)
        ingest(spark, [str(growing)], Reading(None, "ours"), str(place))
    events = read_table(spark, str(place), EVENTS)
    assert events.count() == len(lines)
    usage = added_up(read_table(spark, str(place), USAGE))
    same = added_up(usage_of(events).select(*usage.columns))
    found = Counter(map(tuple, usage.collect()))
    assert Counter(map(tuple, same.collect())) == found
    return found


def test_roll_ups_have_the_answers_of_single_lines(spark: SparkSession, tmp_path: Path) -> None:
    rules = tmp_path / "acls.yaml"
    rules.write_text(POLICY)
    found, usage, lines = [], [], []
    for name, seconds in (("single", 0), ("rolled-up", 86_400)):
        (tmp_path / name).mkdir()
        audited = Audited(tmp_path / name, rollup_seconds=seconds, max_bytes_per_second=0)
        decided = traffic(audited)
        lines.append(len(audited.lines()))
        found.append(answers(spark, audited.path, rules, tmp_path / f"{name}-out"))
        usage.append(gathered(spark, audited.path, tmp_path / f"{name}-tables"))
    # With the times of the first and of the last event, and how many there were.
    assert usage[0] == usage[1]
    assert lines[0] == decided > 2 * lines[1]
    single, rolled_up = found
    assert {"matrix/use", "denials/denied", "unused/acls"} <= single.keys() == rolled_up.keys()
    for table, rows in single.items():
        assert rolled_up[table] == rows, table
