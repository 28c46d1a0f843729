"""What somebody who has not logged in can take of the HTTP API, and what one who has cannot."""

from __future__ import annotations

import json
import socket
import ssl
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from aclbroker.broker.http_api.bodies import MOST_OF_BODY
from aclbroker.protocol.messages.create_acls import AclCreation
from tests.conftest import StartBroker
from tests.http_api.api import ACLS, MDS, SEARCH, Api, api_address, basic, held
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.certificates import Authority
from tests.support.client import Client
from tests.support.process import wait_for
from tests.support.tls import client_tls, pem_stores

SECONDS = 20
IMPATIENT = {"aclbroker.sasl.timeout.ms": "1000"}
WHO = "/security/1.0/metadataClusterId"
AUTHORIZE = "/security/1.0/authorize"
REGISTRY = "/security/1.0/registry/clusters"


@pytest.fixture(scope="module")
def patient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    yield from started(tmp_path_factory.mktemp("patient"), MDS)


@pytest.fixture(scope="module")
def impatient(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One that gives a second to log in."""
    yield from started(tmp_path_factory.mktemp("impatient"), MDS | IMPATIENT)


def started(directory: Path, settings: dict[str, str]) -> Iterator[Broker]:
    broker = ThreadBroker(directory, settings)
    broker.start()
    yield broker
    broker.terminate()


def connected(broker: Broker) -> socket.socket:
    host, _, port = api_address(broker).rpartition(":")
    return socket.create_connection((host, int(port)), SECONDS)


def everything(peer: socket.socket) -> bytes:
    """What comes until the connection ends."""
    found = b""
    try:
        while some := peer.recv(65_536):
            found += some
    except ConnectionError:
        pass
    return found


def request(method: str, path: str, *fields: str) -> bytes:
    return "\r\n".join((f"{method} {path} HTTP/1.1", "Host: x", *fields, "", "")).encode()


def test_who_sends_half_a_header_or_nothing_is_gone_when_the_time_to_log_in_is_over(
    impatient: Broker,
) -> None:
    half = request("GET", WHO)[:-3]
    with connected(impatient) as silent, connected(impatient) as slow:
        slow.sendall(half)
        assert everything(silent) == b""
        assert everything(slow) == b""
    assert Api(impatient).call("GET", WHO).status == 200


def test_who_asks_what_anybody_may_ask_does_not_stay_longer_either(
    impatient: Broker,
) -> None:
    with connected(impatient) as peer:
        peer.sendall(request("GET", "/security/1.0/features"))
        answer = everything(peer)
    assert answer.startswith(b"HTTP/1.1 200 OK")
    assert answer.count(b"HTTP/1.1") == 1


@pytest.mark.broker_process
def test_a_header_without_end_is_not_read_to_its_end(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | IMPATIENT)
    for line in (b"a" * 70_000, b"a: b\r\n" * 20_000, b"GET / HTTP/1.1\r\na: " + b"b" * 70_000):
        with connected(broker) as peer:
            try:
                for _ in range(200):
                    peer.sendall(line)
            except ConnectionError:
                pass
            answer = everything(peer)
            assert len(answer) < 1_000, answer[:100]
    assert Api(broker).call("GET", WHO).status == 200
    assert broker.peak_mib < 200


def test_those_who_wait_give_way_to_who_logs_in(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | {"aclbroker.max.unauthenticated.connections": "5"})
    peers = [connected(broker) for _ in range(40)]
    try:
        assert Api(broker).login().call("GET", WHO).status == 200
        assert everything(peers[0]) == b""
    finally:
        for peer in peers:
            peer.close()


def test_who_has_logged_in_keeps_the_connection_while_others_come(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | IMPATIENT | {"max.connections": "6"})
    api = Api(broker)
    kept = api.connection()
    header = {"Authorization": basic("admin", "admin-secret")}
    kept.request("GET", WHO, headers=header)
    assert kept.getresponse().read()
    peers = [connected(broker) for _ in range(20)]
    try:
        everything(peers[0])
        kept.request("GET", WHO, headers=header)
        assert kept.getresponse().status == 200
    finally:
        kept.close()
        for peer in peers:
            peer.close()


def test_a_body_that_is_too_long_is_refused_whether_its_length_is_told_or_not(
    patient: Broker,
) -> None:
    api = Api(patient).login()
    long = json.dumps(api.filter(name="x" * MOST_OF_BODY))
    refused = api.call("POST", SEARCH, long)
    assert (refused.status, refused.value["status_code"]) == (413, 413)
    told = ("Content-Type: application/json", f"Authorization: {api.authorization}")
    with connected(patient) as peer:
        peer.sendall(request("POST", SEARCH, *told, "Content-Length: 10000000000"))
        assert peer.recv(65_536).startswith(b"HTTP/1.1 413")
    with connected(patient) as peer:
        peer.sendall(request("POST", SEARCH, *told, "Transfer-Encoding: chunked"))
        chunk = b"10000\r\n" + b"x" * 65_536 + b"\r\n"
        for _ in range(3):
            peer.sendall(chunk)
        assert peer.recv(65_536).startswith(b"HTTP/1.1 413")
    assert api.search() == []


def test_a_stranger_gets_nothing_done_by_a_body(patient: Broker) -> None:
    fields = ("Content-Type: application/json", "Content-Length: 100000")
    with connected(patient) as peer:
        # The answer does not wait for the body.
        peer.sendall(request("POST", ACLS, *fields))
        assert peer.recv(65_536).startswith(b"HTTP/1.1 401")


def login(api: Api) -> str:
    return f"Authorization: {api.authorization}"


def test_a_stranger_is_refused_before_the_client_is_asked_for_the_body(patient: Broker) -> None:
    fields = ("Content-Type: application/json", "Content-Length: 20", "Expect: 100-continue")
    with connected(patient) as peer:
        peer.sendall(request("POST", ACLS, *fields))
        assert peer.recv(65_536).startswith(b"HTTP/1.1 401")
    with connected(patient) as peer:
        peer.sendall(request("PUT", AUTHORIZE, *fields, login(Api(patient, "alice"))))
        assert peer.recv(65_536) == b"HTTP/1.1 100 Continue\r\n\r\n"
        peer.sendall(b" " * 18 + b"{}")
        assert b"userPrincipal is missing" in peer.recv(65_536)


def test_the_connection_goes_on_after_a_body_that_was_not_wanted(patient: Broker) -> None:
    fields = ("Content-Type: application/json", "Content-Length: 120000")
    next_call = request("GET", "/v1/metadata/id", "Connection: close")
    for more in ((), (login(Api(patient, "bob")),)):
        with connected(patient) as peer:
            peer.sendall(request("POST", ACLS, *fields, *more) + b" " * 120_000 + next_call)
            answers = everything(peer)
        status = 403 if more else 401
        assert answers.startswith(f"HTTP/1.1 {status}".encode()), answers
        assert answers.count(b"HTTP/1.1 200 OK") == 1


@pytest.mark.parametrize(("method", "path"), [("POST", ACLS), ("DELETE", ACLS), ("POST", SEARCH)])
def test_a_long_body_of_a_caller_without_rights_is_not_waited_for(
    patient: Broker, method: str, path: str
) -> None:
    fields = ("Content-Type: application/json", "Content-Length: 100000")
    seen = len(patient.events())
    with connected(patient) as peer:
        peer.sendall(request(method, path, *fields, login(Api(patient, "alice"))))
        answer = peer.recv(65_536)
    assert answer.startswith(b"HTTP/1.1 403"), answer
    assert b"User:alice is not permitted" in answer
    [denied] = wait_for(
        "the record",
        lambda: [each for each in patient.events()[seen:] if each.get("allowed") is False] or None,
        SECONDS,
    )
    assert denied["principal"] == "User:alice"


def test_registrations_of_a_caller_without_rights_are_not_waited_for(patient: Broker) -> None:
    fields = ("Content-Type: application/json", "Content-Length: 500")
    with connected(patient) as peer:
        peer.sendall(request("POST", REGISTRY, *fields, login(Api(patient, "alice"))))
        assert peer.recv(65_536).startswith(b"HTTP/1.1 403")


def test_a_right_on_one_cluster_is_enough_for_a_long_body(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | held("lkc-A", "lkc-B"))
    admin, alice = Api(broker).login(), Api(broker, "alice").login()
    right = "ALLOW User:alice ALTER CLUSTER:LITERAL:kafka-cluster from *"
    assert admin.create(right, "lkc-B").status == 204
    acl = f"ALLOW User:{'x' * 20_000} READ TOPIC:LITERAL:t from *"
    assert alice.create(acl, "lkc-B").status == 204
    assert alice.create(acl, "lkc-A").status == 403


def test_long_bodies_count_for_their_principal_who_waits_while_others_are_served(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | {"aclbroker.max.request.bytes.per.principal": "200000"})
    size, body = 120_000, json.dumps({"userPrincipal": "User:x", "actions": []})
    fields = ("Content-Type: application/json", f"Content-Length: {size}")

    def asks(user: str) -> bytes:
        return request("PUT", AUTHORIZE, *fields, login(Api(broker, user)), "Expect: 100-continue")

    with connected(broker) as first, connected(broker) as second, connected(broker) as other:
        first.sendall(asks("alice"))
        assert first.recv(65_536).startswith(b"HTTP/1.1 100")
        second.sendall(asks("alice"))
        other.sendall(asks("bob"))
        assert other.recv(65_536).startswith(b"HTTP/1.1 100")
        other.sendall(body.rjust(size).encode())
        assert other.recv(65_536).startswith(b"HTTP/1.1 200")
        second.setblocking(False)
        with pytest.raises(BlockingIOError):
            second.recv(65_536)
        second.settimeout(SECONDS)
        first.close()
        assert second.recv(65_536).startswith(b"HTTP/1.1 100")
        second.sendall(body.rjust(size).encode())
        assert second.recv(65_536).startswith(b"HTTP/1.1 200")


def test_who_goes_away_while_its_body_waits_for_room_leaves_nothing_behind(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | {"aclbroker.max.request.bytes.per.principal": "200000"})
    body = json.dumps({"userPrincipal": "User:alice", "actions": []}).rjust(120_000)
    fields = ("Content-Type: application/json", "Content-Length: 120000")
    asks = request("PUT", AUTHORIZE, *fields, login(Api(broker, "alice")))
    for _ in range(3):
        peers = [connected(broker) for _ in range(5)]
        for peer in peers:
            peer.sendall(asks)
        for peer in peers:
            peer.close()
    assert Api(broker, "alice").call("PUT", AUTHORIZE, body).status == 200
    assert "Traceback" not in broker.new_log_text()


def test_a_body_that_its_client_breaks_off_is_not_waited_for_and_a_whole_one_is_answered(
    patient: Broker,
) -> None:
    body = json.dumps({"userPrincipal": "User:alice", "actions": []}).encode()
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    header = request("PUT", AUTHORIZE, *fields, login(Api(patient, "alice")))
    for sent, answer in ((body, b"HTTP/1.1 200"), (body[:-1], b"")):
        with connected(patient) as peer:
            peer.sendall(header + sent)
            peer.shutdown(socket.SHUT_WR)
            assert everything(peer)[:12] == answer


def test_bodies_that_come_all_at_once_are_each_answered(patient: Broker) -> None:
    body = json.dumps({"userPrincipal": "User:alice", "actions": [], "x": [{"": 0}] * 14_000})
    fields = ("Content-Type: application/json", f"Content-Length: {len(body)}")
    sent = request("PUT", AUTHORIZE, *fields, login(Api(patient, "alice"))) + body.encode()
    peers = [connected(patient) for _ in range(40)]
    try:
        for peer in peers:
            peer.sendall(sent)
        for peer in peers:
            assert b"x is unknown" in peer.recv(65_536)
    finally:
        for peer in peers:
            peer.close()


def test_a_compressed_body_is_not_unpacked(patient: Broker) -> None:
    api = Api(patient)
    packed = {"Content-Encoding": "gzip"}
    assert api.call("POST", SEARCH, api.filter(), packed).status == 415


def test_requests_that_come_all_at_once_are_answered_in_their_order(
    patient: Broker,
) -> None:
    many = request("GET", "/v1/metadata/id") * 300 + request(
        "GET", "/security/1.0/features", "Connection: close"
    )
    with connected(patient) as peer:
        peer.sendall(many)
        answers = everything(peer)
    assert answers.count(b"HTTP/1.1 200 OK") == 301
    assert answers.endswith(b"}}")


@pytest.mark.broker_process
def test_no_more_is_read_of_who_sends_requests_and_waits_for_no_answers(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | {"connection.failed.authentication.delay.ms": "5000"})
    many = request("GET", WHO) * 20_000
    with connected(broker) as peer:
        peer.settimeout(2)
        with pytest.raises(TimeoutError):
            # What the systems keep on both sides is a part of this.
            peer.sendall(many * 64)
    assert Api(broker).call("GET", "/v1/metadata/id").status == 200
    assert broker.peak_mib < 150


def test_what_is_no_http_is_refused_and_leaves_a_few_lines_at_most(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS)
    for _ in range(50):
        with connected(broker) as peer:
            peer.sendall(b"\x00\x01garbage\r\n\r\n")
            answer = everything(peer)
            assert b" 400 " in answer
    assert Api(broker).call("GET", WHO).status == 200
    assert "Traceback" not in broker.new_log_text()
    assert len(broker.events()) < 40


def test_no_answer_says_more_of_the_server_than_its_name(patient: Broker) -> None:
    wrong = (
        b"\x00\x01garbage\r\n\r\n",
        request("GET", WHO, "Content-Length: x"),
        request("GET", WHO, "A: " + "b" * 40_000),
        request("GET", WHO, "Expect: something", "Connection: close"),
        request("GET", "/nowhere", "Connection: close"),
        request("PATCH", WHO, "Connection: close"),
        request("GET", WHO, "Connection: close"),
        request("GET", "/openapi.json", "Connection: close"),
    )
    for sent in wrong:
        with connected(patient) as peer:
            peer.sendall(sent)
            header, _, _ = everything(peer).lower().partition(b"\r\n\r\n")
        names = [line for line in header.split(b"\r\n") if line.startswith(b"server:")]
        assert names == [b"server: aclbroker"], sent[:60]


def test_guesses_of_passwords_are_logged_to_a_limit(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | {"connection.failed.authentication.delay.ms": "0"})
    api = Api(broker)
    for _ in range(40):
        answer = api.call("GET", WHO, header={"Authorization": basic("admin", "guess")})
        assert answer.status == 401
    assert broker.told("authentication failed")[0] < 40


def test_a_list_of_many_acls_comes_whole_while_others_are_served(
    start_broker: StartBroker,
) -> None:
    broker = start_broker(MDS | {"aclbroker.audit.level": "off"})
    with Client(broker.listeners["PLAINTEXT"]) as client:
        new = [AclCreation(2, f"topic-{n}", 3, "User:a", "*", 3, 3) for n in range(20_000)]
        assert set(client.create(*new)) == {0}
        api = Api(broker).login()
        listed = api.connection()
        header = {"Authorization": api.authorization or "", "Content-Type": "application/json"}
        listed.request("POST", SEARCH, json.dumps(api.filter()), header)
        # Its client does not read yet, and nobody has to wait for that.
        assert len(api.search(name="topic-7")) == 1
        found = json.loads(listed.getresponse().read())
        listed.close()
        assert {each["pattern"]["name"] for each in found} == {each.resource_name for each in new}
        assert len(api.delete()) == 20_000
        assert client.resource_names() == []


def test_a_change_is_made_though_its_client_has_gone_away(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    api = Api(broker).login()
    for number in range(20):
        connection = api.connection()
        body = json.dumps({**api._scope(None), "aclBinding": {
            "pattern": {"resourceType": "TOPIC", "name": f"t{number}", "patternType": "LITERAL"},
            "entry": {"principal": "User:a", "host": "*", "operation": "READ",
                      "permissionType": "ALLOW"},
        }})  # fmt: skip
        header = {"Authorization": api.authorization or "", "Content-Type": "application/json"}
        connection.request("POST", ACLS, body, header)
        connection.close()
    created = [each for each in broker.events() if each.get("action") == "CREATE_ACL"]
    # A request that was not read may be lost; what was made is recorded.
    assert len(api.search()) >= len(created)
    assert "Traceback" not in broker.new_log_text()


def test_tls_is_that_of_the_settings_with_the_prefix_or_of_all_listeners(
    start_broker: StartBroker, tmp_path: Path
) -> None:
    authority = Authority()
    stores = pem_stores(tmp_path, authority.issue(), authority)
    listener = {"confluent.metadata.server.listeners": "https://127.0.0.1:0"}
    prefixed = {f"confluent.metadata.server.{name}": value for name, value in stores.items()}
    for settings in (stores, prefixed):
        broker = start_broker(listener | settings)
        api = Api(broker, tls=client_tls(authority)).login()
        assert api.create("ALLOW User:a READ TOPIC:LITERAL:t from *").status == 204
        nodes = api.call("GET", "/security/1.0/activenodes/https").value
        assert nodes == [f"https://{api_address(broker)}"]
        [change] = [each for each in broker.events() if each.get("event") == "change"]
        assert change["listener"].startswith("https://")
        with connected(broker) as peer:
            peer.sendall(request("GET", WHO))
            assert b"HTTP" not in everything(peer)
        untrusted = ssl.create_default_context()
        with pytest.raises(OSError, match="CERTIFICATE"):
            urllib.request.urlopen(f"https://{api_address(broker)}{WHO}", context=untrusted)
        broker.terminate()


def test_the_broker_ends_at_once_though_clients_are_connected(start_broker: StartBroker) -> None:
    broker = start_broker(MDS)
    with connected(broker) as peer:
        peer.sendall(request("GET", "/security/1.0/features"))
        assert peer.recv(65_536)
        assert broker.terminate() == 0
        assert everything(peer) == b""
