"""What MDS's calls about ACLs say, to and from bindings and filters; pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import (
    AclBinding,
    AclFilter,
    AclOperation,
    AclPermission,
    PatternType,
    ResourceType,
    invalid_reason,
)
from aclbroker.broker.http_api.errors import bad_request, shown
from aclbroker.broker.http_api.reading import Fields, cluster_of
from aclbroker.turns import pause

RESOURCE_TYPES: Final = (
    ResourceType.TOPIC,
    ResourceType.GROUP,
    ResourceType.CLUSTER,
    ResourceType.TRANSACTIONAL_ID,
)
"""The types of resources that MDS has; Kafka has others, which its own clients manage."""

OPERATIONS: Final = tuple(
    each for each in AclOperation if AclOperation.ANY < each <= AclOperation.IDEMPOTENT_WRITE
)
"""The operations that MDS has."""

PATTERN_TYPES: Final = (PatternType.LITERAL, PatternType.PREFIXED)
PERMISSIONS: Final = (AclPermission.ALLOW, AclPermission.DENY)

_NOTE: Final = "; others of Kafka's are managed by Kafka's own clients"

_PATTERN: Final = ("resourceType", "name", "patternType")
_ENTRY: Final = ("principal", "host", "operation", "permissionType")
_CHUNK: Final = 65_536
_BETWEEN_PAUSES: Final = 16


class Creation(NamedTuple):
    """An ACL to be created, and in which cluster."""

    cluster_id: str
    binding: AclBinding


class Selection(NamedTuple):
    """Which ACLs are meant, and of which cluster."""

    cluster_id: str
    acl_filter: AclFilter


def creation_of(body: Any) -> Creation:
    """Return what a CreateAclRequest asks for; raises `ApiError`."""
    request = Fields("", body, ("scope", "aclBinding"))
    cluster_id = cluster_of(request.part("scope", ("clusters",)))
    binding = request.part("aclBinding", ("pattern", "entry"))
    pattern = binding.part("pattern", _PATTERN)
    entry = binding.part("entry", _ENTRY)
    found = AclBinding(
        pattern.member("resourceType", RESOURCE_TYPES, _NOTE),
        pattern.text("name"),
        pattern.member("patternType", PATTERN_TYPES),
        entry.text("principal"),
        entry.text("host"),
        entry.member("operation", OPERATIONS, _NOTE),
        entry.member("permissionType", PERMISSIONS),
    )
    reason = invalid_reason(found)
    if reason is not None:
        raise bad_request(reason, ("invalid", reason))
    kind, colon, _ = found.principal.partition(":")
    if not colon or not kind:
        raise entry.wrong("principal", f"is {shown(found.principal)}, and not Type:name")
    if not found.host:
        raise entry.wrong("host", "is empty, which no client's address is; all hosts are *")
    return Creation(cluster_id, found)


def selection_of(body: Any) -> Selection:
    """Return what an AclFilterRequest asks for; raises `ApiError`."""
    request = Fields("", body, ("scope", "aclBindingFilter"))
    cluster_id = cluster_of(request.part("scope", ("clusters",)))
    both = request.part("aclBindingFilter", ("patternFilter", "entryFilter"))
    pattern = both.part("patternFilter", _PATTERN)
    entry = both.part("entryFilter", _ENTRY)
    return Selection(
        cluster_id,
        AclFilter(
            pattern.member("resourceType", (ResourceType.ANY, *RESOURCE_TYPES), _NOTE),
            pattern.optional_text("name"),
            pattern.member("patternType", (PatternType.ANY, PatternType.MATCH, *PATTERN_TYPES)),
            entry.optional_text("principal"),
            entry.optional_text("host"),
            entry.member("operation", (AclOperation.ANY, *OPERATIONS), _NOTE),
            entry.member("permissionType", (AclPermission.ANY, *PERMISSIONS)),
        ),
    )


def bindings_json(bindings: Iterable[AclBinding]) -> Iterator[bytes]:
    """Return a list of bindings as JSON, in chunks of some 64 KiB."""
    return list_json(map(_binding_json, bindings))


def list_json(items: Iterable[str]) -> Iterator[bytes]:
    """Return the JSON list of JSON items, in chunks of about 64 KiB, with pauses."""
    parts: list[str] = []
    size = 0
    separator = "["
    for number, item in enumerate(items):
        if number % _BETWEEN_PAUSES == 0:
            pause()
        part = separator + item
        separator = ","
        parts.append(part)
        size += len(part)
        if size >= _CHUNK:
            yield "".join(parts).encode()
            parts, size = [], 0
    parts.append("]" if separator == "," else "[]")
    yield "".join(parts).encode()


def _binding_json(binding: AclBinding) -> str:
    resource_type, name, pattern_type, principal, host, operation, permission = binding
    return (
        f'{{"pattern":{{"resourceType":"{resource_type.name}","name":{_text(name)},'
        f'"patternType":"{pattern_type.name}"}},"entry":{{"principal":{_text(principal)},'
        f'"host":{_text(host)},"operation":"{operation.name}",'
        f'"permissionType":"{permission.name}"}}}}'
    )


_text: Final = json.encoder.encode_basestring_ascii
