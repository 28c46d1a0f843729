"""Reads Strimzi's KafkaUsers, YAML or JSON: the ACLs that its user operator makes of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import yaml

from aclbroker.acl.bindings import CLUSTER_NAME, WILDCARD, AclBinding
from aclbroker.acl.files.policy import Policy, PolicyError
from aclbroker.acl.files.words import acl_of

_LOADER: Final = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
"""This loader makes only strings, lists and mappings, so no name becomes a number or a date."""

_CLUSTER: Final = "strimzi.io/cluster"
_PATTERNS: Final = {"literal": "LITERAL", "prefix": "PREFIXED"}
_PREFIXES: Final = {"tls": "CN=", "tls-external": "CN=", "scram-sha-512": "", "": ""}
"""The prefix of a user's name in the principal, by the type of authentication."""


def read_strimzi(text: str, source: str) -> Policy:
    """Return the ACLs of KafkaUsers. Raises PolicyError, which names the user."""
    try:
        documents = [each for each in yaml.load_all(text, Loader=_LOADER) if each]
    except yaml.YAMLError as error:
        raise PolicyError(f"{source}: {error}") from None
    users = [user for each in documents for user in _users(each)]
    acls: dict[AclBinding, None] = {}
    clusters = set()
    for user in users:
        name = _texts(user, "metadata").get("name")
        try:
            if not isinstance(name, str):
                raise ValueError("metadata.name must be a text")
            clusters.add(_text(_texts(user["metadata"], "labels"), _CLUSTER, ""))
            acls.update(dict.fromkeys(_acls(user, name)))
        except ValueError as error:
            raise PolicyError(f"{source}: KafkaUser {name}: {error}") from None
    if len(clusters) > 1:
        raise PolicyError(
            f"{source}: its KafkaUsers are of several clusters (label {_CLUSTER}); make a file of "
            "each cluster's"
        )
    return Policy(list(acls))


def _users(document: Any) -> list[Any]:
    if not isinstance(document, dict):
        return []
    if document.get("kind") == "KafkaUser":
        return [document]
    items = document.get("items")
    return [user for each in items for user in _users(each)] if isinstance(items, list) else []


def _texts(found: Any, key: str) -> dict[str, Any]:
    """Return the mapping of a key, empty without the key. Raises ValueError for another value."""
    value = found.get(key) or {}
    if not isinstance(value, dict):
        raise ValueError(f"{key} must be a mapping")
    return value


def _text(found: dict[str, Any], key: str, default: str) -> str:
    """Return the text of a key, or the default. Raises ValueError for another value."""
    value = found.get(key, default)
    if not isinstance(value, str):
        raise ValueError(f"{key} must be a text")
    return value


def _acls(user: dict[str, Any], name: str) -> Iterator[AclBinding]:
    spec = _texts(user, "spec")
    authentication = _text(_texts(spec, "authentication"), "type", "")
    if authentication not in _PREFIXES:
        raise ValueError(f"the authentication {authentication!r} is not known here")
    authorization = _texts(spec, "authorization")
    if not authorization:
        return
    if authorization.get("type") != "simple":
        raise ValueError("an authorization other than simple has no ACLs")
    rules = authorization.get("acls")
    if not isinstance(rules, list):
        raise ValueError("spec.authorization.acls must be a list")
    principal = f"User:{_PREFIXES[authentication]}{name}"
    for number, rule in enumerate(rules, start=1):
        try:
            yield from _rule(rule, principal)
        except ValueError as error:
            raise ValueError(f"rule {number}: {error}") from None


def _rule(rule: Any, principal: str) -> Iterator[AclBinding]:
    if not isinstance(rule, dict):
        raise ValueError("a rule must be a mapping")
    resource = _texts(rule, "resource")
    kind = resource.get("type", "")
    pattern = _text(resource, "patternType", "literal")
    if pattern not in _PATTERNS:
        raise ValueError(f"patternType must be literal or prefix; {pattern!r} is not")
    name = CLUSTER_NAME if kind == "cluster" else resource.get("name", "")
    # `operation` is from before Strimzi 0.33.
    operations = rule.get("operations", [rule["operation"]] if "operation" in rule else None)
    if not isinstance(operations, list) or not operations:
        raise ValueError("operations must be a list")
    for operation in operations:
        fields = {
            "resource_type": kind,
            "resource_name": name,
            "pattern_type": _PATTERNS[pattern],
            "principal": principal,
            "host": rule.get("host", WILDCARD),
            "operation": operation,
            "permission": rule.get("type", "allow"),
        }
        wrong = next((key for key, value in fields.items() if not isinstance(value, str)), None)
        if wrong is not None:
            raise ValueError(f"{wrong} must be a text")
        yield acl_of(fields)
