"""What `recommend` finds company by company is what it finds for all of a cluster at once."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from itertools import chain, groupby
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from tests.support import toolchain

toolchain.require_spark()

import pyarrow as pa
import pyarrow.compute as pc

from aclbroker.acl.bindings import AclBinding, AclPermission, PatternType, ResourceType
from aclbroker.acl.files.policy import read_policy
from aclbroker.pipeline import schemas
from aclbroker.pipeline.acls.ruleset import Ruleset, acl_id, changes, ordered
from aclbroker.pipeline.analysis.companies import companies
from aclbroker.pipeline.analysis.least_privilege import SessionUse
from aclbroker.pipeline.analysis.opened import opened
from aclbroker.pipeline.analysis.prefixes import PrefixOptions
from aclbroker.pipeline.analysis.recommendation import Draft, Evidence
from aclbroker.pipeline.interface.opened_rights import RIGHTS_IN_PARTS
from aclbroker.pipeline.jobs import recommend
from aclbroker.pipeline.jobs.recommend import asked, pieces
from aclbroker.pipeline.jobs.recommend.known import Known
from aclbroker.pipeline.jobs.recommend.options import RecommendOptions
from aclbroker.pipeline.jobs.recommend.part import recommended, rights_of_silent
from aclbroker.pipeline.jobs.recommend.prefix_rows import best_first
from aclbroker.pipeline.jobs.recommend.recommended import RecommendedAcls, put_together
from aclbroker.pipeline.local.session import Broadcast
from aclbroker.pipeline.replay.deciding import Rules
from aclbroker.pipeline.replay.hosts import Hosts
from aclbroker.pipeline.replay.questions import asked_type
from aclbroker.pipeline.usage.packing import unpacked
from tests.acl.examples import ALL, DESCRIBE, GROUP, READ, TOPIC, WRITE
from tests.pipeline.analysis.recommended_universe import on_any_topic
from tests.pipeline.universe import Asking, Universe, allowed, is_of_any
from tests.pipeline.use import figures_of, inputs_of, used

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

AT = datetime(2026, 1, 1, tzinfo=UTC)
USERS = [f"User:{name}" for name in "abcdef"]
GROUPS = ["Group:g", "Group:h"]
NAMES = ["a", "ab", "abc", "b", "*"]
HOSTS = ["*", "*", "*", "10.0.0.1", "10.0.0.0/24", "0:0:0:0:0:0:0:1"]
SESSIONS = [
    *((each,) for each in USERS[1:]),
    *(("User:a", "Group:g"), ("User:b", "Group:g"), ("User:c", "User:d"), ("User:e", "Group:h")),
]
"""a, b and g are of one company, c and d, e and h; f is alone. a never comes alone."""


def random_rules(random: Random, *, default: bool, cidr: bool) -> Ruleset:
    acls = (
        AclBinding(
            random.choice((TOPIC, TOPIC, GROUP)),
            random.choice(NAMES),
            random.choice((PatternType.LITERAL, PatternType.PREFIXED)),
            random.choice((*USERS, *GROUPS, "User:*", "User:silent")),
            random.choice(HOSTS),
            random.choice((ALL, READ, WRITE, DESCRIBE)),
            random.choice((AclPermission.ALLOW, AclPermission.ALLOW, AclPermission.DENY)),
        )
        for _ in range(random.choice((5, 15, 30)))
    )
    supers = frozenset(["User:f"] if random.random() < 0.2 else [])
    return Ruleset(ordered(acls), supers, allow_everyone_if_no_acl_found=default, cidr=cidr)


def random_log(random: Random, rules: Ruleset) -> list[Asking]:
    universe = Universe(rules.acls, SESSIONS)
    requests = [each for each in universe.named if is_likely(each)]
    of_any = on_any_topic(SESSIONS, universe.hosts)
    # Of its own, so that all else is what it is without.
    others = Random(len(requests)).sample(of_any, 8)
    return [*random.sample(requests, min(len(requests), 60)), *others]


def is_likely(request: Asking) -> bool:
    return request.principals in SESSIONS and request.operation in (READ, WRITE, DESCRIBE)


def questions(log: Iterable[Asking], rules: Ruleset) -> pa.RecordBatch:
    """The questions of a log that has recorded as denied what it asked."""
    hosts = Hosts([rules])
    rows = []
    for each in log:
        host = hosts.class_of(each.host)
        first, *others = each.principals
        rows.append(
            {
                "cluster": "c",
                "principal": first,
                "other_principals": str(others).replace("'", '"') if others else None,
                "host": host,
                "operation": each.operation.name,
                "resource_type": each.resource_type.name,
                "resource_name": each.name,
                **dict.fromkeys(("events", "loud_events", "reference_count"), 2),
                "allowed_events": 0,
                **dict.fromkeys(("first_seen", "last_seen"), AT),
                "example_host": None if host is None else each.host,
            }
        )
    return pa.RecordBatch.from_pylist(rows, schemas.arrow(asked_type()))


class Found:
    """What is found of parts of a log, put together."""

    def __init__(
        self,
        parts: Sequence[Sequence[Asking]],
        rules: Ruleset,
        prefixes: PrefixOptions | None = None,
    ) -> None:
        known = Known(
            Rules({"c": rules}), prefixes, {"c": names_of(chain.from_iterable(parts))}, {}
        )
        batches = [
            batch
            for part in parts
            for batch in recommended(Broadcast(known), iter([questions(part, rules)]))
        ]
        table = pa.Table.from_batches(batches)
        kinds = table["kind"].to_pylist()
        in_tables = pa.array([each in (pieces.RIGHTS, pieces.FLIPS) for each in kinds])
        (self.parts,) = put_together(table.filter(pc.invert(in_tables))).values()
        self.acls = RecommendedAcls(rules, self.parts.allows, self.parts.denies)
        self.rules = rules.with_acls(self.acls.acls)
        is_rights = pc.equal(table["kind"], pieces.RIGHTS)
        rows = [
            row for each in unpacked(table.filter(is_rights)["packed"]) for row in each.to_pylist()
        ]
        seen = {each for session in self.parts.sessions for each in session}
        silent = rights_of_silent(known.cluster("c"), self.acls.denies, seen)
        rows += [dict(zip(RIGHTS_IN_PARTS.names, each.texts(), strict=True)) for each in silent]
        self.rights = _together(rows)


def _together(rows: Iterable[dict[str, Any]]) -> dict[str, set[str]]:
    """The principals of each right, however many rows tell of them."""
    found: dict[str, set[str]] = {}
    for row in rows:
        right = {
            name: value for name, value in row.items() if name not in ("principals", "example")
        }
        found.setdefault(str(right), set()).update(row["principals"])
    return found


def names_of(log: Iterable[Asking]) -> dict[ResourceType, set[str]]:
    found: dict[ResourceType, set[str]] = {}
    for each in log:
        if not is_of_any(*each[2:]):
            found.setdefault(each.resource_type, set()).add(each.name)
    return found


def by_company(log: Sequence[Asking]) -> list[list[Asking]]:
    firsts = companies(each.principals for each in log)

    def company(each: Asking) -> str:
        return firsts.get(each.principals[0], each.principals[0])

    return [list(part) for _, part in groupby(sorted(log, key=company), company)]


def of_all(log: Sequence[Asking], rules: Ruleset, prefixes: PrefixOptions | None) -> Ruleset:
    """What is recommended by what knows of no parts."""
    granted = [each for each in log if is_granted(each, rules)]
    evidence = Evidence(
        [SessionUse(*each[:4], (each.name,)) for each in granted],
        {each.principals for each in log},
        names_of(log),
        {},
    )
    found = Draft(evidence, rules, prefixes)
    denied = set(log) - allowed(rules, log)
    forbidden = {
        acl
        for acl in found.widest().acls
        if acl.permission is AclPermission.ALLOW
        and any(allows(acl, each, rules) for each in denied & allowed(found.widest(), log))
    }
    return found.rules(forbidden)


def is_granted(request: Asking, rules: Ruleset) -> bool:
    is_exempt = not rules.super_users.isdisjoint(request.principals)
    return not is_exempt and bool(allowed(rules, [request]))


def allows(acl: AclBinding, request: Asking, rules: Ruleset) -> bool:
    return bool(allowed(Ruleset((acl,), cidr=rules.cidr), [request]))


@pytest.mark.parametrize("prefixes", [None, PrefixOptions(2, 1, 1, any_prefix=True)], ids=str)
@pytest.mark.parametrize("cidr", [False, True], ids=["addresses", "subnets"])
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(1, 4))]
)
def test_companies_by_themselves_give_what_all_together_give(
    seed: int, cidr: bool, prefixes: PrefixOptions | None
) -> None:
    random = Random(f"{seed} {cidr}")
    denies, divided, considered = 0, 0, 0
    for _ in range(6):
        rules = random_rules(random, default=False, cidr=cidr)
        log = random_log(random, rules)
        one, several = Found([log], rules, prefixes), Found(by_company(log), rules, prefixes)
        # Who only asked in vain is of the sessions, too.
        sessions = {each.principals for each in log}
        assert set(several.parts.sessions) == set(one.parts.sessions) == sessions
        assert one.rules == several.rules
        assert one.rules == of_all(log, rules, prefixes)
        assert one.rights == several.rights
        assert one.parts.counted == several.parts.counted
        assert several.parts.counted.flips == len(several.parts.unmet) == 0
        assert several.parts.counted.allowed_questions == len(allowed(rules, log))
        assert best_first(one.parts.considered) == best_first(several.parts.considered)
        denies += len(several.acls.denies)
        divided += len(by_company(log)) > 2
        considered += len(one.parts.considered)
    assert denies > 0
    assert divided > 0
    assert considered > 0 or prefixes is None


def test_a_log_that_tasks_divide_gives_what_all_together_give(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As many batches as there are companies; Spark has two tasks."""
    monkeypatch.setattr(asked, "_AT_ONCE", 1)
    monkeypatch.setattr(asked, "_BY_DENY", 0)
    random = Random("engines")
    rules = random_rules(random, default=False, cidr=True)
    log = random_log(random, rules)
    granted = allowed(rules, log)
    rows = [
        used(
            principal=each.principals[0],
            other_principals=json.dumps(each.principals[1:]) if each.principals[1:] else None,
            host=each.host,
            operation=each.operation.name,
            resource_type=each.resource_type.name,
            resource_name=each.name,
            allowed=each in granted,
        )
        for each in log
    ]
    inputs = inputs_of(spark, tmp_path, rows, days=1, current={"c1": rules})
    options = RecommendOptions(prefixes=True, minimum_names=2, minimum_length=1)
    result = recommend.run(inputs, options)
    expected = of_all(log, rules, options.of_prefixes())
    assert ordered(read_policy(tmp_path / "recommend/acls.yaml").acls) == expected.acls
    assert len(expected.acls) > 5
    changes_written = spark.read.parquet(f"{tmp_path}/recommend/changes").toArrow().to_pylist()
    assert Counter((row["acl_id"], row["change"]) for row in changes_written) == Counter(
        (acl_id(acl), change) for acl, change in changes(rules.acls, expected.acls)
    )
    sessions = {each.principals for each in log}
    told = opened(rules, expected, sessions)
    assert figures_of(result)["rights opened"] == told.rights_opened
    assert figures_of(result)["events replayed"] == len(log)


def test_a_cluster_whose_names_without_acls_are_open_is_one_part() -> None:
    random = Random("open")
    for _ in range(10):
        rules = random_rules(random, default=True, cidr=False)
        log = random_log(random, rules)
        found = Found([log], rules)
        unmet = {each.name for each in found.parts.unmet}
        assert unmet <= {"*"}
        assert found.rules == of_all(log, rules, None)
        assert found.parts.counted.gained_questions == 0
        assert found.parts.counted.lost_questions == len(found.parts.unmet)
