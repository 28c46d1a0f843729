"""The codes that are compared: those that refuse, and those that a case names."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from aclbroker.protocol.messages import ApiKey

REFUSALS: Final = frozenset((29, 30, 31, 53, 54, 65))
"""Topic, group, cluster and transactional id, no authorizer, delegation token."""

TOKEN_CODES: Final = frozenset(range(61, 67))
"""What an API of delegation tokens can say about tokens."""

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

    No code, of an entry that is missing, refuses nothing: an entry that is allowed may be there or
    not, as brokers hold different things.
    """
    if code is None:
        return 0
    refuses = code in REFUSALS or (key in TOKEN_KEYS and code in TOKEN_CODES)
    return code if refuses or code in named else 0
