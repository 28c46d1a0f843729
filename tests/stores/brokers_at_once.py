"""Two real brokers that are started at the same moment with a store that they share."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.broker import Broker
from tests.support.client import Client
from tests.support.scram import ScramClient

_WITHIN_S = 60.0


def check_brokers_at_once(url: str, tmp_path: Path) -> None:
    """Start two brokers at once, and compare what clients see of both."""
    brokers = []
    for node in ("1", "2"):
        directory = tmp_path / node
        directory.mkdir()
        settings = {
            "aclbroker.store": url,
            "node.id": node,
            "aclbroker.catalog.topics": "orders:1,payments:3",
            "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        }
        brokers.append(Broker(directory, settings))
    try:
        with ThreadPoolExecutor(len(brokers)) as pool:
            list(pool.map(lambda broker: broker.start(_WITHIN_S), brokers))
        one, other = map(_seen, brokers)
        assert one == other
    finally:
        for broker in brokers:
            if broker.process is not None:
                broker.kill()


def _seen(broker: Broker) -> Any:
    """The id of the cluster, those of topics, and the salt of a user that there is not."""
    with Client(broker.listeners["SASL_PLAINTEXT"]) as client:
        client.handshake("SCRAM-SHA-256")
        answer = client.authenticate(ScramClient("SCRAM-SHA-256", "nobody", "secret").first())
        salt = answer.auth_bytes.decode().split(",")[1]
        assert salt.startswith("s=")
    with Client(broker.listeners["PLAINTEXT"]) as client:
        names = [MetadataRequestTopic(name=name) for name in ("orders", "payments")]
        found = client.ask(ApiKey.METADATA, 12, MetadataRequest(names))
    ids = sorted((topic.name, topic.topic_id) for topic in found.topics)
    assert len(ids) == 2
    return found.cluster_id, ids, salt
