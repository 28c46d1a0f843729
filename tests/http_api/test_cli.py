"""What the `confluent` command sends for each of its commands, as it was once recorded.

The command itself is in no registry, so that its requests are sent again. Their login is redacted.
"""

from __future__ import annotations

import json
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.http_api.api import ACLS, MDS, SEARCH, Answer, Api, basic, binding, held, shown
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker

SESSIONS = json.loads(Path(__file__).with_name("cli_requests.json").read_text())
BASIC = basic("admin", "admin-secret")
CLUSTERS = ("lkc-A", "lkc-B", "lkc-C", "sdk-A")


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """One for all sessions; in the cluster `forbidden` admin has no rights."""
    forbidden = {"aclbroker.clusters.forbidden.store": "memory:"}
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), MDS | held(*CLUSTERS) | forbidden)
    broker.start()
    yield broker
    broker.terminate()


@pytest.fixture
def api(broker: Broker) -> Api:
    """The API, with no ACL in any cluster."""
    found = Api(broker).login()
    for each in CLUSTERS:
        found.delete(each)
    return found


def sent(api: Api, request: dict[str, Any]) -> Answer:
    """Send a recorded request with a login in place of the redacted one."""
    authorization = {
        "none": None,
        "password": basic("admin", "admin-secret"),
        "wrong password": basic("admin", "wrong"),
        "token": api.authorization,
    }[request["login"]]
    header = {"User-Agent": request["agent"], "Accept-Encoding": "gzip"}
    connection = api.connection()
    try:
        if authorization is not None:
            header["Authorization"] = authorization
        if request["body"]:
            header["Content-Type"] = "application/json"
        body = request["body"].encode() or None
        connection.request(request["method"], request["path"], body, header)
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read().decode())
    finally:
        connection.close()


@pytest.mark.parametrize("session", SESSIONS, ids=lambda session: session["session"])
def test_each_recorded_request_is_answered_as_the_command_expects_it(
    api: Api, session: dict[str, Any]
) -> None:
    for request in session["requests"]:
        answer = sent(api, request)
        assert answer.status == request["status"], (request, answer)
        if "answer" in request:
            expected = request["answer"]
            assert sorted(answer.value, key=json.dumps) == sorted(expected, key=json.dumps)
        if answer.status == 204:
            assert answer.text == ""
        if answer.status >= 400:
            assert answer.value["message"], answer


def test_the_command_gets_a_token_of_three_parts_with_the_time_of_its_end(api: Api) -> None:
    answer = api.call("GET", "/security/1.0/authenticate", header={"Authorization": BASIC}).value
    assert answer["token_type"] == "Bearer"
    assert answer["expires_in"] == 3600
    claims = answer["auth_token"].split(".")[1]
    decoded = json.loads(urlsafe_b64decode(claims + "=="))
    assert decoded["sub"] == "admin"
    assert decoded["exp"] - decoded["iat"] == 3600


def test_a_command_without_a_login_learns_the_servers_cluster_and_that_there_is_no_browser_login(
    broker: Broker,
) -> None:
    nobody = Api(broker, user=None)
    features = nobody.call("GET", "/security/1.0/features").value
    assert features["features"]["basic.auth.1.enabled"] is True
    assert not features["features"].get("oidc.login.device.1.enabled")
    told = nobody.call("GET", "/v1/metadata/id").value
    assert told == {
        "id": "",
        "scope": {"path": [], "clusters": {"kafka-cluster": nobody.cluster_id}},
    }


BOB = "ALLOW User:Bob READ TOPIC:LITERAL:test-topic from 198.51.100.0"
ALL_USERS = "ALLOW User:* READ TOPIC:LITERAL:test-topic from *"
BAD_BOB = "DENY User:BadBob READ TOPIC:LITERAL:test-topic from *"
ALL_GROUPS = "ALLOW User:* READ GROUP:LITERAL:* from *"
JANE = "ALLOW User:Jane ALL TOPIC:PREFIXED:test- from *"


def test_the_examples_of_confluents_page_about_centralised_acls(api: Api) -> None:
    cluster = "lkc-A"
    scope = {"scope": {"clusters": {"kafka-cluster": cluster}}}
    for acl in (BOB, ALL_USERS, BAD_BOB, ALL_GROUPS, JANE):
        answer = api.call("POST", ACLS, {**scope, "aclBinding": binding(acl)})
        assert answer.status == 204, answer
    # acl delete --allow --principal User:Bob --operation READ --host 198.51.100.0 --topic
    # test-topic: the command sends no host.
    bob = api.filter(
        cluster,
        resourceType="TOPIC",
        name="test-topic",
        patternType="LITERAL",
        principal="User:Bob",
        operation="READ",
        permissionType="ALLOW",
    )
    assert list(map(shown, api.call("DELETE", ACLS, bob).value)) == [BOB]
    # acl list --topic test-topic --prefix: "only the ACLs that have been added to this exact prefix
    # pattern".
    exact = {"resourceType": "TOPIC", "patternType": "PREFIXED"}
    listed = api.call("POST", SEARCH, api.filter(cluster, name="test-topic", **exact)).value
    assert listed == []
    assert api.search(cluster, name="test-", **exact) == [JANE]
    # acl list --kafka-cluster <kafka-cluster-id>
    assert api.search(cluster) == sorted([ALL_USERS, BAD_BOB, ALL_GROUPS, JANE])
    decided = api.call("PUT", "/security/1.0/authorize", authorize(cluster, "User:BadBob"))
    assert decided.value == ["DENIED"]
    decided = api.call("PUT", "/security/1.0/authorize", authorize(cluster, "User:Bob"))
    assert decided.value == ["ALLOWED"]


def authorize(cluster_id: str, principal: str) -> dict[str, Any]:
    """Ask whether a principal may read test-topic."""
    action = {
        "scope": {"clusters": {"kafka-cluster": cluster_id}},
        "resourceType": "Topic",
        "resourceName": "test-topic",
        "operation": "Read",
    }
    return {"userPrincipal": principal, "actions": [action]}


def test_what_the_command_lets_through_is_refused_with_a_text_that_it_shows(api: Api) -> None:
    # It shows the body of a 400, and not that of a 404.
    scope = {"scope": {"clusters": {"kafka-cluster": "lkc-nowhere"}}}
    answer = api.call("POST", ACLS, {**scope, "aclBinding": binding(BOB)})
    assert answer.status == 400
    for each in (*CLUSTERS, api.cluster_id):
        assert each in answer.value["message"]
