"""A real Kafka's metadata log has the ACLs that it describes, while it runs and afterwards."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from aclbroker.acl.bindings import AclBinding
from aclbroker.broker.client.acls import create_acls, delete_acls, describe_acls, exactly
from aclbroker.broker.client.session import Session, open_session
from aclbroker.broker.client.settings import read_addresses, read_settings
from aclbroker.broker.kraft import MetadataAcls, read_acls
from aclbroker.broker.kraft.files import LogFiles, find
from tests.support.kafka import STARTS_AGAIN_SOON, Kafka
from tests.support.process import wait_for
from tests.support.random_acls import random_acls

SMALL_FILES = {
    "metadata.log.max.record.bytes.between.snapshots": "30000",
    "internal.metadata.log.segment.bytes": "60000",
}
"""A snapshot after a few hundred records, and segments of about as many."""


class DynamicKafka(Kafka):
    """A Kafka whose voters stand in its log and not in its settings (KIP-853)."""

    format_options = ("--standalone",)

    def _properties(self) -> dict[str, str]:
        properties = super()._properties()
        voter = properties.pop("controller.quorum.voters")
        return properties | {"controller.quorum.bootstrap.servers": voter.partition("@")[2]}


@pytest.fixture(
    scope="module",
    params=[pytest.param(Kafka, marks=pytest.mark.thorough), DynamicKafka],
    ids=["static", "dynamic"],
)
def kafka(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[Kafka]:
    running: Kafka = request.param(
        tmp_path_factory.mktemp("kraft"), overrides=SMALL_FILES | STARTS_AGAIN_SOON
    )
    try:
        running.start()
        yield running
    finally:
        if running.process is not None:
            running.kill()


def session_with(kafka: Kafka) -> Session:
    return open_session(read_addresses(kafka.listeners["PLAINTEXT"]), read_settings(None))


def metadata_log(kafka: Kafka) -> Path:
    return kafka.directory / "data"


def files_with_snapshot(kafka: Kafka, above: int) -> LogFiles:
    """Wait until there is a snapshot whose end is behind an offset."""

    def look() -> LogFiles | None:
        found = find(metadata_log(kafka))
        return found if found.first_offset > above else None

    return wait_for("a newer snapshot", look, 30)


def describe(session: Session, expected: set[AclBinding]) -> None:
    """Wait until the broker tells of these ACLs: it follows its controller, maybe a bit behind."""
    wait_for("these ACLs", lambda: set(describe_acls(session)) == expected or None, 30)


def test_the_log_has_what_kafka_describes_while_it_runs_and_after_it_ended(kafka: Kafka) -> None:
    random = Random(20)
    acls = random_acls(random, 1500, unprintable=True)
    there: set[AclBinding] = set()
    snapshot = 0
    with session_with(kafka) as session:
        for first in range(0, len(acls), 500):
            create_acls(session, acls[first : first + 500])
            there.update(acls[first : first + 500])
            gone = random.sample(sorted(there), 200)
            delete_acls(session, [exactly(each) for each in gone])
            there.difference_update(gone)

            found = read_acls(metadata_log(kafka))
            assert set(found.acls) == there
            assert len(found.acls) == len(there)
            describe(session, there)
            snapshot = files_with_snapshot(kafka, snapshot).first_offset
        # Neither end alone tells it all: there is a log behind the snapshot.
        create_acls(session, acls[:10])
        there.update(acls[:10])
        running = read_acls(metadata_log(kafka))
        assert running.end_offset > files_with_snapshot(kafka, 0).first_offset
        assert set(running.acls) == there
        describe(session, there)
    kafka.kill()
    assert read_acls(metadata_log(kafka)).acls == running.acls
    assert read_acls(metadata_log(kafka) / "__cluster_metadata-0").acls == running.acls

    kafka.start_again()
    with session_with(kafka) as session:
        describe(session, there)
    kafka.terminate(60)
    ended: MetadataAcls = read_acls(metadata_log(kafka))
    assert set(ended.acls) == there
    assert ended.end_offset > running.end_offset
    assert ended.notes == ()
