"""One server of several clusters, of which one has a store that is not there when it starts.

The store is a topic of a Kafka, the cluster in memory of another broker, which is begun later.
"""

from __future__ import annotations

import json
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import ApiKey
from aclbroker.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
)
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aclbroker.testing.embedded import EmbeddedBroker
from tests.conftest import StartBroker
from tests.http_api.api import ACLS, MDS, SEARCH, Answer, Api, basic, binding, held
from tests.http_api.test_acls import sees
from tests.http_api.test_clusters import DESCRIBE_ORDERS, LISTENERS, hangup
from tests.http_api.test_logins import token_key
from tests.server.teams import TEAM, kill_worker
from tests.server.test_scram import upsertion
from tests.server.test_status import STATUS, figure, page
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.certificates import Authority
from tests.support.client import Client, topic_read
from tests.support.delegation_tokens import KEY
from tests.support.delegation_tokens import create as create_token
from tests.support.kafka import free_ports
from tests.support.process import wait_for
from tests.support.proxy import Proxy
from tests.support.tls import pem_stores

WITHIN = 60.0
MISSING = "the ACLs of a cluster are not there yet: what needs them is refused"
THERE = "the ACLs of a cluster are there: it is served from now on"
UNREADABLE = "the ACLs of a cluster cannot be read: it is refused until the server is started anew"
NOT_READ = (
    "The ACLs of the cluster lkc-B have not been read yet: their store is out of reach, or still "
    "being read. Try again."
)
B_USER = ("admin", "admin-of-b")


