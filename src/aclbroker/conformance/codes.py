"""The error codes that are compared: those that refuse, and those that a case names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from aclbroker.protocol.messages import ApiKey

REFUSALS: Final = frozenset((29, 30, 31, 53, 54, 65))
"""A refused topic, group, cluster or transactional id, a missing authorizer, a refused token."""

TOKEN_CODES: Final = frozenset(range(61, 67))
"""The codes with which the APIs of delegation tokens answer about tokens."""

TOKEN_KEYS: Final = frozenset(
    (
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
        ApiKey.DESCRIBE_DELEGATION_TOKEN,
    )
)


def refusal(key: ApiKey, code: int | None, named: Collection[int] = ()) -> int:
    """Return a code as it is compared: the code if it refuses or is one of ``named``, else 0.

    None, for an entry that is missing, becomes 0 as well: whether an allowed entry is there depends
    on the data of the broker.
    """
    if code is None:
        return 0
    refuses = code in REFUSALS or (key in TOKEN_KEYS and code in TOKEN_CODES)
    return code if refuses or code in named else 0
