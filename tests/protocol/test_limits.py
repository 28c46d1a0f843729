"""What a request may not have: too many entries, too many tagged fields. Answers may."""

from __future__ import annotations

from typing import Any

import pytest

from aclbroker.protocol.compile import decode, encode
from aclbroker.protocol.messages.api_versions import ApiVersionsRequest
from aclbroker.protocol.messages.delete_topics import DeleteTopicsRequest
from aclbroker.protocol.messages.describe_acls import DescribeAclsResource, DescribeAclsResponse
from aclbroker.protocol.messages.describe_groups import DescribeGroupsRequest
from aclbroker.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from aclbroker.protocol.primitives import MOST_ENTRIES, MOST_TAGS, ProtocolError


def test_a_request_may_have_many_entries_and_not_more() -> None:
    most = DescribeGroupsRequest([""] * MOST_ENTRIES)
    assert decode(DescribeGroupsRequest, 5, encode(most, 5)) == most
    more = DescribeGroupsRequest([""] * (MOST_ENTRIES + 1))
    with pytest.raises(ProtocolError, match=f"groups: .*more than {MOST_ENTRIES} entries"):
        decode(DescribeGroupsRequest, 5, encode(more, 5))


def test_entries_of_entries_count() -> None:
    topics = [OffsetFetchRequestTopics("t")] * (MOST_ENTRIES // 2)
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=topics)] * 2)
    with pytest.raises(ProtocolError, match="entries"):
        decode(OffsetFetchRequest, 9, encode(request, 9))


def test_numbers_count() -> None:
    """Each can be answered with an entry that has an error message."""
    most = OffsetFetchRequestTopics("t", partition_indexes=list(range(MOST_ENTRIES - 2)))
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup("g", topics=[most])])
    decoded = decode(OffsetFetchRequest, 9, encode(request, 9))
    assert decoded.groups[0].topics[0].partition_indexes == most.partition_indexes
    most.partition_indexes = [*most.partition_indexes, 0]
    with pytest.raises(ProtocolError, match=r"partition_indexes: .*entries"):
        decode(OffsetFetchRequest, 9, encode(request, 9))


def test_an_answer_may_have_any_number_of_entries() -> None:
    resources = [DescribeAclsResource(2, f"topic-{n}", 3) for n in range(MOST_ENTRIES + 1)]
    data = encode(DescribeAclsResponse(resources=resources), 3)
    decoded = decode(DescribeAclsResponse, 3, data).resources
    assert [each.resource_name for each in decoded] == [each.resource_name for each in resources]


@pytest.mark.parametrize("cls", [ApiVersionsRequest, DeleteTopicsRequest])
def test_a_struct_may_have_many_tagged_fields_and_not_more(cls: type) -> None:
    version = 3 if cls is ApiVersionsRequest else 6
    message: Any = cls() if cls is ApiVersionsRequest else cls([])
    message.unknown_tags = tuple((1000 + number, b"") for number in range(MOST_TAGS))
    assert decode(cls, version, encode(message, version)) == message
    message.unknown_tags += ((1, b""),)
    with pytest.raises(ProtocolError, match=f"{MOST_TAGS + 1} tagged fields .*{MOST_TAGS} are"):
        decode(cls, version, encode(message, version))
