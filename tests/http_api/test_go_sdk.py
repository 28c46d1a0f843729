"""Confluent's SDK for Go, which is the HTTP client of the `confluent` command."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.conftest import StartBroker
from tests.http_api.api import MDS, Api, api_address, held
from tests.support.accounts import PASSWORDS
from tests.support.packages import compiled_go

ENDS_WITHIN = 60.0
ACL = {
    "pattern": {"resourceType": "TOPIC", "name": "orders", "patternType": "LITERAL"},
    "entry": {
        "principal": "User:alice",
        "host": "*",
        "operation": "READ",
        "permissionType": "ALLOW",
    },
}
REGISTERED = {
    "clusterName": "prod",
    "scope": {"clusters": {"kafka-cluster": "lkc-A"}},
    "hosts": [{"host": "127.0.0.1", "port": 9092}],
    "protocol": "SASL_PLAINTEXT",
}


def story(url: str, user: str, cluster_id: str) -> dict[str, dict[str, Any]]:
    """What the program told of each of its steps."""
    program = compiled_go("go-mds", Path(__file__).with_name("go")) / "mds"
    done = subprocess.run(
        [str(program), url, user, PASSWORDS[user], cluster_id],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=ENDS_WITHIN,
        check=True,
    )
    steps = map(json.loads, done.stdout.splitlines())
    return {each.pop("step"): each for each in steps}


def test_the_sdk_manages_acls_and_the_registry(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | held("lkc-A"))
    url = f"http://{api_address(broker)}"
    told = story(url, "admin", "lkc-A")
    statuses = {name: each["status"] for name, each in told.items()}
    assert statuses == {
        "features": 200,
        "wrong password": 401,
        "token": 200,
        "metadataClusterId": 200,
        "search of metadataClusterId": 200,
        "activenodes": 200,
        "add READ": 204,
        "add ANY": 400,
        "authorize": 200,
        "search": 200,
        "remove": 200,
        "search again": 200,
        "search elsewhere": 400,
        "register": 204,
        "registered": 200,
        "registered as prod": 200,
        "unregister": 204,
        "unregister again": 404,
        "roleNames": 501,
    }
    assert told["token"]["value"] == "Bearer"
    assert told["metadataClusterId"]["value"] == Api(broker).cluster_id
    # The Go program puts the id into a scope unchanged.
    assert told["search of metadataClusterId"]["value"] == []
    assert told["activenodes"]["value"] == [url]
    assert told["authorize"]["value"] == ["ALLOWED", "DENIED"]
    assert told["search"]["value"] == [ACL]
    assert told["remove"]["value"] == [ACL]
    assert told["search again"]["value"] == []
    assert told["registered"]["value"] == [REGISTERED]
    assert told["registered as prod"]["value"] == "prod"
    for name, each in told.items():
        if each["status"] >= 400:
            error = json.loads(each["body"])
            assert error["status_code"] == each["status"], name
            assert error["message"], name


def test_the_sdk_is_refused_where_its_user_has_no_rights(start_broker: StartBroker) -> None:
    broker = start_broker(MDS | held("lkc-A"))
    told = story(f"http://{api_address(broker)}", "alice", "lkc-A")
    refused = {name for name, each in told.items() if each["status"] == 403}
    assert refused == {
        "add READ",
        "search",
        "remove",
        "search again",
        "search of metadataClusterId",
        "register",
        "registered",
        "registered as prod",
        "unregister",
        "unregister again",
    }
    # What is asked about oneself needs no right.
    assert told["authorize"]["value"] == ["DENIED", "DENIED"]
