"""The file of a recording, and the one that is checked in."""

import gzip
import json
from pathlib import Path

import pytest

from aclbroker.conformance.outline import CLOSED, without_answer
from aclbroker.conformance.recording import (
    RecordingError,
    dumps,
    load,
    loads,
    packaged_recording,
)
from aclbroker.conformance.roles import ROLES
from aclbroker.protocol.messages import APIS, ApiKey
from tests.conformance_tool.examples import PATH, answered, recording, step

KEPT = recording(
    {
        step(): answered({PATH: 29}, {"cluster_authorized_operations": 256}, {"topics": ["a"]}),
        step(version=2): answered({PATH: 42}, None, None, {"x": -1, "y": []}, {"m": ["a"]}, [42]),
        step(version=3, role="super"): answered({PATH: 29}),
        step(ApiKey.PRODUCE, "with 'quotes' and \u20ac"): without_answer(CLOSED),
    },
    "Kafka 9",
)

ALL_VERSIONS = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.METADATA,
    ApiKey.OFFSET_COMMIT,
    ApiKey.OFFSET_FETCH,
    ApiKey.FIND_COORDINATOR,
    ApiKey.JOIN_GROUP,
    ApiKey.CREATE_TOPICS,
    ApiKey.DESCRIBE_CONFIGS,
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.DELETE_TOPICS,
    ApiKey.DESCRIBE_GROUPS,
)


def test_a_recording_is_read_as_it_was_written(tmp_path: Path):
    file = tmp_path / "x.json.gz"
    file.write_bytes(dumps(KEPT))
    assert load(file) == KEPT


def test_the_same_recording_gives_the_same_bytes():
    assert dumps(loads(dumps(KEPT))) == dumps(KEPT)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no gzip",
        gzip.compress(b"no JSON"),
        gzip.compress(b"[]"),
        gzip.compress(json.dumps({"format": 2}).encode()),
        dumps(KEPT)[:-20],
    ],
    ids=["nothing", "no gzip", "no JSON", "a list", "without steps", "cut off"],
)
def test_what_is_no_recording_is_refused(data: bytes):
    with pytest.raises(RecordingError, match="not a recording"):
        loads(data)


def test_a_recording_of_another_format_is_refused():
    with pytest.raises(RecordingError, match="format 1, not 2"):
        loads(gzip.compress(json.dumps({"format": 1}).encode()))


def test_kafkas_recording_is_small():
    assert len(dumps(packaged_recording())) < 300_000


def test_kafkas_recording_has_every_key_at_every_version_that_kafka_offers_in_every_role():
    kafka = packaged_recording()
    assert kafka.broker == "Apache Kafka 4.3.0"
    assert len(kafka.offered) == 75
    # Kafka answers about client metrics, and without a telemetry receiver it does not offer to.
    unadvertised = (ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY)
    expected = {
        (key, version, role.name)
        for key, versions in (kafka.offered | dict.fromkeys(unadvertised, range(1))).items()
        for version in versions
        for role in ROLES
    }
    assert {(each.key, each.version, each.role) for each in kafka.answers} == expected


def test_kafka_offers_no_version_that_we_do_not_know():
    for key, versions in packaged_recording().offered.items():
        assert versions[0] >= APIS[key].versions[0], key
        assert versions[-1] == APIS[key].versions[-1], key


@pytest.mark.parametrize("key", ALL_VERSIONS)
def test_kafkas_recording_has_refusals_at_every_version(key: ApiKey):
    kafka = packaged_recording()
    refusing = {
        each.version
        for each, outline in kafka.answers.items()
        if each.key == key and {29, 30, 31, 53} & set(outline.codes.values())
    }
    # Kafka closes the connection on the first versions of Produce.
    closed = {0, 1, 2} if key == ApiKey.PRODUCE else set()
    assert refusing == set(kafka.offered[key]) - closed


@pytest.mark.parametrize("key", [ApiKey.METADATA, ApiKey.LIST_GROUPS, ApiKey.LIST_TRANSACTIONS])
def test_kafkas_recording_has_filtered_lists_at_every_version(key: ApiKey):
    kafka = packaged_recording()
    lengths: dict[int, set[int]] = {}
    for each, outline in kafka.answers.items():
        for names in outline.names.values() if each.key == key else ():
            lengths.setdefault(each.version, set()).add(len(names))
    # Of the same list nothing, some and all are shown.
    assert all(0 in each and len(each) >= 3 for each in lengths.values())
    assert lengths.keys() == set(kafka.offered[key])
