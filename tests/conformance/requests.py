"""Requests as data: an API key and field values, turned into bytes by independent codecs.

The bytes come from kio; for version 0 of the three ACL APIs, which kio lacks, from aiokafka.
"""

from __future__ import annotations

import dataclasses
from io import BytesIO
from typing import Any, NamedTuple, get_args

from aiokafka.protocol.admin import (
    CreateAclsRequest_v0,
    DeleteAclsRequest_v0,
    DescribeAclsRequest_v0,
)
from kio.index import load_request_schema
from kio.serial import entity_writer

METADATA, SASL_HANDSHAKE, API_VERSIONS, DESCRIBE_ACLS = 3, 17, 18, 29
CREATE_ACLS, DELETE_ACLS, SASL_AUTHENTICATE, DESCRIBE_CLUSTER = 30, 31, 36, 60

UNKNOWN, ANY = 0, 1
TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN, USER = range(2, 8)
MATCH, LITERAL, PREFIXED = range(2, 5)
ALL, READ, WRITE, CREATE, DELETE, ALTER, DESCRIBE, CLUSTER_ACTION = range(2, 10)
DESCRIBE_CONFIGS, ALTER_CONFIGS, IDEMPOTENT_WRITE = range(10, 13)
CREATE_TOKENS, DESCRIBE_TOKENS, TWO_PHASE_COMMIT = range(13, 16)
DENY, ALLOW = 2, 3
CLUSTER_NAME = "kafka-cluster"

OLDEST = {30: CreateAclsRequest_v0, 31: DeleteAclsRequest_v0, 29: DescribeAclsRequest_v0}


class Request(NamedTuple):
    """A request of one API key, for any of its versions."""

    key: int
    fields: dict[str, Any]
    """kio's field names to values; what a version does not have is left out."""
    raw: bytes | None = None
    """The body, where no codec would write it."""

    def body(self, version: int) -> bytes:
        """Return the request's bytes without its header."""
        if self.raw is not None:
            return self.raw
        if version == 0 and self.key in OLDEST:
            return self._oldest_body()
        cls = load_request_schema(self.key, version)
        buffer = BytesIO()
        entity_writer(cls)(buffer, _built(cls, self.fields))
        return buffer.getvalue()

    def _oldest_body(self) -> bytes:
        """Return the bytes of version 0, which has no pattern type."""

        def values(entry: dict[str, Any]) -> list[Any]:
            return [value for name, value in entry.items() if "pattern_type" not in name]

        item = [
            [values(entry) for entry in value] if isinstance(value, tuple) else value
            for value in values(self.fields)
        ]
        encoded: bytes = OLDEST[self.key].SCHEMA.encode(item)
        return encoded


def _built(cls: Any, values: dict[str, Any]) -> Any:
    """Return the kio object of a class whose fields, also nested ones, have these values."""
    taken = {}
    for field in dataclasses.fields(cls):
        if field.name in values:
            value = values[field.name]
            if isinstance(value, tuple) and value and isinstance(value[0], dict):
                entry = next(part for part in _parts(field.type) if dataclasses.is_dataclass(part))
                value = tuple(_built(entry, item) for item in value)
            taken[field.name] = value
    return cls(**taken)


def _parts(annotation: Any) -> list[Any]:
    """Return an annotation and all that it is made of."""
    return [annotation, *(part for inner in get_args(annotation) for part in _parts(inner))]


def acl(
    resource_type: int = TOPIC,
    name: str = "orders",
    pattern_type: int = LITERAL,
    principal: str = "User:carol",
    host: str = "*",
    operation: int = READ,
    permission: int = ALLOW,
) -> dict[str, Any]:
    """Return one creation."""
    return {
        "resource_type": resource_type,
        "resource_name": name,
        "resource_pattern_type": pattern_type,
        "principal": principal,
        "host": host,
        "operation": operation,
        "permission_type": permission,
    }


def matching(
    resource_type: int = ANY,
    name: str | None = None,
    pattern_type: int = ANY,
    principal: str | None = None,
    host: str | None = None,
    operation: int = ANY,
    permission: int = ANY,
) -> dict[str, Any]:
    """Return one filter; without arguments it matches every ACL."""
    return {
        "resource_type_filter": resource_type,
        "resource_name_filter": name,
        "pattern_type_filter": pattern_type,
        "principal_filter": principal,
        "host_filter": host,
        "operation": operation,
        "permission_type": permission,
    }


def create(*acls: dict[str, Any]) -> Request:
    """Return a CreateAcls request."""
    return Request(CREATE_ACLS, {"creations": acls})


def describe(**values: Any) -> Request:
    """Return a DescribeAcls request with the filter `matching(**values)`."""
    return Request(DESCRIBE_ACLS, matching(**values))


def delete(*filters: dict[str, Any]) -> Request:
    """Return a DeleteAcls request."""
    return Request(DELETE_ACLS, {"filters": filters})


def raw(key: int, body: bytes) -> Request:
    """Return a request with this body, whatever the version."""
    return Request(key, {}, body)


def metadata(topics: tuple[dict[str, Any], ...] | None = (), **values: Any) -> Request:
    """Return a Metadata request that creates no topics; ``topics`` None means all."""
    fields = {
        "topics": topics,
        "allow_auto_topic_creation": False,
        "include_cluster_authorized_operations": False,
        "include_topic_authorized_operations": False,
    }
    return Request(METADATA, fields | values)


def describe_cluster(endpoint_type: int = 1) -> Request:
    """Return a DescribeCluster of the brokers (1) or controllers (2), with the user's rights."""
    fields = {
        "include_cluster_authorized_operations": True,
        "endpoint_type": endpoint_type,
        "include_fenced_brokers": False,
    }
    return Request(DESCRIBE_CLUSTER, fields)


def login(token: bytes) -> Request:
    """Return a SaslAuthenticate request."""
    return Request(SASL_AUTHENTICATE, {"auth_bytes": token})


def handshake(mechanism: str = "PLAIN") -> Request:
    """Return a SaslHandshake request."""
    return Request(SASL_HANDSHAKE, {"mechanism": mechanism})
