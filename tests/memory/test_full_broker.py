"""What clients are told by a broker that has no room for more."""

from aclbroker.protocol.messages import (
    ApiKey,
    add_partitions_to_txn,
    find_coordinator,
    init_producer_id,
    produce,
)
from aclbroker.testing import AclBroker
from tests.memory.records import batch
from tests.support.client import Client

SMALL = {"aclbroker.memory.groups.max.bytes": "65536"}


def begin(client: Client, name: str) -> init_producer_id.InitProducerIdResponse:
    request = init_producer_id.InitProducerIdRequest(name, 60_000)
    answer = client.ask(ApiKey.INIT_PRODUCER_ID, 4, request)
    assert isinstance(answer, init_producer_id.InitProducerIdResponse)
    return answer


def written(client: Client, name: str, topic: str, producer: tuple[int, int]) -> tuple[int, str]:
    data = batch(b"x", producer=(*producer, 0), transactional=True)
    part = produce.PartitionProduceData(0, data)
    request = produce.ProduceRequest(
        name, -1, 5_000, [produce.TopicProduceData(topic, partition_data=[part])]
    )
    answer = client.ask(ApiKey.PRODUCE, 12, request).responses[0].partition_responses[0]
    return answer.error_code, answer.error_message


def test_who_has_no_room_for_a_transaction_is_told_so_by_codes_after_which_clients_try_again():
    with (
        AclBroker(topics={"orders": 300, "more": 1}, properties=SMALL) as broker,
        Client(broker.bootstrap_servers) as client,
    ):
        client.login("admin", broker.password("admin"))
        found = client.ask(
            ApiKey.FIND_COORDINATOR,
            4,
            find_coordinator.FindCoordinatorRequest(key_type=1, coordinator_keys=["one", "two"]),
        )
        assert [each.error_code for each in found.coordinators] == [0, 0]
        one, two = begin(client, "one"), begin(client, "two")

        def added(name: str, own: init_producer_id.InitProducerIdResponse, count: int) -> set[int]:
            asked = add_partitions_to_txn.AddPartitionsToTxnTopic("orders", list(range(count)))
            request = add_partitions_to_txn.AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=name,
                v3_and_below_producer_id=own.producer_id,
                v3_and_below_producer_epoch=own.producer_epoch,
                v3_and_below_topics=[asked],
            )
            answer = client.ask(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
            [topic] = answer.results_by_topic_v3_and_below
            return {each.partition_error_code for each in topic.results_by_partition}

        assert added("one", one, 300) == {0}
        assert added("two", two, 100) == {15}  # COORDINATOR_NOT_AVAILABLE
        assert added("two", two, 9) == {0}
        account = broker._broker.cluster.groups.account
        account.take(account.limit - account.taken)
        code, message = written(client, "two", "more", (two.producer_id, two.producer_epoch))
        assert code == 19  # NOT_ENOUGH_REPLICAS
        assert message == (
            "Unable to verify the partition has been added to the transaction. "
            "Underlying error: COORDINATOR_NOT_AVAILABLE"
        )
        assert begin(client, "three").error_code == 15
