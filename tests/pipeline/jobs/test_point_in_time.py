"""Each event of a log is decided anew by the ACLs of its time, as a slow computation says."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow.parquet as pq

from aclbroker.acl.authorizer import ANY_RESOURCE, Session
from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.index import AclIndex
from aclbroker.acl.operations import GRANTED_BY
from aclbroker.broker.stores.reading import PastChange, read_acls_at, read_history
from aclbroker.broker.stores.sqlite import SqliteStore
from aclbroker.broker.stores.store import Origin
from aclbroker.cli.audit import _history
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.acls.history import AclChange, AclHistory, Maker, history_of
from aclbroker.pipeline.command.answers import answered
from aclbroker.pipeline.command.arguments import add_jobs, audit_options
from aclbroker.pipeline.command.engine import log_files
from aclbroker.pipeline.command.progress import Progress
from aclbroker.pipeline.command.rule_files import read_rules
from aclbroker.pipeline.errors import InputError
from aclbroker.pipeline.frames import LOCAL, SPARK, use
from aclbroker.pipeline.ingest.read import Reading
from aclbroker.pipeline.ingest.tables import ingest
from aclbroker.pipeline.interface.result import JobResult
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from aclbroker.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.acl.examples import DESCRIBE, PREFIXED, TOPIC, allow, deny
from tests.pipeline.random_acls import NAMES, OPERATIONS, PEERS, PRINCIPALS, random_acls
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client
from tools.generate_history import main as generate_history

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Read = Callable[[str, str | None], AclHistory]
STORE = "sqlite:///made-up"
CLUSTER = "cluster-1"
START = datetime(2026, 1, 1, tzinfo=UTC)
SUPER_USERS = {"User:admin", "User:ANONYMOUS"}
WORDS = [word for user in sorted(SUPER_USERS) for word in ("--super-user", user)]


class Answer(NamedTuple):
    result: JobResult
    tables: dict[str, list[dict[str, Any]]]

    @property
    def events(self) -> Counter[str]:
        """The events by how their decision compares, and of those that cannot be told, by why."""
        found: Counter[str] = Counter()
        for row in self.tables["decisions"]:
            found[row["verdict"]] += row["events"]
        for row in self.tables["untold"]:
            found[row["why"]] += row["events"]
        return found


def answer(
    spark: SparkSession, log: Path, output: Path, *words: str, read: Read = _history
) -> Answer:
    """Run the job, and return what it wrote."""
    parser = argparse.ArgumentParser()
    add_jobs(parser)
    given = ["point-in-time", "--input", str(log), "--output", str(output), *words]
    options = audit_options(parser.parse_args(given), given)
    rules = read_rules(options, None, read)
    (result,) = answered(spark, options, rules, Progress(io.StringIO())).results
    tables = {
        name: spark.read.parquet(f"{output}/point-in-time/{name}").toArrow().to_pylist()
        for name in ("decisions", "otherwise", "untold")
    }
    return Answer(result, tables)


def line(time: datetime, position: int | None, **values: Any) -> str:
    """A line of a log, as far as the pipeline reads it."""
    told = {} if position is None else {"acls": position}
    record = {
        "timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%f}Z",
        "level": "info",
        "event": "authorization",
        "cluster_id": CLUSTER,
        "node_id": 1,
        "listener": "SASL",
        "principal": "User:alice",
        "host": "192.0.2.7",
        "operation": "READ",
        "resource_type": "TOPIC",
        "pattern_type": "LITERAL",
        "resource_name": "orders",
        "resource_ref_count": 1,
        "api_name": "Fetch",
        "api_version": 17,
        "client_id": None,
        "correlation_id": 5,
        "allowed": False,
        "rule": "DefaultDeny",
        **told,
        "acl": None,
    }
    return json.dumps(record | values, separators=(",", ":"))


def allowed(**values: Any) -> dict[str, Any]:
    return {"allowed": True, "rule": "MatchingAcl", "level": "debug", **values}


def rolled_up(time: datetime, count: int, first: int | None = None) -> dict[str, Any]:
    told = {} if first is None else {"first_acls": first}
    return told | {"count": count, "last_timestamp": f"{time:%Y-%m-%dT%H:%M:%S.%f}Z"}


def at(second: float) -> datetime:
    return START + timedelta(seconds=second)


def change(position: int, acl: AclBinding, removed: bool = False, by: str = "root") -> AclChange:
    """A change at its position in seconds, but for one that is not known."""
    time_ms = round(at(position).timestamp() * 1000)
    return AclChange(position, acl, removed, Maker(f"User:{by}", "192.0.2.1"), time_ms)


@pytest.fixture
def write(tmp_path: Path) -> Callable[[Iterable[str]], Path]:
    def write(lines: Iterable[str]) -> Path:
        path = tmp_path / "audit.jsonl"
        path.write_text("".join(f"{each}\n" for each in lines))
        return path

    return write


def one(rows: Sequence[dict[str, Any]], **values: Any) -> dict[str, Any]:
    (found,) = [row for row in rows if all(row[name] == each for name, each in values.items())]
    return found


READ_IT, SEE_IT = allow(), allow("User:*", DESCRIBE, "or", pattern_type=PREFIXED)
HISTORY = history_of(
    [
        change(10, READ_IT, by="carol"),
        change(20, SEE_IT),
        change(30, READ_IT, removed=True, by="dave"),
        change(40, READ_IT, by="erin"),
        change(50, deny()),
        change(60, READ_IT, removed=True),
        change(60, deny(), removed=True),
    ],
    horizon=5,
    last=70,
    cluster=CLUSTER,
)


def planted(spark: SparkSession, log: Path, output: Path, *words: str) -> Answer:
    return answer(spark, log, output, "--history", STORE, *words, read=lambda *_: HISTORY)


def test_it_tells_who_had_granted_what_decided_and_since_when(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    log = write(
        [
            line(at(7), 5),
            line(at(12), 10, **allowed(), **rolled_up(at(19), 3)),
            line(at(25), 20, **allowed()),
            line(at(35), 30),
            line(at(45), 40, **allowed()),
            line(at(55), 50, rule="MatchingAcl"),
            line(at(65), 60),
        ]
    )
    found = planted(spark, log, tmp_path / "out")
    assert found.events == {"as logged": 9}
    assert found.tables["otherwise"] == found.tables["untold"] == []
    rows = sorted(found.tables["decisions"], key=lambda row: row["first_seen"])
    told = [
        (row["acl"], row["granted_by"], row["granted_at"], row["revoked_by"], row["events"])
        for row in rows
    ]
    text, none = acl_text(READ_IT), (None, None, None, None)
    assert told == [
        (*none, 1),
        (text, "User:carol", at(10), "User:dave", 4),
        (*none, 1),
        (text, "User:erin", at(40), "User:root", 1),
        (acl_text(deny()), "User:root", at(50), "User:root", 1),
        (*none, 1),
    ]
    assert (rows[1]["first_seen"], rows[1]["last_seen"]) == (at(12), at(25))
    assert (rows[1]["first_position"], rows[1]["last_position"]) == (10, 20)
    around = [
        (row["allowed_before_by"], row["lost_by"], row["lost_at"], row["gained_by"])
        for row in rows
        if not row["allowed"]
    ]
    assert around == [
        (None, None, None, "User:carol"),
        (text, "User:dave", at(30), "User:erin"),
        (text, "User:dave", at(30), None),
        (text, "User:root", at(60), None),
    ]
    assert found.result.alarms == {"decided-otherwise": 0}


@pytest.mark.engines("local")
def test_what_does_not_fit_to_the_acls_of_its_time_is_told(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    log = write(
        [
            # Altered: there was no such ACL then; there was one, and it was denied.
            line(at(35), 30, principal="User:alice", **allowed(), **rolled_up(at(36), 4)),
            line(at(15), 10, host="192.0.2.8"),
            # With the position of a time at which it was allowed, two hours later.
            line(at(7200), 10, **allowed(client_id="late")),
            # Decided by a super user whom the settings do not name.
            line(at(15), 10, **allowed(rule="SuperUser", operation="DESCRIBE")),
            # Decided while the next change took effect, and too early for that.
            line(at(30.5), 20, resource_name="orders", operation="READ", host="192.0.2.9"),
            line(at(29.5), 20, host="192.0.2.10"),
        ]
    )
    found = planted(spark, log, tmp_path / "out")
    assert found.events == {"otherwise": 6, "other time": 1, "other rule": 1, "as logged": 1}
    rows = found.tables["otherwise"]
    wrong = one(rows, verdict="otherwise", first_position=30)
    assert (wrong["allowed"], wrong["rule"]) == (True, "MatchingAcl")
    assert (wrong["allowed_then"], wrong["rule_then"], wrong["acl"]) == (False, "DefaultDeny", None)
    assert (wrong["events"], wrong["first_seen"], wrong["last_seen"]) == (4, at(35), at(36))
    denied = one(rows, verdict="otherwise", first_position=10)
    assert (denied["allowed_then"], denied["acl"]) == (True, acl_text(READ_IT))
    assert denied["granted_by"] == "User:carol"
    assert one(rows, verdict="other time")["last_seen"] == at(7200)
    assert one(rows, verdict="other rule")["rule_then"] == "MatchingAcl"
    assert found.result.alarms == {"decided-otherwise": 6}
    (run,) = json.loads((tmp_path / "out" / "findings.sarif").read_text())["runs"]
    told = {each["message"]["text"] for each in run["results"]}
    asked = "cluster-1: User:alice READ on TOPIC orders"
    assert f"{asked}: allowed 4 times, and denied by the ACLs then" in told
    assert {each["ruleId"] for each in run["results"]} == {"decided-otherwise"}
    # It is no other rule with the super user, and of no other time if that is accepted.
    words = ["--super-user", "User:alice", "--tolerance", "8000"]
    again = planted(spark, log, tmp_path / "again", *words)
    assert again.events == {"other rule": 5, "otherwise": 3, "as logged": 1}


@pytest.mark.engines("local")
def test_a_roll_up_is_right_if_one_of_its_positions_says_so(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    log = write(
        [
            line(at(12), 20, **allowed(), **rolled_up(at(25), 2, 5)),
            line(at(12), 60, **allowed(host="::1"), **rolled_up(at(65), 3, 30)),
            line(at(12), 20, **rolled_up(at(25), 5, 10)),
            # Of positions that the history has only some of.
            line(at(2), 10, **allowed(host="::2"), **rolled_up(at(15), 7, 1)),
            line(at(2), 10, operation="DESCRIBE", rule="MatchingAcl", **rolled_up(at(15), 11, 1)),
            line(at(65), 90, **allowed(host="::3"), **rolled_up(at(66), 13, 60)),
        ]
    )
    found = planted(spark, log, tmp_path / "out", "--tolerance", "100")
    assert found.events == {
        "as logged": 12,
        "otherwise": 5,
        "the position is before the history begins": 11,
        "the position is after the history ends": 13,
    }


@pytest.mark.engines("local")
def test_what_cannot_be_told_is_counted_by_the_reason(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    long = {"resource_type": "GROUP", "resource_name": "g" * 256, "shortened": {"a": 300}}
    log = write(
        [
            line(at(1), None),
            line(at(2), None, **allowed(), **rolled_up(at(3), 5)),
            line(at(3), None, acls_by_provider={"CONFLUENT": 5, "KRAFT_ACL": 7}),
            line(at(4), 4),
            line(at(80), 71),
            line(at(15), 10, cluster_id="another"),
            line(at(15), 10, **allowed(), **long),
            line(at(15), 10, **allowed()),
        ]
    )
    found = planted(spark, log, tmp_path / "out")
    assert found.events == {
        "as logged": 1,
        "the log names no position": 7,
        "the position is before the history begins": 1,
        "the position is after the history ends": 1,
        "no history of this cluster is given": 1,
        "the log may have shortened a text of it": 1,
    }
    early = one(found.tables["untold"], why="the position is before the history begins")
    assert (early["first_position"], early["first_seen"]) == (4, at(4))
    assert found.result.left_out == {"another": "no history of this cluster is given"}


@pytest.mark.engines("local")
def test_a_history_of_another_cluster_is_refused_unless_it_is_said_to_be_this_one(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    log = write([line(at(15), 10, cluster_id="here", **allowed())])
    with pytest.raises(InputError, match=r"is of cluster cluster-1, of which the log holds noth"):
        planted(spark, log, tmp_path / "out")
    found = answer(
        *(spark, log, tmp_path / "out", "--history", f"here={STORE}"), read=lambda *_: HISTORY
    )
    assert found.events == {"as logged": 1}


@pytest.mark.parametrize(
    ("history", "said"),
    [
        (["acls.yaml"], "only stores keep a history"),
        (["kafka://127.0.0.1:9092"], "only stores keep a history"),
        (["sqlite:///no/such.db"], "there is no ACL store"),
        ([STORE, STORE], "another one is of cluster cluster-1"),
    ],
)
@pytest.mark.engines("local")
def test_a_history_that_cannot_be_used_is_refused(
    spark: SparkSession,
    write: Callable[[Iterable[str]], Path],
    tmp_path: Path,
    history: list[str],
    said: str,
) -> None:
    words = [word for each in history for word in ("--history", each)]
    read: Read = _history if len(history) == 1 else lambda *_: HISTORY
    with pytest.raises(InputError, match=said):
        answer(spark, write([line(at(7), 5)]), tmp_path / "out", *words, read=read)


@pytest.mark.engines("local")
def test_the_made_up_history_and_its_log_are_of_one_mind(
    spark: SparkSession, tmp_path: Path
) -> None:
    made = tmp_path / "made"
    generate_history([str(made), "--events", "400", "--changes", "60"])
    words = ["--history", f"sqlite:///{made / 'acls.db'}"]
    found = answer(spark, made / "audit.jsonl", tmp_path / "out", *words)
    assert found.events == {"as logged": 400}


class Slow:
    """What a history says, by going through all of it for each question."""

    def __init__(self, changes: Sequence[AclChange], settings: dict[str, Any], cidr: bool) -> None:
        self.changes = changes
        self._settings = settings
        self._cidr = cidr
        self._known: dict[int, StandardAuthorizerData] = {}
        self._allowing: dict[Any, bool] = {}

    def authorizer(self, position: int) -> StandardAuthorizerData:
        if position not in self._known:
            # Of several ACLs that decide, an index names the one that came first.
            index = AclIndex(cidr=self._cidr)
            for each in self.changes:
                if each.position <= position:
                    (index.remove if each.removed else index.add)(each.acl)
            self._known[position] = StandardAuthorizerData(index, **self._settings)
        return self._known[position]

    def decides(self, asked: tuple[Session, AclOperation, ResourceType, str], position: int) -> Any:
        session, operation, resource_type, name = asked
        core = self.authorizer(position)
        if name == ANY_RESOURCE and resource_type is TOPIC:
            return core.authorize_by_resource_type(session, operation, resource_type)
        return core.authorize(session, operation, resource_type, [name])[0]

    def grant(self, acl: AclBinding | None, position: int) -> int | None:
        found = None
        for each in self.changes:
            if each.position <= position and each.acl == acl:
                found = None if each.removed else each.position if found is None else found
        return found

    def lost(self, asked: tuple[Session, AclOperation, ResourceType, str], position: int) -> Any:
        """The position at which an ACL that would allow it was last revoked."""
        found = None
        for each in self.changes:
            if not each.removed or each.position > position:
                continue
            key = each.acl, asked
            if key not in self._allowing:
                self._allowing[key] = self._would_allow(*key)
            if self._allowing[key]:
                found = each.position
        return found

    def _would_allow(self, acl: AclBinding, asked: Any) -> bool:
        if acl.permission is not AclPermission.ALLOW:
            return False
        session, operation, resource_type, name = asked
        core = StandardAuthorizerData(AclIndex([acl], cidr=self._cidr))
        if name == ANY_RESOURCE and resource_type is TOPIC:
            is_meant = bool(GRANTED_BY[operation] >> acl.operation & 1)
            is_wildcard = (acl.resource_name, acl.pattern_type) == ("*", PatternType.LITERAL)
            again = "any" if is_wildcard else acl.resource_name
            return (
                is_meant and core.authorize(session, operation, resource_type, [again])[0].allowed
            )
        return core.authorize(session, operation, resource_type, [name])[0].allowed


ADDRESSES = [peer for peer in PEERS if peer != "socket"]
"""The peers that a log can have: a line with another host is in quarantine."""


def random_changes(rng: random.Random) -> list[AclChange]:
    there: dict[AclBinding, None] = {}
    found = []
    acls = random_acls(rng, 60)
    for position in range(1, 300):
        some = rng.sample(acls, rng.randrange(1, 4))
        for acl in some:
            removed = acl in there
            there.pop(acl) if removed else there.update({acl: None})
            found.append(change(3 * position, acl, removed, by=f"admin-{position % 3}"))
    return found


class Drawn(NamedTuple):
    """Lines, and what must be found of them; ``told`` is of those that are of one position."""

    lines: list[str]
    verdicts: Counter[str]
    told: Counter[Any]


def drawn(rng: random.Random, slow: Slow, *, has_spans: bool) -> Drawn:
    found = Drawn([], Counter(), Counter())
    for number in range(800):
        first = rng.randrange(1, 900)
        last = first + rng.choice([0, 2, 9]) if has_spans else first
        principals = rng.choice([*PRINCIPALS, "User:admin"]), *rng.choice([(), ("Group:staff",)])
        asked = (
            Session(principals, rng.choice(ADDRESSES), "SASL"),
            rng.choice(OPERATIONS[1:]),
            rng.choice([TOPIC, ResourceType.GROUP]),
            rng.choice([*NAMES[:5], "zzz", ANY_RESOURCE]),
        )
        # Half of them are what was decided at one of the positions, the others whatever.
        when = rng.randrange(first, last + 1) if number % 2 else 3 * rng.randrange(300)
        decision = slow.decides(asked, when)
        answers = [slow.decides(asked, position) for position in range(first, last + 1)]
        same = [each for each in answers if each.allowed == decision.allowed]
        is_rule = any(each.kind is decision.kind for each in same)
        found.verdicts["as logged" if is_rule else "other rule" if same else "otherwise"] += 1
        if first == last:
            then = answers[0]
            grant = slow.grant(then.rule.binding, first)
            lost = None if then.allowed else slow.lost(asked, first)
            found.told[then.allowed, then.kind.value, grant, lost] += 1
        also = {"principals": list(principals)} if len(principals) > 1 else {}
        session, operation, resource_type, name = asked
        found.lines.append(
            line(
                at(first + 0.1),
                last,
                **{
                    "principal": principals[0],
                    "host": session.host,
                    "operation": operation.name,
                    "resource_type": resource_type.name,
                    "resource_name": name,
                    "allowed": decision.allowed,
                    "rule": decision.kind.value,
                    **also,
                    **(rolled_up(at(first + 0.1), 1, first) if last > first else {}),
                },
            )
        )
    return found


@pytest.fixture
def in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let there be several parts, each of which begins in the midst of the history."""
    for name, value in (("_LEAST", 100), ("_MOST", 300), ("_PIECE", 50)):
        monkeypatch.setattr(f"aclbroker.pipeline.jobs.point_in_time.gathering.{name}", value)


