"""One request through the gate and the standalone handlers, for the tests of single rules."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Mapping
from typing import Any

from aclbroker.acl.authorizer import RequestContext, Session
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.need import Profile
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages import APIS
from tests.gate.rights import Rights, handled, services

AUDIT = Audit(load(), "cluster", configure(stream=io.StringIO()))

Allowed = Mapping[str, set[str]]


def allowing(allowed: Mapping[tuple[AclOperation, ResourceType], set[str]]) -> Rights:
    """Allow the operations on resources of a type that have the names given, and nothing else."""

    def rights(operation: AclOperation, kind: ResourceType, name: str | None) -> bool:
        return name in allowed.get((operation, kind), ())

    return rights


async def ask(
    key: int,
    version: int,
    request: Any,
    rights: Rights,
    catalog: Catalog,
    *,
    profile: Profile = Profile.KAFKA,
    session: Session | None = None,
) -> Any:
    """Return the answer to a request as its client decodes it."""
    parts = dataclasses.replace(services(rights, catalog, AUDIT), profile=profile)
    session = session or Session(("User:alice",), "127.0.0.1", "SASL_PLAINTEXT", "SASL_PLAINTEXT")
    asked = parts.rights(GATE[key], RequestContext(session, key, version, "test", 1))
    arrived = decode(APIS[key].request, version, encode(request, version))
    verdict = check(arrived, asked, catalog)
    response = verdict.response
    if verdict.request is not None:
        response = await handled(parts, asked, verdict.request)
        response = verdict.complete(response)
    return decode(APIS[key].response, version, encode(response, version))
