"""A cluster's ACLs in a server of Confluent's MDS API: ``mds+https://HOST:PORT/CLUSTER_ID``.

The API has a call for each ACL, and not all types and operations of Kafka's.
"""

from __future__ import annotations

import http.client
import json
import re
import ssl
from base64 import b64encode
from collections.abc import Collection, Mapping
from http import HTTPStatus
from typing import Any, Final, NamedTuple
from urllib.parse import unquote

from aclbroker.acl.bindings import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
)
from aclbroker.acl.hosts import matches_nobody
from aclbroker.broker.client.errors import ClientConfigError
from aclbroker.broker.client.settings import ClientSettings, read_settings
from aclbroker.broker.http_api.messages import OPERATIONS, RESOURCE_TYPES
from aclbroker.cli.migrate.places.place import Contents, Place, PlaceError

_URL: Final = re.compile(
    r"mds\+(?P<scheme>https?)://(?P<host>[\w.-]+|\[[0-9a-fA-F:.]+\]):(?P<port>[0-9]{1,5})"
    r"/(?P<cluster>[^/?#\s]+)/?",
    re.ASCII,
)
_ACLS: Final = "/security/1.0/acls"
_SEARCH: Final = "/security/1.0/acls:search"
_LOGIN: Final = "/security/1.0/authenticate"
_ANY: Final = {
    "patternFilter": {"resourceType": "ANY", "patternType": "ANY"},
    "entryFilter": {"operation": "ANY", "permissionType": "ANY"},
}
_SHOWN: Final = 300


class _Answer(NamedTuple):
    status: int
    body: bytes

    @property
    def message(self) -> str:
        """What the server says is wrong."""
        try:
            return str(json.loads(self.body)["message"])
        except (ValueError, TypeError, KeyError):
            return self.body.decode(errors="replace")[:_SHOWN] or http.client.responses[self.status]