class Random(NamedTuple):
    """A random history, and what must be found of lines that were drawn for it."""

    history: AclHistory
    expected: Drawn
    words: list[str]

    def answer(self, spark: SparkSession, log: Path, output: Path) -> Answer:
        return answer(spark, log, output, *self.words, read=lambda *_: self.history)


def random_history(*, is_open: bool, has_spans: bool) -> Random:
    rng = random.Random(f"point in time {is_open} {has_spans}")
    changes = random_changes(rng)
    settings = {"super_users": SUPER_USERS, "allow_everyone_if_no_acl_found": is_open}
    expected = drawn(rng, Slow(changes, settings, cidr=True), has_spans=has_spans)
    words = ["--history", STORE, "--cidr", *WORDS]
    words += ["--allow-everyone-if-no-acl-found"] if is_open else []
    history = history_of(changes, horizon=0, last=3000, cluster=CLUSTER)
    return Random(history, expected, words)


@pytest.mark.engines("local")
@pytest.mark.usefixtures("in_parts")
@pytest.mark.parametrize(
    ("is_open", "has_spans"),
    [
        pytest.param(False, False, id="closed-single"),
        pytest.param(True, True, id="open-spans"),
        pytest.param(False, True, id="closed-spans", marks=pytest.mark.thorough),
        pytest.param(True, False, id="open-single", marks=pytest.mark.thorough),
    ],
)
def test_random_histories_are_replayed_as_a_slow_computation_replays_them(
    spark: SparkSession,
    write: Callable[[Iterable[str]], Path],
    tmp_path: Path,
    is_open: bool,
    has_spans: bool,
) -> None:
    made = random_history(is_open=is_open, has_spans=has_spans)
    expected = made.expected
    found = made.answer(spark, write(expected.lines), tmp_path / "out")
    assert found.events == expected.verdicts
    assert min(expected.verdicts.values()) > 10
    if not has_spans:
        told: Counter[Any] = Counter()
        for row in found.tables["decisions"]:
            key = (row["granted_position"], row["lost_position"])
            told[row["allowed_then"], row["rule_then"], *key] += row["events"]
        assert told - expected.told == expected.told - told == Counter()


