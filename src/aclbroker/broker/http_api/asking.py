"""What PUT /security/1.0/authorize says: who may do what; pure."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.http_api.errors import bad_request, shown
from aclbroker.broker.http_api.reading import Fields, cluster_of, wrong
from aclbroker.turns import in_turns

MOST_ACTIONS: Final = 1_000

_ACTION: Final = ("scope", "resourceName", "resourceType", "operation")


class Asked(NamedTuple):
    """One action: whether it is allowed is asked."""

    cluster_id: str
    operation: AclOperation
    resource_type: ResourceType
    resource_name: str


class AuthorizeRequest(NamedTuple):
    """Whether a principal may do some things."""

    principal: str
    actions: list[Asked]


def authorize_request_of(body: Any) -> AuthorizeRequest:
    """Return what an AuthorizeRequest asks; raises `ApiError`."""
    request = Fields("", body, ("userPrincipal", "actions"))
    principal = request.text("userPrincipal")
    if not all(principal.partition(":")):
        raise request.wrong("userPrincipal", f"is {shown(principal)}, and not Type:name")
    actions = request.items("actions")
    if len(actions) > MOST_ACTIONS:
        raise bad_request(f"actions has {len(actions)} entries; at most {MOST_ACTIONS} may be.")
    return AuthorizeRequest(
        principal, [_asked(f"actions[{at}]", action) for at, action in enumerate(in_turns(actions))]
    )


def _asked(place: str, action: Any) -> Asked:
    fields = Fields(place, action, _ACTION)
    return Asked(
        cluster_of(fields.part("scope", ("clusters",))),
        _named(fields, "operation", _OPERATIONS),
        _named(fields, "resourceType", _RESOURCE_TYPES),
        fields.text("resourceName"),
    )


def _words(text: str) -> str:
    return text.replace("_", "").replace("-", "").lower()


# MDS writes them as classes are named, and others as Kafka's enums.
_OPERATIONS: Final = {_words(each.name): each for each in AclOperation if each > AclOperation.ALL}
_RESOURCE_TYPES: Final = {
    _words(each.name): each for each in ResourceType if each > ResourceType.ANY
}


def _named(fields: Fields, name: str, known: dict[str, Any]) -> Any:
    text = fields.text(name)
    found = known.get(_words(text))
    if found is None:
        names = ", ".join(each.name for each in known.values())
        raise wrong(f"{fields.place}.{name}", f"is {shown(text)}; allowed are {names}")
    return found
