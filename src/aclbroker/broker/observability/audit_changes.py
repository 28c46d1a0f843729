"""Records of changes: who created or removed which ACL, SCRAM credential or delegation token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from aclbroker.acl.authorizer import RequestContext
from aclbroker.acl.bindings import AclBinding, AclFilter
from aclbroker.broker.observability.audit_forms import acl_json, acl_keys, api_name, limited
from aclbroker.broker.observability.audit_record import MOST_OF_PRINCIPAL
from aclbroker.broker.observability.logs import json_line


class Change(NamedTuple):
    """One change that was made or asked for, and how it ended; it holds no secret.

    ``action`` is a word of docs/audit.md. ``subject`` has one key, such as ``acl``, with what was
    to be changed. ``error`` is the name of Kafka's error code: NONE if the change was made.
    """

    action: str
    subject: Mapping[str, AclBinding | AclFilter | Mapping[str, Any]]
    error: str = "NONE"
    error_message: str | None = None


def asked_by(context: RequestContext) -> dict[str, Any]:
    """Return the keys that say who asks for a change, from where and by which request."""
    session = context.session
    keys: dict[str, Any] = {
        "listener": session.listener,
        "principal": session.principals[0],
        "host": session.host,
        "api_name": api_name(context.api_key),
        "api_version": context.api_version,
        "client_id": context.client_id,
        "correlation_id": context.correlation_id,
    }
    if len(session.principals) > 1:
        keys["principals"] = [each[:MOST_OF_PRINCIPAL] for each in session.principals]
    return limited(keys)


def is_short(keys: Mapping[str, Any]) -> bool:
    """Return whether no text of an event had to be shortened."""
    return "shortened" not in keys


def event_of(asked: Mapping[str, Any], change: Change) -> dict[str, Any]:
    """Return an event with the keys of ``asked`` and those that say what is changed, and how."""
    ended = limited({"error": change.error, "error_message": change.error_message})
    lengths = asked.get("shortened", {}) | ended.pop("shortened", {})
    subject = {name: _subject(value) for name, value in change.subject.items()}
    found = {**asked, "action": change.action, **subject, **ended}
    return found | {"shortened": lengths} if lengths else found


def own_json(change: Change) -> str:
    """Return what `event_of` adds to the keys of `asked_by`: an object of JSON without its braces.

    It is "" if a text has to be shortened, since what is said of that stands beside the request's.
    """
    [(kind, subject)] = change.subject.items()
    acl = acl_json(subject) if isinstance(subject, AclBinding) else ""
    if not acl or change.error_message is not None:
        event = event_of({}, change)
        return json_line(event)[1:-1] if is_short(event) else ""
    # There may be a hundred thousand in one request: nearly all have this form.
    ended = f'"error":"{change.error}","error_message":null'
    return f'"action":"{change.action}","{kind}":{acl},{ended}'


def _subject(value: AclBinding | AclFilter | Mapping[str, Any]) -> dict[str, Any]:
    return acl_keys(value) if isinstance(value, (AclBinding, AclFilter)) else limited(value)
