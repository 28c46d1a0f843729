"""The port for faults: another process lets requests of real clients fail, and nobody else can."""

from __future__ import annotations

import json
import os
import re
import subprocess
import urllib.request
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from aclbroker.broker.config import ConfigError, load
from aclbroker.broker.handlers.faults import MOST_FAULTS
from aclbroker.broker.server.start import write_ready_file
from aclbroker.testing.clients import client_config
from tests.conftest import StartBroker
from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker
from tests.support.broker_thread import ThreadBroker
from tests.support.toolchain import require

ROOT = Path(__file__).parents[2]
ATTEMPTS = 20
TOKEN = "a-token-of-a-test"
MEMORY = {"aclbroker.cluster": "memory", "aclbroker.catalog.topics": "orders:1"}
OPEN = MEMORY | {"aclbroker.faults.address": "127.0.0.1:0"}
WITH_TOKEN = OPEN | {"aclbroker.faults.address": "0.0.0.0:0", "aclbroker.faults.token": TOKEN}


def url(broker: Broker) -> str:
    [found] = [str(event["faults"]) for event in broker.events() if "faults" in event]
    return found


def asked(
    address: str, method: str = "GET", header: dict[str, str] | None = None, **fault: str
) -> tuple[int, Any]:
    """Return the status and what is answered: the faults to come, or why it is refused."""
    query = f"?{urlencode(fault)}" if fault else ""
    request = urllib.request.Request(f"{address}{query}", method=method, headers=header or {})
    try:
        with urllib.request.urlopen(request, timeout=20) as answer:
            return answer.status, json.loads(answer.read())["faults"]
    except HTTPError as error:
        return error.code, str(error.read(), "utf-8").strip()


def settings(broker: Broker) -> dict[str, Any]:
    servers = broker.listeners["SASL_PLAINTEXT"]
    return client_config("confluent", servers, "admin", PASSWORDS["admin"]) | {"log_level": 0}


@pytest.fixture
def broker(start_broker: StartBroker) -> Broker:
    return start_broker(OPEN)


def test_the_next_requests_of_a_client_fail_as_often_as_was_asked_for(broker):
    fault = {"error": "POLICY_VIOLATION", "count": 2, "delay": 0.0, "closes": False}
    status, coming = asked(
        url(broker), "POST", request="produce", error="policy_violation", count="2"
    )
    assert (status, coming) == (201, [{"request": "Produce", **fault}])
    answers: list[KafkaError | None] = []
    producer = Producer(settings(broker) | {"enable.idempotence": False})
    for _ in range(3):
        producer.produce("orders", b"one", on_delivery=lambda error, _: answers.append(error))
        assert producer.flush(20) == 0
    codes = [None if error is None else error.name() for error in answers]
    assert codes == ["POLICY_VIOLATION"] * 2 + [None]
    assert asked(url(broker)) == (200, [])


def test_a_connection_ends_and_an_answer_comes_late_as_was_asked_for(broker):
    asked(url(broker), "POST", request="Metadata", closes="true")
    asked(url(broker), "POST", request="Metadata", delay="0.2")
    client = AdminClient(settings(broker))
    for _ in range(ATTEMPTS):
        with suppress(KafkaException):  # Its connection ended, and it makes another.
            client.list_topics("orders", timeout=20)
        if asked(url(broker)) == (200, []):
            break
    assert asked(url(broker)) == (200, [])
    assert client.list_topics("orders", timeout=20).topics["orders"].error is None


def test_what_the_page_shows_for_curl_is_done(broker):
    require("curl")
    page = (ROOT / "docs" / "testing.md").read_text()
    [block] = re.findall(r"^```sh\n(curl .+?)^```$", page, re.MULTILINE | re.DOTALL)
    done = subprocess.run(
        ["sh", "-euc", block],
        env=os.environ | {"ACLBROKER_FAULTS_URL": url(broker)},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    first, both, listed, forgotten = (json.loads(line) for line in done.stdout.splitlines())
    assert [each["request"] for each in listed["faults"]] == ["Produce", "Fetch"]
    assert first["faults"] == both["faults"][:1]
    assert (both, forgotten) == (listed, {"faults": []})


def test_faults_that_are_to_come_are_listed_and_forgotten(broker):
    asked(url(broker), "POST", request="Fetch", closes="true", delay="1.5", count="3")
    coming = {"request": "Fetch", "error": None, "count": 3, "delay": 1.5, "closes": True}
    assert asked(url(broker)) == (200, [coming])
    assert asked(url(broker), "DELETE") == (200, [])
    assert asked(url(broker)) == (200, [])


@pytest.mark.parametrize(("fault", "told"), [
    ({}, "a fault has a request"),
    ({"request": "Metdata"}, "did you mean Metadata"),
    ({"request": "Produce", "eror": "NOT_CONTROLLER"}, "error, count, delay, closes"),
    ({"request": "Produce", "error": "NOT_LEADER"}, "did you mean NOT_LEADER_OR_FOLLOWER"),
    ({"request": "x" * 4_000}, "is not known"),
    ({"request": "Produce"}, "needs an error, a delay, or to close"),
    ({"request": "Produce", "error": "NONE"}, "needs an error, a delay, or to close"),
    ({"request": "Fetch", "error": "NOT_CONTROLLER", "closes": "true"}, "has an error to answer"),
    ({"request": "Produce", "count": "0"}, "at least 1"),
    ({"request": "Produce", "count": "-1"}, "a number of requests"),
    ({"request": "Produce", "count": "9999999"}, "at most 1000000"),
    ({"request": "Produce", "delay": "nan"}, "at most 3600 seconds"),
    ({"request": "Produce", "delay": "-1"}, "at least 0"),
    ({"request": "Produce", "delay": "soon"}, "a number of seconds"),
    ({"request": "Produce", "closes": "yes"}, "true or false"),
])  # fmt: skip
def test_a_fault_that_cannot_be_is_refused_with_the_reason(shared, fault, told):
    status, why = asked(url(shared), "POST", **fault)
    assert (status, told in why) == (400, True), why
    assert asked(url(shared)) == (200, [])


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory):
    broker = ThreadBroker(tmp_path_factory.mktemp("broker"), OPEN)
    broker.start()
    yield broker
    broker.terminate()


