"""Asks the authorizers what somebody may do (PUT /security/1.0/authorize)."""

from __future__ import annotations

from typing import Final

from aclbroker.acl.authorizer import Session
from aclbroker.acl.bindings import ResourceType
from aclbroker.broker.http_api.asking import AuthorizeRequest
from aclbroker.broker.http_api.calls import Caller, require_describe
from aclbroker.broker.http_api.clusters import Clusters
from aclbroker.protocol.messages import ApiKey
from aclbroker.turns import in_turns

_ALLOWED: Final = "ALLOWED"
_DENIED: Final = "DENIED"


async def decided(
    clusters: Clusters, caller: Caller, asked: AuthorizeRequest, principals: tuple[str, ...]
) -> list[str]:
    """Return what is decided on each action; ``principals`` are the asked one and its groups.

    Everybody may ask about oneself. To ask about others takes DESCRIBE on each cluster named, since
    who may read the ACLs can find out the same. It is decided for the caller's address. These
    answers are no decisions on a request, and so are not in the audit log. Raises `ApiError`.
    """
    own = caller.session
    is_own = asked.principal == own.principals[0]
    cluster_ids = dict.fromkeys(action.cluster_id for action in asked.actions)
    services = {each: clusters.of(each) for each in cluster_ids}
    if not is_own:
        for each in services.values():
            await require_describe(each, caller)
    session = own if is_own else Session(principals, own.host, own.listener, own.security_protocol)
    context = Caller(session, caller.client).context(ApiKey.DESCRIBE_ACLS)

    def work() -> list[str]:
        answers = []
        for action in in_turns(asked.actions):
            of_cluster = services[action.cluster_id]
            authorizer = of_cluster.authorizer
            is_reserved = (
                action.resource_type is ResourceType.TOPIC
                and action.resource_name in of_cluster.reserved_topics
            )
            is_allowed = not is_reserved and (
                authorizer is None
                or all(
                    authorizer.authorize(
                        context, action.operation, action.resource_type, [action.resource_name]
                    )
                )
            )
            answers.append(_ALLOWED if is_allowed else _DENIED)
        return answers

    return await caller.in_turns(clusters.own, ApiKey.DESCRIBE_ACLS, work)
