"""How requests are checked that continue a session, and so do not name all that they ask for.

These are Fetch (KIP-227) and the requests of share groups (KIP-932). The handler, in
`backends/memory`, asks for the rights on the partitions of the session that the request does not
name.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final

from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.gate.conditions import FULL_FETCH, is_follower
from aclbroker.broker.gate.echo import without
from aclbroker.broker.gate.engine import Verdict, check_needs
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.messages import APIS
from aclbroker.protocol.messages.fetch import FetchResponse
from aclbroker.protocol.messages.share_fetch import ShareFetchRequest
from aclbroker.turns import in_turns

_TOPICS: Final = "topics"

READ_TOPIC: Final = AclOperation.READ, ResourceType.TOPIC
"""The right on each topic of a session."""


def check_fetch(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check a Fetch. One that continues a session is passed on even if all it names is refused."""
    rights.checked_with = rights.basis(*READ_TOPIC)
    verdict = check_needs(request, rights, topics)
    if request.session_epoch in FULL_FETCH or is_follower(request):
        return verdict
    if verdict.request is None:
        refusals = verdict.response.responses
        request = without(request, _TOPICS, range(len(request.topics)))
    else:
        refusals = verdict.complete(FetchResponse()).responses
        request = verdict.request

    return _with_refusals(request, refusals)


def check_shared(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check a ShareFetch or a ShareAcknowledge, whose answer may have topics of the session."""
    rights.checked_with = rights.basis(*READ_TOPIC)
    verdict = check_needs(request, rights, topics)
    if verdict.request is None:
        _refuse_acknowledgements(request, verdict.response.responses)
        return verdict
    refusals = verdict.complete(APIS[rights.row.key].response()).responses
    _refuse_acknowledgements(request, refusals)
    return _with_refusals(verdict.request, refusals) if refusals else verdict


def _refuse_acknowledgements(request: Any, refusals: Collection[Any]) -> None:
    """Refuse the acknowledgements in a ShareFetch, which have codes of their own."""
    if not isinstance(request, ShareFetchRequest) or not refusals:
        return
    acknowledged = {
        (topic.topic_id, partition.partition_index)
        for topic in in_turns(request.topics)
        for partition in in_turns(topic.partitions)
        if partition.acknowledgement_batches
    }
    for topic in in_turns(refusals):
        for partition in in_turns(topic.partitions):
            if (topic.topic_id, partition.partition_index) in acknowledged:
                partition.acknowledge_error_code = partition.error_code


def _with_refusals(request: Any, refusals: Collection[Any]) -> Verdict:
    """Pass a request on, and add the refusals at the end of its answer."""

    def with_refusals(response: Any) -> Any:
        if not response.error_code and refusals:
            response.responses = [*in_turns(response.responses), *in_turns(refusals)]
        return response

    return Verdict(request, None, with_refusals)
