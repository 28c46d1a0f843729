"""The requests and the roles in which they are sent."""

from itertools import combinations

import pytest
from aiokafka.record.default_records import DefaultRecordBatch

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.operations import supported_operations
from aclbroker.conformance.corpus import corpus
from aclbroker.conformance.corpus.records import batch
from aclbroker.conformance.recording import packaged_recording
from aclbroker.conformance.resources import TOPICS, TopicIds
from aclbroker.conformance.roles import CLUSTER_CODES, ROLES
from aclbroker.protocol.compile import encode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.schema import versions_in
from tests.support.tables import check_each

CASES = corpus(TopicIds({name: name.encode()[-16:].rjust(16) for name in TOPICS}))


def test_a_case_is_known_by_its_key_and_label():
    assert len({(case.key, case.label) for case in CASES}) == len(CASES)


def test_every_key_of_kafka_has_a_case_at_each_version():
    offered = packaged_recording().offered

    def check(key: ApiKey) -> None:
        versions = [versions_in(case.versions) for case in CASES if case.key == key]
        for version in offered[key]:
            assert any(version in each for each in versions), version

    check_each(offered, check)


def test_every_case_can_be_encoded_at_each_of_its_versions():
    for case in CASES:
        versions = [v for v in APIS[case.key].versions if v in versions_in(case.versions)]
        assert versions, case.label
        for version in versions:
            encode(case.message, version)


def test_topic_ids_alone_make_the_bytes_for_two_brokers_differ():
    others = corpus(TopicIds({name: name.encode()[-16:].rjust(16, b"x") for name in TOPICS}))
    for case, other in zip(CASES, others, strict=True):
        version = APIS[case.key].versions[-1]
        if encode(case.message, version) != encode(other.message, version):
            assert "topic_id" in repr(case.message), case.label


@pytest.mark.parametrize(
    ("producer_id", "transactional"), [(-1, False), (7, False), (7, True), (-1, True)]
)
def test_a_record_batch_is_a_real_one(producer_id: int, transactional: bool):
    made = DefaultRecordBatch(batch(producer_id=producer_id, transactional=transactional))
    assert made.validate_crc()
    assert (made.magic, made.producer_id, made.is_transactional) == (2, producer_id, transactional)
    assert [record.value for record in made] == [b"value"]


def test_no_two_operations_on_the_cluster_are_allowed_in_the_same_roles():
    operations = set(CLUSTER_CODES)
    assert operations == set(supported_operations(ResourceType.CLUSTER))
    assert all(CLUSTER_CODES[a] != CLUSTER_CODES[b] for a, b in combinations(operations, 2))


def test_each_role_but_the_super_users_has_acls_of_its_own():
    acls = [role.acls("User:alice") for role in ROLES if role.acls]
    assert len(set(acls)) == len(acls) == len(ROLES) - 1
    assert {acl.principal for each in acls for acl in each} == {"User:alice"}
    assert AclOperation.UNKNOWN not in {acl.operation for each in acls for acl in each}
