"""A client of the HTTP API, and brokers that serve it."""

from __future__ import annotations

import base64
import http.client
import json
import ssl
from typing import Any, NamedTuple

from tests.support.accounts import PASSWORDS
from tests.support.broker import Broker

URL = "http://127.0.0.1:0"
TIMEOUT_SECONDS = 20

MDS = {"confluent.metadata.server.listeners": URL}
"""What makes a broker serve the API."""

JSON = "application/json"
ACLS = "/security/1.0/acls"
SEARCH = "/security/1.0/acls:search"


def held(*cluster_ids: str, **settings: str) -> dict[str, str]:
    """The settings of further clusters, in memory, whose super user is admin."""
    found = {}
    for each in cluster_ids:
        found[f"aclbroker.clusters.{each}.store"] = "memory:"
        found[f"aclbroker.clusters.{each}.super.users"] = "User:admin"
    return found | settings


class Answer(NamedTuple):
    """What was answered: the status, the header's fields, and the body."""

    status: int
    header: http.client.HTTPMessage
    text: str

    @property
    def value(self) -> Any:
        """The body as JSON."""
        return json.loads(self.text)


def basic(user: str, password: str) -> str:
    """The header Authorization of a user."""
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()


class Api:
    """The API of a broker. ``user`` is who calls, by name and password; with a token after `login`.

    Every call has a connection of its own.
    """

    def __init__(
        self, broker: Broker, user: str | None = "admin", tls: ssl.SSLContext | None = None
    ) -> None:
        self.cluster_id = broker_cluster_id(broker)
        self.address = api_address(broker)
        self._tls = tls
        self.authorization = None if user is None else basic(user, PASSWORDS[user])

    def login(self) -> Api:
        """Call with a token from now on."""
        answer = self.call("GET", "/security/1.0/authenticate")
        assert answer.status == 200, answer
        self.authorization = "Bearer " + answer.value["auth_token"]
        return self

    def call(
        self, method: str, path: str, body: Any = None, header: dict[str, str] | None = None
    ) -> Answer:
        """Call with a body, which is sent as JSON unless it is a text."""
        fields = {} if self.authorization is None else {"Authorization": self.authorization}
        if body is not None:
            fields["Content-Type"] = JSON
        text = body if body is None or isinstance(body, str) else json.dumps(body)
        connection = self.connection()
        try:
            data = None if text is None else text.encode()
            connection.request(method, path, data, fields | (header or {}))
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read().decode())
        finally:
            connection.close()

    def connection(self) -> http.client.HTTPConnection:
        """A new connection."""
        if self._tls is None:
            return http.client.HTTPConnection(self.address, timeout=TIMEOUT_SECONDS)
        return http.client.HTTPSConnection(self.address, timeout=TIMEOUT_SECONDS, context=self._tls)

    def create(self, acl: str, cluster_id: str | None = None) -> Answer:
        """Create an ACL, written as `binding` takes it."""
        return self.call("POST", ACLS, {**self._scope(cluster_id), "aclBinding": binding(acl)})

    def search(self, cluster_id: str | None = None, **fields: str) -> list[str]:
        """The ACLs that a filter selects, as `binding` takes them, sorted."""
        answer = self.call("POST", SEARCH, self.filter(cluster_id, **fields))
        assert answer.status == 200, answer
        return sorted(map(shown, answer.value))

    def delete(self, cluster_id: str | None = None, **fields: str) -> list[str]:
        """Delete the ACLs that a filter selects; return them as `search` does."""
        answer = self.call("DELETE", ACLS, self.filter(cluster_id, **fields))
        assert answer.status == 200, answer
        return sorted(map(shown, answer.value))

    def filter(self, cluster_id: str | None = None, **fields: str) -> dict[str, Any]:
        """An AclFilterRequest: of all ACLs but for the fields that are given."""
        pattern = {"resourceType": "ANY", "patternType": "ANY"}
        entry = {"operation": "ANY", "permissionType": "ANY"}
        for name, value in fields.items():
            of_pattern = name in ("resourceType", "name", "patternType")
            (pattern if of_pattern else entry)[name] = value
        both = {"patternFilter": pattern, "entryFilter": entry}
        return {**self._scope(cluster_id), "aclBindingFilter": both}

    def _scope(self, cluster_id: str | None) -> dict[str, Any]:
        return {"scope": {"clusters": {"kafka-cluster": cluster_id or self.cluster_id}}}


def binding(text: str) -> dict[str, Any]:
    """An AclBinding of `ALLOW User:alice READ TOPIC:LITERAL:orders from *`."""
    permission, principal, operation, pattern, _, host = text.split(" ")
    resource_type, pattern_type, name = pattern.split(":", 2)
    return {
        "pattern": {"resourceType": resource_type, "name": name, "patternType": pattern_type},
        "entry": {
            "principal": principal,
            "host": host,
            "operation": operation,
            "permissionType": permission,
        },
    }


def shown(acl: dict[str, Any]) -> str:
    """The text of which `binding` makes an ACL."""
    pattern, entry = acl["pattern"], acl["entry"]
    resource = f"{pattern['resourceType']}:{pattern['patternType']}:{pattern['name']}"
    what = f"{entry['permissionType']} {entry['principal']} {entry['operation']} {resource}"
    return f"{what} from {entry['host']}"


def api_address(broker: Broker) -> str:
    """Where the API is served."""
    [found] = [address for name, address in broker.listeners.items() if "://" in name]
    return found


def broker_cluster_id(broker: Broker) -> str:
    """The id of the broker's own cluster."""
    [found] = [each["cluster_id"] for each in broker.events() if each.get("event") == "ready"]
    return str(found)