class Away:
    """A server whose cluster lkc-B has a topic for its store, where nobody listens yet."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        [port] = free_ports(1)
        self.address = f"127.0.0.1:{port}"
        self._running = ExitStack()

    def settings(self, **more: str) -> dict[str, str]:
        return (
            STATUS
            | MDS
            | held("lkc-A", "lkc-B")
            | LISTENERS
            | {
                "aclbroker.clusters.lkc-A.store": f"sqlite:///{self.directory}/lkc-A.db",
                "aclbroker.clusters.lkc-B.store": f"kafka://{self.address}/b",
            }
            | more
        )

    def come(self, topics: str = "") -> None:
        """Begin the Kafka."""
        self._running.enter_context(kafka(self.address, topics))

    def go(self) -> None:
        """End it."""
        self._running.close()


@contextmanager
def kafka(address: str, topics: str) -> Iterator[None]:
    broker = EmbeddedBroker(
        {
            "listeners": f"PLAINTEXT://{address}",
            "super.users": "User:ANONYMOUS",
            "aclbroker.store": "memory:",
            "aclbroker.cluster": "memory",
            "aclbroker.catalog.topics": topics,
            "auto.create.topics.enable": "false",
            "aclbroker.shutdown.timeout.ms": "1000",
        }
    )
    broker.start()
    try:
        yield
    finally:
        broker.stop()


@pytest.fixture
def away(tmp_path: Path) -> Iterator[Away]:
    made = Away(tmp_path)
    yield made
    made.go()


def calls(api: Api, cluster_id: str) -> list[Callable[[], Answer]]:
    """One call of each kind about a cluster."""
    scope = {"clusters": {"kafka-cluster": cluster_id}}
    created = {"scope": scope, "aclBinding": binding(DESCRIBE_ORDERS)}
    action = {"resourceName": "t", "resourceType": "Topic", "operation": "Read", "scope": scope}
    asked = {"userPrincipal": "User:admin", "actions": [action]}
    return [
        lambda: api.call("POST", ACLS, created),
        lambda: api.call("POST", SEARCH, api.filter(cluster_id)),
        lambda: api.call("DELETE", ACLS, api.filter(cluster_id)),
        lambda: api.call("PUT", "/security/1.0/authorize", asked),
    ]


def wait_until_there(broker: Broker) -> None:
    wait_for("the cluster", lambda: page(broker, "/readyz")[0] == 200 or None, WITHIN)


def of_event(broker: Broker, event: str) -> list[dict[str, Any]]:
    return [each for each in broker.events() if each["event"] == event]


def is_closed(peer: socket.socket) -> bool:
    peer.settimeout(WITHIN)
    try:
        return peer.recv(1) == b""
    except ConnectionError:
        return True


def connected(broker: Broker, listener: str) -> socket.socket:
    host, _, port = broker.listeners[listener].rpartition(":")
    return socket.create_connection((host, int(port)), WITHIN)


def test_all_but_the_cluster_whose_store_is_out_of_reach_is_served(
    start_broker: StartBroker, away: Away
) -> None:
    broker = start_broker(away.settings())
    api, alice = Api(broker).login(), Api(broker, "alice").login()
    assert api.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    assert api.create(DESCRIBE_ORDERS).status == 204
    assert sees(broker, "alice", "orders", "A")
    assert sees(broker, "alice", "orders", "SASL_PLAINTEXT")
    for caller in (api, alice):
        for call in calls(caller, "lkc-B"):
            answer = call()
            assert (answer.status, answer.value) == (
                503,
                {
                    "status_code": 503,
                    "error_code": 50301,
                    "type": "SERVICE UNAVAILABLE",
                    "message": NOT_READ,
                },
            )
    assert [call().status for call in calls(Api(broker, None), "lkc-B")] == [401] * 4
    status, text = page(broker, "/readyz")
    assert status == 503
    [line] = text.splitlines()
    assert line.startswith("cluster lkc-B: its ACLs are not loaded yet: ")
    assert away.address in line
    [missing] = of_event(broker, MISSING)
    assert (missing["cluster_id"], missing["listeners"]) == ("lkc-B", ["B"])
    assert away.address in missing["reason"]
    [ready] = of_event(broker, "ready")
    assert (ready["clusters"], ready["missing_clusters"]) == (2, "lkc-B")
    [out_of_reach] = of_event(broker, "ACL store is out of reach; trying again")
    assert out_of_reach["cluster_id"] == "lkc-B"


def test_its_listener_answers_logins_and_refuses_the_rest(
    start_broker: StartBroker, away: Away
) -> None:
    broker = start_broker(away.settings())
    with Client(broker.listeners["B"]) as client:
        versions = client.ask(ApiKey.API_VERSIONS, 3, ApiVersionsRequest("test", "1"))
        assert versions.error_code == 0
        client.login(*B_USER)
        orders = MetadataRequest([MetadataRequestTopic(name="orders")])
        metadata = client.ask(ApiKey.METADATA, 12, orders)
        assert (list(metadata.brokers), metadata.cluster_id) == ([], None)
        assert [each.error_code for each in metadata.topics] == [ErrorCode.LEADER_NOT_AVAILABLE]
        assert client.create(topic_read("orders")) == [ErrorCode.REQUEST_TIMED_OUT]
    with Client(broker.listeners["B"]) as client:
        refused = client.login_scram("dave", "dave-secret")
        assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
    with Client(broker.listeners["B"]) as client:
        wrong = client.login("admin", PASSWORDS["admin"])
        assert wrong.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_it_is_served_when_its_store_is_there_and_nobody_keeps_a_session_from_before(
    start_broker: StartBroker, away: Away, tmp_path: Path
) -> None:
    file = tmp_path / "audit.log"
    tls = pem_stores(tmp_path, (authority := Authority()).issue(), authority)
    listeners = {
        name: f"{LISTENERS[name]},{more}"
        for name, more in (
            ("listeners", "T://127.0.0.1:0"),
            ("listener.security.protocol.map", "T:SSL"),
        )
    }
    tokens = {
        "delegation.token.secret.key": KEY,
        "delegation.token.expiry.time.ms": "1",
        "delegation.token.expiry.check.interval.ms": "10",
    }
    others = {"aclbroker.clusters.lkc-B.listeners": "B,T", "aclbroker.audit.file": str(file)}
    broker = start_broker(away.settings(**tls, **listeners, **tokens, **others))
    with ExitStack() as opened:
        logged_in, elsewhere = (
            opened.enter_context(Client(broker.listeners[each])) for each in ("B", "A")
        )
        logged_in.login(*B_USER)
        elsewhere.login("admin", PASSWORDS["admin"])
        strangers = [opened.enter_context(connected(broker, each)) for each in ("B", "T")]
        away.come()
        wait_until_there(broker)
        assert [is_closed(each) for each in strangers] == [True, True]
        wait_for("its end", lambda: logged_in.is_closed() or None, WITHIN)
        assert elsewhere.create(topic_read("payments")) == [0]
    [there] = of_event(broker, THERE)
    assert there["cluster_id"] == "lkc-B"
    api = Api(broker).login()
    assert api.create(DESCRIBE_ORDERS, "lkc-B").status == 204
    assert api.search("lkc-B") == [DESCRIBE_ORDERS]
    assert api.search() == []
    with Client(broker.listeners["B"]) as client:
        client.login(*B_USER)
        change = AlterUserScramCredentialsRequest([], [upsertion("dave", "dave-secret")])
        answer = client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, change)
        assert [each.error_code for each in answer.results] == [0]
        token = create_token(client)
        assert token.error_code == 0
    with Client(broker.listeners["B"]) as client:
        assert client.login_scram("dave", "dave-secret").error_code == 0
        assert client.create(topic_read("refused")) == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED]
    assert figure(broker, "aclbroker_store_stale", store=f"kafka://{away.address}/b") == 0

    def swept() -> list[dict[str, Any]] | None:
        found = map(json.loads, file.read_text().splitlines())
        return [each for each in found if each.get("by") == "broker"] or None

    [removed] = wait_for("the token gone", swept, WITHIN)
    assert (removed["cluster_id"], removed["token"]["token_id"]) == ("lkc-B", token.token_id)
    assert broker.terminate() == 0
    records = [json.loads(line) for line in file.read_text().splitlines()]
    [denied] = [each for each in records if each.get("allowed") is False]
    assert (denied["cluster_id"], denied["principal"]) == ("lkc-B", "User:dave")


def test_settings_that_are_read_again_meanwhile_hold_when_it_is_there(
    start_broker: StartBroker, away: Away
) -> None:
    broker = start_broker(away.settings())
    broker.properties["aclbroker.clusters.lkc-B.super.users"] = "User:alice"
    broker.properties["aclbroker.audit.level"] = "off"
    hangup(broker)
    away.come()
    wait_until_there(broker)
    assert Api(broker).create(DESCRIBE_ORDERS, "lkc-B").status == 403
    assert Api(broker, "alice").create(DESCRIBE_ORDERS, "lkc-B").status == 204
    assert not any("allowed" in each or each["event"] == "change" for each in broker.events())
    broker.properties["aclbroker.clusters.lkc-B.super.users"] = "User:bob"
    hangup_again(broker)
    assert Api(broker, "alice").create(DESCRIBE_ORDERS, "lkc-B").status == 403
    assert Api(broker, "bob").create(DESCRIBE_ORDERS, "lkc-B").status == 204


def hangup_again(broker: Broker) -> None:
    """As `hangup`, for a second time."""
    before = broker.told("configuration reloaded")[0]
    hangup(broker)
    wait_for("reload", lambda: broker.told("configuration reloaded")[0] > before or None, WITHIN)


@pytest.mark.broker_process
def test_a_damaged_store_ends_the_start_and_names_the_cluster(tmp_path: Path, away: Away) -> None:
    away.come("b:2")
    broker = Broker(tmp_path, away.settings())
    with pytest.raises(RuntimeError, match="ended"):
        broker.start()
    assert broker.running.wait() == 1
    assert f"aclbroker.clusters.lkc-B.store: kafka://{away.address}/b: " in broker.log_text()


def test_a_store_that_proves_to_be_damaged_later_refuses_its_cluster_alone(
    start_broker: StartBroker, away: Away
) -> None:
    broker = start_broker(away.settings())
    away.come("b:2")
    [told] = wait_for("the damage", lambda: of_event(broker, UNREADABLE) or None, WITHIN)
    assert told["cluster_id"] == "lkc-B"
    assert "2 partitions" in told["reason"]
    api = Api(broker).login()
    for call in calls(api, "lkc-B"):
        answer = call()
        assert (answer.status, answer.value["message"]) == (
            503,
            "The ACLs of the cluster lkc-B cannot be read; the server's log says why.",
        )
    with Client(broker.listeners["B"]) as client:
        client.login(*B_USER)
        assert client.create(topic_read("orders")) == [ErrorCode.REQUEST_TIMED_OUT]
    assert api.create(DESCRIBE_ORDERS, "lkc-A").status == 204
    status, text = page(broker, "/readyz")
    assert status == 503
    [line] = text.splitlines()
    assert line.startswith("cluster lkc-B: its ACLs cannot be read: ")
    assert "2 partitions" in line
    assert broker.terminate() == 0


def test_the_server_ends_while_it_waits(start_broker: StartBroker, away: Away) -> None:
    broker = start_broker(away.settings())
    with Client(broker.listeners["B"]) as client:
        client.login(*B_USER)
        assert broker.terminate() == 0
    assert of_event(broker, "stopped")
    assert "Traceback" not in broker.new_log_text()


def test_a_store_that_does_not_answer_keeps_neither_the_start_nor_the_end_waiting(
    start_broker: StartBroker, away: Away
) -> None:
    away.come()
    with Proxy(away.address) as network:
        network.cut()
        place = {"aclbroker.clusters.lkc-B.store": f"kafka://{network.address}/b"}
        broker = start_broker(away.settings(**place))
        assert of_event(broker, MISSING)
        assert Api(broker).create(DESCRIBE_ORDERS, "lkc-A").status == 204
        assert Api(broker).create(DESCRIBE_ORDERS, "lkc-B").status == 503
        assert [each.startswith("cluster lkc-B: ") for each in page(broker, "/readyz")[1:]] == [
            True
        ]
        assert broker.terminate() == 0


def test_a_server_does_not_hold_its_own_cluster_twice(
    start_broker: StartBroker, tmp_path: Path, away: Away
) -> None:
    broker = start_broker(MDS)
    own = Api(broker).cluster_id
    broker.terminate()
    broker.properties |= held(
        own, **{f"aclbroker.clusters.{own}.store": f"kafka://{away.address}/b"}
    )
    with pytest.raises(RuntimeError, match="that is the id of the server's own cluster"):
        broker.start()


def test_who_logs_in_over_http_needs_no_other_cluster(
    start_broker: StartBroker, away: Away
) -> None:
    broker = start_broker(away.settings())
    api = Api(broker, None)
    api.authorization = basic("admin", "admin-of-b")
    assert api.call("GET", "/security/1.0/authenticate").status == 401
    assert Api(broker).call("GET", "/security/1.0/authenticate").status == 200


@pytest.mark.broker_process
def test_workers_serve_all_but_that_cluster_and_take_it_in_when_it_is_there(
    start_broker: StartBroker, away: Away, tmp_path: Path
) -> None:
    broker = start_broker(away.settings(**TEAM, **token_key(tmp_path)[0]))
    apis = [Api(broker).login() for _ in range(4)]
    assert {each.create(DESCRIBE_ORDERS, "lkc-A").status for each in apis} == {204}
    assert {each.create(DESCRIBE_ORDERS, "lkc-B").status for each in apis} == {503}
    with Client(broker.listeners["B"]) as client:
        client.login(*B_USER)
        assert client.create(topic_read("orders")) == [ErrorCode.REQUEST_TIMED_OUT]
    status, text = page(broker, "/readyz")
    assert (status, len(text.splitlines())) == (503, 1)
    assert text.startswith("cluster lkc-B: ")
    away.come()
    wait_until_there(broker)
    assert {each.create(DESCRIBE_ORDERS, "lkc-B").status for each in apis} == {204}
    assert [each.search("lkc-B") for each in apis] == [[DESCRIBE_ORDERS]] * 4
    assert broker.terminate() == 0


@pytest.mark.broker_process
def test_a_worker_is_replaced_though_a_cluster_has_failed_since_the_start(
    start_broker: StartBroker, away: Away, tmp_path: Path
) -> None:
    broker = start_broker(away.settings(**TEAM, **token_key(tmp_path)[0]))
    away.come("b:2")
    wait_for("the damage", lambda: len(of_event(broker, UNREADABLE)) == 2 or None, WITHIN)
    kill_worker(broker)
    wait_for("all", lambda: "worker" not in page(broker, "/readyz")[1] or None, WITHIN)
    apis = [Api(broker).login() for _ in range(4)]
    assert {each.create(DESCRIBE_ORDERS, "lkc-A").status for each in apis} == {204}
    assert {each.create(DESCRIBE_ORDERS, "lkc-B").status for each in apis} == {503}
    assert "2 partitions" in page(broker, "/readyz")[1]
    assert broker.told("worker ended; another takes its place")[0] == 1
    assert broker.terminate() == 0


@pytest.mark.broker_process
def test_a_damaged_store_ends_the_start_with_workers_too(tmp_path: Path, away: Away) -> None:
    away.come("b:2")
    broker = Broker(tmp_path, away.settings(**TEAM, **token_key(tmp_path)[0]))
    with pytest.raises(RuntimeError, match="ended"):
        broker.start()
    assert broker.running.wait() == 1
    assert f"aclbroker.clusters.lkc-B.store: kafka://{away.address}/b: " in broker.log_text()