def test_a_name_that_is_there_twice_and_a_body_are_refused(shared):
    twice = f"{url(shared)}?request=Produce&request=Fetch"
    assert asked(twice, "POST")[0] == 400
    request = urllib.request.Request(url(shared), b'{"request": "Produce"}', method="POST")
    with pytest.raises(HTTPError, match="413"):
        urllib.request.urlopen(request, timeout=20)
    assert asked(url(shared), "PUT")[0] == 405


@pytest.mark.parametrize("header", [
    {"Origin": "https://example.com"},
    {"Origin": "null"},
    {"Host": "rebound.example.com"},
    {"Host": "127.0.0.1.example.com:80"},
    {"Host": ""},
    {"Host": "[::1"},
])  # fmt: skip
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
def test_a_page_in_a_browser_of_this_machine_can_ask_for_nothing(shared, method, header):
    assert asked(url(shared), method, header, request="Produce")[0] == 403
    assert asked(url(shared)) == (200, [])


@pytest.mark.thorough
def test_no_more_faults_are_kept_than_there_may_be(start_broker):
    broker = start_broker(OPEN)
    for _ in range(MOST_FAULTS):
        assert asked(url(broker), "POST", request="Fetch", closes="true")[0] == 201
    status, why = asked(url(broker), "POST", request="Produce", closes="true")
    assert (status, why) == (400, f"{MOST_FAULTS} faults are to come already, and no more may be")


def test_from_elsewhere_nobody_asks_without_the_token(start_broker):
    broker = start_broker(WITH_TOKEN)
    address = url(broker).replace("0.0.0.0", "127.0.0.1")
    for header in ({}, {"Authorization": "Bearer another"}, {"Authorization": TOKEN}):
        for method in ("GET", "POST", "DELETE"):
            assert asked(address, method, header, request="Produce")[0] == 401
    assert asked(address, header={"Authorization": f"Bearer {TOKEN}"}) == (200, [])
    assert TOKEN not in broker.log_text()


@pytest.mark.parametrize(("overrides", "told"), [
    (MEMORY | {"aclbroker.faults.address": "0.0.0.0:0"}, r"let requests fail.*faults\.token"),
    (MEMORY | {"aclbroker.faults.address": "broker.example.com:9405"}, r"let requests fail"),
    ({"aclbroker.faults.address": "127.0.0.1:0"}, r"aclbroker\.cluster=memory"),
    (OPEN | {"aclbroker.faults.token": "short"}, r"aclbroker\.faults\.token.*16 characters"),
])  # fmt: skip
def test_a_port_that_anybody_could_use_is_refused_at_the_start(overrides, told):
    with pytest.raises(ConfigError, match=told) as error:
        load(overrides=overrides)
    assert "=short" not in str(error.value)


def test_the_ready_file_is_not_written_through_a_link_that_was_made_before(tmp_path):
    target, ready = tmp_path / "of another program", tmp_path / "ready.json"
    target.write_text("precious")
    (tmp_path / f".ready.json.{os.getpid()}").symlink_to(target)
    write_ready_file(ready, {"listeners": {}})
    assert json.loads(ready.read_text()) == {"listeners": {}}
    assert target.read_text() == "precious"


def test_who_starts_the_broker_finds_the_address_in_the_ready_file(tmp_path):
    ready = tmp_path / "ready.json"
    broker = Broker(tmp_path, OPEN)
    broker.command += ["--ready-file", str(ready)]
    broker.start()
    try:
        assert asked(json.loads(ready.read_text())["faults"]) == (200, [])
    finally:
        broker.terminate()


def test_by_default_nobody_is_listened_to(start_broker):
    assert not [event for event in start_broker(MEMORY).events() if "faults" in event]
