"""Requests that name topics by their ids alone."""

from __future__ import annotations

import io

import pytest

from aclbroker.broker.catalog import Catalog
from aclbroker.broker.config import load
from aclbroker.broker.gate.engine import check
from aclbroker.broker.gate.table import GATE
from aclbroker.broker.observability.audit import Audit
from aclbroker.broker.observability.logs import configure
from aclbroker.protocol.errors import ErrorCode
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.primitives import ZERO_UUID
from tests.gate.requests import filled
from tests.gate.rights import Rights, context, everything, nothing, services


@pytest.mark.parametrize("topic_id", [ZERO_UUID, b"not a known id.."], ids=["none", "unknown"])
@pytest.mark.parametrize("key", [ApiKey.SHARE_FETCH, ApiKey.SHARE_ACKNOWLEDGE])
@pytest.mark.parametrize("rights", [everything, nothing])
def test_a_topic_that_no_id_leads_to_is_unknown_and_no_name_is_asked_for(
    rights: Rights, key: ApiKey, topic_id: bytes
) -> None:
    request = filled(key, ["orders"])
    request.topics[0].topic_id = topic_id
    audit = Audit(load(), "cluster", configure(stream=io.StringIO()))
    catalog = Catalog({"orders": 1})
    # The group may be read in any case: what is looked at are the topics.
    group_only = services(lambda o, t, n: rights(o, t, n) or t.name == "GROUP", catalog, audit)
    asked = group_only.rights(GATE[key], context(key, 1))
    verdict = check(request, asked, catalog)
    assert not verdict.request.topics
    [topic] = verdict.complete(APIS[key].response()).responses
    assert topic.topic_id == topic_id
    assert [entry.error_code for entry in topic.partitions] == [ErrorCode.UNKNOWN_TOPIC_ID]
