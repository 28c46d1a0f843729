"""What is proposed for a made-up cluster is held against its log by Kafka's own authorizer."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from tests.support import toolchain

toolchain.require_spark()

from aclbroker.acl.bindings import AclBinding
from aclbroker.acl.files.policy import read_policy
from aclbroker.cli.arguments import ServeCommand, parse_arguments
from tests.pipeline.auditing import audited
from tests.pipeline.judging import InLog, allowed_by_kafka, decided_in, idle
from tests.pipeline.kafka_decides import KafkaAuthorizer
from tools.audit_data.world import SUPER_USER
from tools.generate_audit import main

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.timeout(600), pytest.mark.apart]

SIZE = (
    "--events 20000 --days 3 --principals 200 --topics 500 --groups 100 --acls 2000 --forged 5 "
    "--group-members 0.1"
)


class Demo(NamedTuple):
    """A log with its ACLs, and what it says of each question."""

    place: Path
    acls: list[AclBinding]
    decided: dict[InLog, bool]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Demo:
    place = tmp_path_factory.mktemp("demo") / "demo"
    main([str(place), *SIZE.split()])
    return Demo(place, list(read_policy(place / "acls.yaml").acls), decided_in(place / "log"))


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaAuthorizer]:
    authorizer = KafkaAuthorizer(tmp_path_factory.mktemp("kafka-decides"))
    yield authorizer
    authorizer.close()


def test_the_log_says_what_kafka_decides_by_these_acls(demo: Demo, kafka: KafkaAuthorizer) -> None:
    questions = list(demo.decided)
    assert len(questions) > 4000
    assert sum(len(each.principals) > 1 for each in questions) > 100
    found = allowed_by_kafka(kafka, demo.acls, questions, [SUPER_USER])
    assert dict(zip(questions, found, strict=True)) == demo.decided
    assert 100 < found.count(False) < len(found) / 2


@pytest.mark.parametrize("job", ["unused", "redundant", "recommend"])
def test_no_used_right_is_lost_and_nothing_that_was_denied_is_opened(
    spark: SparkSession,
    demo: Demo,
    kafka: KafkaAuthorizer,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    job: str,
) -> None:
    log, acls = demo.place / "log", demo.place / "acls.yaml"
    result = audited(spark, job, log, acls, tmp_path, "--super-user", SUPER_USER)
    assert result.alarms["opened"] == 0
    (file,) = (tmp_path / job).glob("*.yaml")
    proposed = list(read_policy(file).acls)
    assert len(proposed) < len(demo.acls)

    questions = list(demo.decided)
    found = allowed_by_kafka(kafka, proposed, questions, [SUPER_USER])
    assert dict(zip(questions, found, strict=True)) == demo.decided
    if job != "redundant":
        # None is left that could go as well.
        used = [each for each in questions if demo.decided[each]]
        assert idle(proposed, used, [SUPER_USER]) == set()

    capsys.readouterr()
    groups = tmp_path / "groups.yaml"
    groups.write_text(groups_of(demo.decided))
    words = ["diff", str(acls), str(file), "--groups-file", str(groups), "--super-user", SUPER_USER]
    diff = parse_arguments(words)
    assert not isinstance(diff, ServeCommand)
    diff.run()
    signs = {line.strip()[:1] for line in capsys.readouterr().out.splitlines()}
    assert "+" not in signs
    assert ("-" in signs) == (job != "redundant")


def groups_of(asked: Iterable[InLog]) -> str:
    """A groups file of who is in which group, as the sessions of a log tell."""
    members: dict[str, set[str]] = {}
    for each in asked:
        for group in each.principals[1:]:
            members.setdefault(group.removeprefix("Group:"), set()).add(each.principals[0])
    groups = {group: sorted(users) for group, users in members.items()}
    return json.dumps({"version": "1", "groups": groups})
