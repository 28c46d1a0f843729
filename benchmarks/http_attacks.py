"""Calls of the HTTP API that cost a broker more than their size, each sent over and over."""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from tests.support.accounts import PASSWORDS

BODY_BYTES: Final = 120_000
"""A little less than the longest body that the API reads."""

CLUSTERS: Final = 1_000
"""The number of clusters in the registry: its limit."""

_HOSTS: Final = 20
_CLUSTERS_A_REQUEST: Final = 100

_ACLS: Final = "/security/1.0/acls"
_SEARCH: Final = "/security/1.0/acls:search"
_REGISTRY: Final = "/security/1.0/registry/clusters"

WHICH_CLUSTER: Final = b"GET /v1/metadata/id HTTP/1.1\r\nHost: x\r\n\r\n"
ANY_CLUSTER: Final = b"@" * 22
"""A placeholder for the id of the server's cluster, with the same number of characters."""


class HttpAttack(NamedTuple):
    """A call: a title, the request for a number of entries, the connections, the answer's status.

    ``before`` are the calls that prepare the server for the attack, sent once.
    """

    title: str
    request: Callable[[int], bytes]
    entries: int
    connections: int
    status: int
    before: Callable[[int], list[bytes]] = lambda _: []
    is_closed: bool = False
    """Whether the server closes the connection after its answer."""


def _call(method: str, path: str, user: str | None, body: str = "", password: str = "") -> bytes:
    lines = [f"{method} {path} HTTP/1.1", "Host: x"]
    if user is not None:
        login = f"{user}:{password or PASSWORDS[user]}"
        lines.append(f"Authorization: Basic {b64encode(login.encode()).decode()}")
    if body:
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return "\r\n".join((*lines, "", body)).encode()


def _objects(entries: int) -> str:
    """Return JSON of small objects: no other JSON of this size takes longer to read."""
    return "[" + ",".join(['{"":0}'] * entries) + "]"


def _actions(entries: int) -> str:
    scope = {"clusters": {"kafka-cluster": "unknown"}}
    actions = [
        {"scope": scope, "resourceName": "t", "resourceType": "Topic", "operation": "Read"}
    ] * entries
    return json.dumps({"userPrincipal": "User:alice", "actions": actions}, separators=(",", ":"))


def _everything() -> str:
    pattern = {"resourceType": "ANY", "patternType": "ANY"}
    entry = {"operation": "ANY", "permissionType": "ANY"}
    both = {"patternFilter": pattern, "entryFilter": entry}
    scope = {"clusters": {"kafka-cluster": ANY_CLUSTER.decode()}}
    return json.dumps({"scope": scope, "aclBindingFilter": both})


def _registrations(entries: int) -> list[bytes]:
    hosts = [{"host": f"broker-{number}.example", "port": 9092} for number in range(_HOSTS)]
    clusters: list[dict[str, Any]] = [
        {
            "clusterName": f"cluster-{number}",
            "scope": {"clusters": {"kafka-cluster": f"id-{number}"}},
            "hosts": hosts,
        }
        for number in range(entries)
    ]
    return [
        _call("POST", _REGISTRY, "admin", json.dumps(clusters[first : first + _CLUSTERS_A_REQUEST]))
        for first in range(0, entries, _CLUSTERS_A_REQUEST)
    ]


HTTP_ATTACKS: Final[Mapping[str, HttpAttack]] = {
    "api-bodies-400": HttpAttack(
        "a user without rights sends 120 KB of JSON over HTTP on 400 connections",
        lambda entries: _call("PUT", "/security/1.0/authorize", "alice", _objects(entries)),
        BODY_BYTES // 7,
        400,
        400,
    ),
    "api-acls": HttpAttack(
        "a user without rights creates ACLs of 120 KB over HTTP on 400 connections",
        lambda entries: _call("POST", _ACLS, "alice", _objects(entries)),
        BODY_BYTES // 7,
        400,
        403,
    ),
    "api-strangers": HttpAttack(
        "strangers send 120 KB of JSON over HTTP on 400 connections",
        lambda entries: _call("POST", _ACLS, None, _objects(entries)),
        BODY_BYTES // 7,
        400,
        401,
    ),
    "api-passwords": HttpAttack(
        "strangers send wrong passwords over HTTP on 100 connections",
        lambda _: _call("GET", "/security/1.0/authenticate", "alice", password="wrong"),
        0,
        100,
        401,
        is_closed=True,
    ),
    "api-tokens": HttpAttack(
        "a user asks for tokens over HTTP on 400 connections",
        lambda _: _call("GET", "/security/1.0/authenticate", "alice"),
        0,
        400,
        200,
    ),
    "api-registry": HttpAttack(
        f"an admin lists {CLUSTERS:,} registered clusters over HTTP on 20 connections",
        lambda _: _call("GET", _REGISTRY, "admin"),
        CLUSTERS,
        20,
        200,
        before=_registrations,
    ),
    "api-search": HttpAttack(
        "an admin searches all of 200,000 ACLs over HTTP on 20 connections",
        lambda _: _call("POST", _SEARCH, "admin", _everything()),
        0,
        20,
        200,
    ),
}
"""The calls by their short names."""