class MdsPlace(Place):
    """One cluster of a server, as the user of the settings; its ACLs are asked for one by one."""

    def __init__(self, url: str, config: str | None = None) -> None:
        super().__init__(url)
        match = _URL.fullmatch(url)
        if match is None:
            raise PlaceError(
                "mds+https: expected mds+https://HOST:PORT/CLUSTER_ID, without a login"
            )
        self._host, self._port = match["host"].strip("[]"), int(match["port"])
        self._is_secure = match["scheme"] == "https"
        self._scope = {"clusters": {"kafka-cluster": unquote(match["cluster"])}}
        try:
            self._settings = read_settings(config)
            self._tls = self._context()
        except ClientConfigError as error:
            raise PlaceError("\n".join(error.problems)) from error
        if self._tls is None and self._settings.protocol.endswith("SSL"):
            raise PlaceError(
                f"{url}: security.protocol={self._settings.protocol} asks for TLS, without which "
                "the password would be sent in the clear; write mds+https://"
            )
        self._login = _login(self._settings)
        self._token = ""
        self._connection: http.client.HTTPConnection | None = None

    def read(self, *, may_be_new: bool = False) -> Contents:
        """Return what the server finds without a filter."""
        answer = self._call("POST", _SEARCH, {"aclBindingFilter": _ANY}, "listed", "DESCRIBE")
        try:
            return Contents(list(dict.fromkeys(map(_binding, json.loads(answer.body)))))
        except (ValueError, TypeError, KeyError) as error:
            raise PlaceError(f"{self.url}: it answers with what is no list of ACLs") from error

    def refusal(self, acl: AclBinding) -> str | None:
        """Tell why the API has no such ACL."""
        if acl.resource_type not in RESOURCE_TYPES:
            return f"MDS has no ACLs of {acl.resource_type.name}"
        if acl.operation not in OPERATIONS:
            return f"MDS has no operation {acl.operation.name}"
        kind, colon, _ = acl.principal.partition(":")
        if not kind or not colon:
            return "MDS has principals of the form Type:name only"
        if matches_nobody(acl.host):
            return "MDS has no ACLs for a host that no client can have"
        return super().refusal(acl)

    def write(
        self, added: Collection[AclBinding], removed: Collection[AclBinding]
    ) -> Mapping[AclBinding, str]:
        """Create ACLs, and then delete others."""
        refused: dict[AclBinding, str] = {}
        for acl in added:
            pattern, entry = _parts(acl)
            binding = {"aclBinding": {"pattern": pattern, "entry": entry}}
            answer = self._call("POST", _ACLS, binding, "created", "ALTER", takes_refusal=True)
            if answer.status == HTTPStatus.BAD_REQUEST:
                refused[acl] = answer.message
        for acl in removed:
            pattern, entry = _parts(acl)
            one = {"aclBindingFilter": {"patternFilter": pattern, "entryFilter": entry}}
            self._call("DELETE", _ACLS, one, "deleted", "ALTER")
        return refused

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _context(self) -> ssl.SSLContext | None:
        if not self._is_secure:
            return None
        from aclbroker.broker.client.tls import client_context

        return client_context(self._settings.values)

    def _call(
        self,
        method: str,
        path: str,
        what: dict[str, Any],
        doing: str,
        right: str,
        *,
        takes_refusal: bool = False,
    ) -> _Answer:
        """Make a call about the cluster; with a new login where the last one is over.

        With ``takes_refusal`` the answer may be that the request is bad.
        """
        body = {"scope": self._scope} | what
        answer = self._asked(method, path, body)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            self._token = ""
            answer = self._asked(method, path, body)
        is_refusal = takes_refusal and answer.status == HTTPStatus.BAD_REQUEST
        if answer.status in (HTTPStatus.OK, HTTPStatus.NO_CONTENT) or is_refusal:
            return answer
        told = f"its ACLs cannot be {doing}: {answer.status}: {answer.message}"
        if answer.status == HTTPStatus.FORBIDDEN:
            told += f" (It needs {right} on the cluster.)"
        raise PlaceError(f"{self.url}: {told}")

    def _asked(self, method: str, path: str, body: dict[str, Any]) -> _Answer:
        if not self._token:
            self._log_in()
        headers = {
            "Authorization": f"Bearer {self._token}",
            "Accept": "application/json",
            "Content-Type": "application/json",
        }
        return self._sent(method, path, json.dumps(body), headers)

    def _log_in(self) -> None:
        answer = self._sent("GET", _LOGIN, None, {"Authorization": f"Basic {self._login}"})
        try:
            if answer.status == HTTPStatus.OK:
                self._token = str(json.loads(answer.body)["auth_token"])
                return
        except (ValueError, TypeError, KeyError):
            pass
        raise PlaceError(f"{self.url}: the login failed: {answer.status}: {answer.message}")

    def _sent(
        self, method: str, path: str, body: str | None, headers: Mapping[str, str]
    ) -> _Answer:
        """Send a request; again if a connection that was used before is not there any more."""
        for is_last in (self._connection is None, True):
            try:
                if self._connection is None:
                    self._connection = self._connect()
                self._connection.request(method, path, body, dict(headers))
                answer = self._connection.getresponse()
                return _Answer(answer.status, answer.read())
            except (OSError, http.client.HTTPException) as error:
                self.close()
                # What took too long may be done all the same, and is not sent twice.
                if is_last or isinstance(error, TimeoutError):
                    reason = str(error) or type(error).__name__
                    raise PlaceError(f"{self.url}: it cannot be reached: {reason}") from error
        raise AssertionError("the second attempt was the last")

    def _connect(self) -> http.client.HTTPConnection:
        timeout = self._settings.request_timeout
        if self._tls is None:
            return http.client.HTTPConnection(self._host, self._port, timeout=timeout)
        return http.client.HTTPSConnection(
            self._host, self._port, timeout=timeout, context=self._tls
        )


def _login(settings: ClientSettings) -> str:
    options = settings.jaas.options if settings.jaas else {}
    user, password = options.get("username"), options.get("password")
    if user is None or password is None:
        raise PlaceError(
            "mds+https: a login is needed: username and password of sasl.jaas.config, with "
            "security.protocol=SASL_SSL, in --command-config FILE"
        )
    return b64encode(f"{user}:{password}".encode()).decode()


def _parts(acl: AclBinding) -> tuple[dict[str, str], dict[str, str]]:
    resource_type, name, pattern_type, principal, host, operation, permission = acl
    return (
        {"resourceType": resource_type.name, "name": name, "patternType": pattern_type.name},
        {
            "principal": principal,
            "host": host,
            "operation": operation.name,
            "permissionType": permission.name,
        },
    )


def _binding(found: Any) -> AclBinding:
    pattern, entry = found["pattern"], found["entry"]
    return AclBinding(
        ResourceType[pattern["resourceType"]],
        str(pattern["name"]),
        PatternType[pattern["patternType"]],
        str(entry["principal"]),
        str(entry["host"]),
        AclOperation[entry["operation"]],
        AclPermission[entry["permissionType"]],
    )
