"""What authorization costs a request: Metadata of 500 topics without any right, 110,000 ACLs.

    make bench-gate

This broker and a real Kafka hold the same ACLs, literal ones of other principals on other topics,
and are asked in turn by raw sockets. Every topic has to be decided, and is refused with code 29.
Neither writes an audit log: 500 refusals a request would measure that.
"""

from __future__ import annotations

import argparse
import platform
import statistics
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from protocol.messages import ApiKey
from protocol.messages.create_acls import AclCreation
from protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.client import Client, request_frame
from tests.support.kafka import running_kafka
from tests.support.process import wait_for

ACLS = 110_000
BATCH = 1_000
TOPICS = [MetadataRequestTopic(name=f"topic-{number}") for number in range(500)]
REQUEST = request_frame(ApiKey.METADATA, 12, MetadataRequest(TOPICS, False))
WARM_UP = 200
REQUESTS = 100
TOPIC_AUTHORIZATION_FAILED = 29


def creations(count: int) -> Iterable[AclCreation]:
    """Yield ACLs, each of a principal and a topic of its own."""
    for number in range(count):
        yield AclCreation(2, f"owned-{number}", 3, f"User:user-{number}", "*", 3, 3)


def fill(address: str, count: int) -> float:
    """Create ACLs in batches; return the seconds that it took."""
    begin = time.perf_counter()
    with Client(address) as client:
        batch: list[AclCreation] = []
        for creation in creations(count):
            batch.append(creation)
            if len(batch) == BATCH:
                if any(client.create(*batch)):
                    raise RuntimeError("an ACL was refused")
                batch.clear()
    return time.perf_counter() - begin


def client_without_rights(address: str) -> Client:
    """Return a session of a user whom no ACL names, after its first requests."""
    client = Client(address)
    client.login("alice", PASSWORDS["alice"])

    def refused() -> bool | None:
        client.send(REQUEST)
        topics = client.response(ApiKey.METADATA, 12)[1].topics
        codes = {topic.error_code for topic in topics}
        return True if codes == {TOPIC_AUTHORIZATION_FAILED} and len(topics) == 500 else None

    wait_for("every topic to be refused", refused, 30)
    for _ in range(WARM_UP):
        ask(client)
    return client


def ask(client: Client) -> float:
    """Return the seconds from a request to its answer, undecoded."""
    begin = time.perf_counter()
    client.send(REQUEST)
    client.receive()
    return time.perf_counter() - begin


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--acls", type=int, default=ACLS)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        for part in ("ours", "kafka"):
            (Path(name) / part).mkdir()
        broker = Broker(Path(name) / "ours", {"aclbroker.audit.level": "off"})
        broker.start()
        try:
            with running_kafka(Path(name) / "kafka") as kafka:
                compare(broker, kafka.listeners, options.acls, options.rounds)
        finally:
            broker.terminate()


def compare(broker: Broker, kafka: dict[str, str], acls: int, rounds: int) -> None:
    """Print the medians of both brokers and the ratio of each round."""
    for owner, listeners in (("aclbroker", broker.listeners), ("Kafka 4.3.0", kafka)):
        seconds = fill(listeners["PLAINTEXT"], acls)
        print(f"{owner}: {acls} ACLs in batches of {BATCH}: {acls / seconds:,.0f}/s")
    pair = [client_without_rights(each["SASL_PLAINTEXT"]) for each in (broker.listeners, kafka)]
    medians: list[list[float]] = [
        [statistics.median(ask(client) for _ in range(REQUESTS)) * 1000 for client in pair]
        for _ in range(rounds)
    ]
    ours, theirs = (statistics.median(each[side] for each in medians) for side in (0, 1))
    ratios = sorted(peer / own for own, peer in medians)
    print(
        f"{platform.platform()}, Python {platform.python_version()}, {rounds} rounds of {REQUESTS}"
    )
    print(
        f"Metadata of 500 topics without rights: aclbroker {ours:.2f} ms, "
        f"Kafka 4.3.0 {theirs:.2f} ms, "
        f"ratio {statistics.median(ratios):.2f}x ({ratios[0]:.2f}-{ratios[-1]:.2f})"
    )
    for client in pair:
        client.close()


if __name__ == "__main__":
    main()
