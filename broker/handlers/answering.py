"""The way of a decoded request: rights, gate, handler. Whoever asks comes this way."""

from __future__ import annotations

from collections.abc import Awaitable
from types import CoroutineType
from typing import Any

from aclbroker.broker.acl.authorizer import RequestContext
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.gate.engine import check, unchanged
from aclbroker.broker.gate.need import Row
from aclbroker.broker.gate.topics_known import Topics
from aclbroker.broker.handlers.services import Handler, Services
from aclbroker.broker.turns import wait


def answer_request(
    services: Services, row: Row, context: RequestContext, message: Any, answer: Handler
) -> Any:
    """Return the response to a request: what its row refuses, with what ``answer`` makes of the
    rest.

    It is the work of `Turns.run`, since it may wait.
    """
    rights = services.rights(row, context)
    topics = _known_topics(services, row, message) if row.resolves else services.catalog
    verdict = check(message, rights, topics)
    if verdict.request is None:
        return verdict.response
    rights.asked, rights.creatable = message, verdict.creatable
    rights.is_whole = verdict.complete is unchanged
    response = answer(services, rights, verdict.request)
    if isinstance(response, CoroutineType):
        response = wait(response)
    return verdict.complete(response)


def _known_topics(services: Services, row: Row, message: Any) -> Topics:
    topics = services.topics.known(row, message)
    # The catalog is asked for first: whether something is Awaitable takes Python code to tell.
    if not isinstance(topics, Catalog) and isinstance(topics, Awaitable):
        return wait(topics)
    return topics
