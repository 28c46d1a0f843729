"""How a Fetch is checked that continues a session (KIP-227), and so does not name all it asks for.

The handler asks for the rights on the partitions of the session that the request does not name.
"""

from __future__ import annotations

from typing import Any, Final

from aclbroker.broker.gate.conditions import FULL_FETCH, is_follower
from aclbroker.broker.gate.echo import without
from aclbroker.broker.gate.engine import Verdict, check_needs
from aclbroker.broker.gate.rights import RequestRights
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.protocol.messages.fetch import FetchResponse
from aclbroker.turns import in_turns

_TOPICS: Final = "topics"


def check_fetch(request: Any, rights: RequestRights, topics: Topics) -> Verdict:
    """Check a Fetch. One that continues a session is passed on even if all it names is refused."""
    verdict = check_needs(request, rights, topics)
    if request.session_epoch in FULL_FETCH or is_follower(request):
        return verdict
    if verdict.request is None:
        refusals = verdict.response.responses
        request = without(request, _TOPICS, range(len(request.topics)))
    else:
        refusals = verdict.complete(FetchResponse()).responses
        request = verdict.request

    def with_refusals(response: Any) -> Any:
        if not response.error_code and refusals:
            response.responses = [*in_turns(response.responses), *in_turns(refusals)]
        return response

    return Verdict(request, None, with_refusals)
