"""The description of the API at /openapi.json (OpenAPI 3.0)."""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import cache
from typing import Any, Final

from aclbroker.acl.bindings import AclOperation, AclPermission, PatternType, ResourceType
from aclbroker.broker.http_api.asking import MOST_ACTIONS
from aclbroker.broker.http_api.messages import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
)

Schema = dict[str, Any]

_TEXT: Final[Schema] = {"type": "string"}
_SECURITY: Final = "/security/1.0"
_REGISTRY: Final = f"{_SECURITY}/registry/clusters"
_EITHER: Final[list[Schema]] = [{"password": []}, {"token": []}]


@cache
def document() -> Schema:
    """Return the description."""
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "aclbroker: centralised ACLs",
            "version": "1.0",
            "description": "The calls about ACLs of Confluent's Metadata Service (MDS).",
        },
        "paths": _paths(),
        "components": {
            "schemas": _schemas(),
            "securitySchemes": {
                "password": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"},
            },
        },
    }


def _paths() -> Schema:
    acl, bindings = "AclFilterRequest", _list("AclBinding")
    name = _parameter("clusterName")
    return {
        f"{_SECURITY}/authenticate": {
            "get": _call("Log in with a password; get a token", answer=_ref("Token"))
            | {"security": [{"password": []}]}
        },
        f"{_SECURITY}/features": {
            "get": _call("Tell how to log in", answer={"type": "object"}) | {"security": []}
        },
        f"{_SECURITY}/acls": {
            "post": _call("Create an ACL: needs ALTER on the cluster", "CreateAclRequest"),
            "delete": _call("Delete ACLs: needs ALTER on the cluster", acl, bindings),
        },
        f"{_SECURITY}/acls:search": {
            "post": _call("List ACLs: needs DESCRIBE on the cluster", acl, bindings)
        },
        f"{_SECURITY}/authorize": {
            "put": _call(
                "Ask what somebody may do: about others needs DESCRIBE on the cluster",
                "AuthorizeRequest",
                {"type": "array", "items": {"type": "string", "enum": ["ALLOWED", "DENIED"]}},
            )
        },
        f"{_SECURITY}/metadataClusterId": {
            "get": _call("Tell the id of the server's own cluster, without quotes", answer=_TEXT)
        },
        f"{_SECURITY}/activenodes/{{protocol}}": {
            "get": _call("Tell where the API is served", answer={"type": "array", "items": _TEXT}),
            "parameters": [_parameter("protocol", {"type": "string", "enum": ["http", "https"]})],
        },
        "/v1/metadata/id": {
            "get": _call("Tell the id of the server's own cluster", answer={"type": "object"})
            | {"security": []}
        },
        _REGISTRY: {
            "get": _call("List the clusters that have names", answer=_list("ClusterInfo")),
            "post": _call("Give clusters names", body=_list("ClusterInfo")),
        },
        f"{_REGISTRY}/{{clusterName}}": {
            "get": _call("Look a cluster up by its name", answer=_ref("ClusterInfo")),
            "delete": _call("Take a cluster its name"),
            "parameters": [name],
        },
    }


def _call(summary: str, body: str | Schema | None = None, answer: Schema | None = None) -> Schema:
    """Return a call: what it takes and answers; without an answer it has status 204."""
    done: Schema = {"204": {"description": "Done."}}
    if answer is not None:
        done = {"200": {"description": "Done.", "content": _content(answer)}}
    failed = {"default": {"description": "Refused.", "content": _content(_ref("Error"))}}
    found: Schema = {"summary": summary, "responses": done | failed, "security": _EITHER}
    if body is not None:
        schema = _ref(body) if isinstance(body, str) else body
        found["requestBody"] = {"required": True, "content": _content(schema)}
    return found


def _schemas() -> Schema:
    scope = _object(clusters=_object(**{"kafka-cluster": _TEXT}))
    return {
        "Token": _object(auth_token=_TEXT, token_type=_TEXT, expires_in={"type": "integer"}),
        "AclBinding": _object(
            pattern=_object(
                resourceType=_enum(RESOURCE_TYPES), name=_TEXT, patternType=_enum(PATTERN_TYPES)
            ),
            entry=_object(
                principal={"type": "string", "pattern": "^[^:]+:", "example": "User:alice"},
                host=_TEXT | {"minLength": 1},
                operation=_enum(OPERATIONS),
                permissionType=_enum(PERMISSIONS),
            ),
        ),
        "CreateAclRequest": _object(scope=scope, aclBinding=_ref("AclBinding")),
        "AclFilterRequest": _object(scope=scope, aclBindingFilter=_filter()),
        "AuthorizeRequest": _object(
            userPrincipal=_TEXT,
            actions={
                "type": "array",
                "maxItems": MOST_ACTIONS,
                "items": _object(
                    scope=scope, resourceName=_TEXT, resourceType=_TEXT, operation=_TEXT
                ),
            },
        ),
        "ClusterInfo": _object(
            ["protocol"],
            clusterName=_TEXT,
            scope={"type": "object"},
            hosts={"type": "array", "items": _object(host=_TEXT, port={"type": "integer"})},
            protocol=_TEXT,
        ),
        "Error": _object(
            ["errors"],
            status_code={"type": "integer"},
            error_code={"type": "integer"},
            type=_TEXT,
            message=_TEXT,
            errors={"type": "array", "items": _object(error_type=_TEXT, message=_TEXT)},
        ),
    }


def _filter() -> Schema:
    any_type, any_pattern = ResourceType.ANY, (PatternType.ANY, PatternType.MATCH)
    return _object(
        patternFilter=_object(
            ["name"],
            resourceType=_enum((any_type, *RESOURCE_TYPES)),
            name=_TEXT,
            patternType=_enum((*any_pattern, *PATTERN_TYPES)),
        ),
        entryFilter=_object(
            ["principal", "host"],
            principal=_TEXT,
            host=_TEXT,
            operation=_enum((AclOperation.ANY, *OPERATIONS)),
            permissionType=_enum((AclPermission.ANY, *PERMISSIONS)),
        ),
    )


def _object(optional: Iterable[str] = (), /, **fields: Schema) -> Schema:
    return {
        "type": "object",
        "required": [name for name in fields if name not in optional],
        "properties": fields,
        "additionalProperties": False,
    }


def _enum(members: Iterable[IntEnum]) -> Schema:
    return {"type": "string", "enum": [each.name for each in members]}


def _ref(name: str) -> Schema:
    return {"$ref": f"#/components/schemas/{name}"}


def _list(name: str) -> Schema:
    return {"type": "array", "items": _ref(name)}


def _content(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _parameter(name: str, schema: Schema = _TEXT) -> Schema:
    return {"name": name, "in": "path", "required": True, "schema": schema}