@pytest.mark.thorough
@pytest.mark.engines("spark")
@pytest.mark.usefixtures("in_parts")
def test_spark_has_the_same_rows_as_one_process(
    spark: SparkSession, write: Callable[[Iterable[str]], Path], tmp_path: Path
) -> None:
    made = random_history(is_open=True, has_spans=True)
    log = write([*made.expected.lines, line(at(5), None), line(at(5), 9000)])
    found = made.answer(spark, log, tmp_path / "spark").tables
    use(LOCAL)
    try:
        here = made.answer(cast("SparkSession", LocalSession(log_files)), log, tmp_path / "local")
    finally:
        use(SPARK)
    for name, rows in found.items():
        assert rows
        assert Counter(map(repr, rows)) == Counter(map(repr, here.tables[name])), name


def client(broker: Broker, user: str) -> Client:
    made = Client(broker.listeners["SASL_PLAINTEXT"])
    assert made.login(user, PASSWORDS[user]).error_code == 0
    return made


def traffic(broker: Broker, seed: int) -> None:
    """Have ACLs changed over the wire, and ask between the changes."""
    rng = random.Random(seed)
    names, users = ["orders", "payments"], ["alice", "bob"]
    with client(broker, "admin") as admin, client(broker, "alice") as alice:
        for _ in range(40):
            name, user = rng.choice(names), rng.choice(users)
            if rng.random() < 0.4:
                gone = DeleteAclsFilter(2, name, 3, None, None, 1, 1)
                admin.ask(ApiKey.DELETE_ACLS, 3, DeleteAclsRequest([gone]))
            else:
                permission = rng.choice([3, 3, 2])
                made = AclCreation(2, name, 3, f"User:{user}", "*", DESCRIBE.value, permission)
                admin.ask(ApiKey.CREATE_ACLS, 3, CreateAclsRequest([made]))
            for _ in range(rng.randrange(3)):
                topics = [MetadataRequestTopic(bytes(16), each) for each in names]
                alice.ask(ApiKey.METADATA, 12, MetadataRequest(topics))


