"""The groups that an access token names in a claim of it (`aclbroker.oauthbearer.groups.claim`).

A group that is passed over could be one that an ACL denies something: a claim that cannot be taken
whole refuses the token.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Any, Final

from aclbroker.acl.groups import GROUP, MOST_GROUPS, invalid_group

_ELSEWHERE: Final = "_claim_names"
"""Where a token has the claims that its issuer left out (OpenID Connect Core 5.6.2).

Entra ID does so with the groups of somebody who is in more than 200.
"""


class InvalidGroups(ValueError):
    """The groups cannot be taken; the text says why, and has no part of the token."""


def claimed_groups(claims: Mapping[str, Any], name: str | None) -> tuple[str, ...]:
    """Return the principals of the groups in a claim, sorted; a claim that is not there has none.

    The claim is an array of strings, or one string, which is one group. Raises `InvalidGroups`.
    """
    if name is None:
        return ()
    claim = f"the groups claim {name!r}"
    value = claims.get(name)
    if value is None:
        elsewhere = claims.get(_ELSEWHERE)
        if isinstance(elsewhere, dict) and name in elsewhere:
            raise InvalidGroups(f"{claim} was left out by the issuer, as {_ELSEWHERE} tells")
        return ()
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise InvalidGroups(f"{claim} is not a string or an array of strings")
    if len(names) > MOST_GROUPS:
        raise InvalidGroups(f"{claim} has {len(names):,} groups; {MOST_GROUPS:,} are allowed")
    for number, each in enumerate(names, 1):
        reason = invalid_group(each) if isinstance(each, str) else "not a string"
        if reason is not None:
            raise InvalidGroups(f"{claim}, entry {number}: {reason}")
    # Interned, since many sessions are in the same groups.
    return tuple(sorted({sys.intern(GROUP + each) for each in names}))
