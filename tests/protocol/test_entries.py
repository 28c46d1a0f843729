"""A message put together of entries encoded before has the bytes of the message encoded whole."""

from __future__ import annotations

import pytest

from aclbroker.protocol.compile import encode
from aclbroker.protocol.compile.entries import encode_with_entries, entry_encoder
from aclbroker.protocol.messages import APIS, ApiKey
from aclbroker.protocol.messages.api_versions import ApiVersionsResponse
from aclbroker.protocol.messages.describe_acls import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)

ACLS = [AclDescription("User:a", "*", 3, 3), AclDescription("User:é", "", 4, 2)]


@pytest.mark.parametrize("version", APIS[ApiKey.DESCRIBE_ACLS].versions)
@pytest.mark.parametrize("count", [0, 1, 127, 128, 20_000])
def test_entries_encoded_before_make_the_same_message(version: int, count: int) -> None:
    resources = [DescribeAclsResource(2, f"t-{n}", 3, ACLS[n % 3 :]) for n in range(count)]
    whole = DescribeAclsResponse(7, 0, "text", resources)
    entries = [entry_encoder(DescribeAclsResponse, version)(each) for each in resources]
    without = DescribeAclsResponse(7, 0, "text")
    assert bytes(encode_with_entries(without, version, entries)) == encode(whole, version)


def test_a_message_that_does_not_end_in_an_array_of_structs_has_no_entries() -> None:
    with pytest.raises(TypeError, match="ApiVersionsResponse"):
        entry_encoder(ApiVersionsResponse, 3)