@pytest.fixture(scope="module")
def lived(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The log and the store of a broker that was restarted, and that keeps no long history.

    The first of its runs writes each decision at once, the second one rolls them up.
    """
    directory = tmp_path_factory.mktemp("broker")
    log = directory / "audit.jsonl"
    for seed, seconds in enumerate(["0", "60"]):
        settings = {"file": str(log), "level": "all", "rollup.seconds": seconds}
        broker = Broker(directory, {f"aclbroker.audit.{name}": v for name, v in settings.items()})
        broker.start()
        try:
            traffic(broker, seed)
        finally:
            broker.terminate()
    return log, broker.store


def slowly(log: Path, store: Path) -> Counter[str]:
    """The events by whether the ACLs of one of their positions decide so, each asked for anew."""
    found: Counter[str] = Counter()
    horizon = read_history(store).horizon
    for text in log.read_text().splitlines():
        said = json.loads(text)
        if said["event"] != "authorization":
            continue
        events, last = said.get("count", 1), said["acls"]
        if last < horizon:
            found["the position is before the history begins"] += events
            continue
        first = max(said.get("first_acls", last), horizon)
        session = Session((said["principal"],), said["host"], said["listener"])
        asked = AclOperation[said["operation"]], ResourceType[said["resource_type"]]
        answers = set()
        for position in range(first, last + 1):
            acls = read_acls_at(store, position=position).acls
            core = StandardAuthorizerData(AclIndex(acls), super_users=SUPER_USERS)
            (decision,) = core.authorize(session, *asked, [said["resource_name"]])
            answers.add((decision.allowed, decision.kind.value))
        found["as logged" if (said["allowed"], said["rule"]) in answers else "otherwise"] += events
    return found


def test_a_broker_decides_as_the_acls_of_each_time_say(
    spark: SparkSession,
    lived: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    log, store = lived
    words = ["--history", f"sqlite:///{store}", *WORDS]
    found = answer(spark, log, tmp_path / "out", *words)
    assert any('"first_acls":' in each for each in log.read_text().splitlines())
    assert found.events == slowly(log, store)
    assert found.events.keys() == {"as logged"}
    granted = {each.position: each for each in read_history(store).changes if not each.removed}
    by_acl = [row for row in found.tables["decisions"] if row["acl"] is not None]
    assert {row["allowed"] for row in by_acl} == {True, False}
    for row in by_acl:
        made: PastChange = granted[row["granted_position"]]
        assert made.origin is not None
        assert row["acl"] == acl_text(made.binding)
        assert (row["granted_by"], row["granted_from"]) == ("User:admin", "127.0.0.1")
        assert round(row["granted_at"].timestamp() * 1000) == made.origin.time_ms
    # Without its super users it looks as if it had decided otherwise.
    wrong = answer(spark, log, tmp_path / "wrong", *words[:2])
    assert wrong.events["otherwise"] > 40
    assert {row["rule"] for row in wrong.tables["otherwise"]} == {"SuperUser"}
    assert len(wrong.result.warnings) == 1
    # A line that was altered, of a copy of the store with less of a history.
    lines = [json.loads(each) for each in log.read_text().splitlines()]
    told = [each for each in lines if each["event"] == "authorization"]
    victim = [each for each in told if each["resource_name"] == "orders" and "count" in each][-1]
    rule = "DefaultDeny" if victim["allowed"] else "MatchingAcl"
    victim |= {"allowed": not victim["allowed"], "rule": rule, "first_acls": victim["acls"]}
    altered = tmp_path / "altered.jsonl"
    altered.write_text("".join(f"{json.dumps(each)}\n" for each in lines))
    short = tmp_path / "short.db"
    short.write_bytes(store.read_bytes())
    monkeypatch.setattr("aclbroker.broker.stores.database._LITTER", 3)
    asyncio.run(forget(short))
    expected = slowly(altered, short)
    assert expected["the position is before the history begins"] > 10 < expected["as logged"]
    found = answer(
        *(spark, altered, tmp_path / "altered", "--history", f"sqlite:///{short}", *WORDS)
    )
    assert found.events == expected
    assert one(found.tables["otherwise"])["resource_name"] == "orders"
    assert found.result.alarms["decided-otherwise"] == victim["count"]


async def forget(path: Path) -> None:
    """Let a store keep less of its history."""
    store = SqliteStore(path, history_changes=25)
    await store.open()
    async for _ in store.load():
        pass
    await store.apply([allow(name="z")], [], Origin.now())
    await store.apply([], [allow(name="z")], Origin.now())
    await store.close()


def test_tables_that_were_gathered_have_the_same_answer_as_the_log(
    spark: SparkSession, lived: tuple[Path, Path], tmp_path: Path
) -> None:
    log, store = lived
    ingest(spark, [str(log)], Reading(None, "ours"), str(tmp_path / "tables"))
    words = ["--history", f"sqlite:///{store}", *WORDS]
    one, other = (
        answer(spark, place, tmp_path / name, *words)
        for name, place in (("out", log), ("again", tmp_path / "tables"))
    )
    for name, rows in one.tables.items():
        assert sorted(map(repr, rows)) == sorted(map(repr, other.tables[name])), name
    # Those of a version before this one do not know of positions.
    for file in (tmp_path / "tables" / "events").rglob("*.parquet"):
        pq.write_table(pq.read_table(file, partitioning=None).drop(["acls", "first_acls"]), file)
        # Spark has a file with checksums beside it.
        file.with_name(f".{file.name}.crc").unlink(missing_ok=True)
    old = answer(spark, tmp_path / "tables", tmp_path / "old", *words)
    assert old.events == {"the log names no position": one.events["as logged"]}
