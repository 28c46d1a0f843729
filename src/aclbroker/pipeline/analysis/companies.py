"""Which principals come together in sessions: nothing that concerns one company concerns another.

An ACL is for one principal, and counts in every session that has it. So what a session needs may be
granted to any of its principals, and each such grant may serve others who have that one, too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence


def companies(sessions: Iterable[Sequence[str]]) -> Mapping[str, str]:
    """Return for each principal of sessions of several the first one, in order, of its company.

    Two principals are of one company if they are in one session, or both with a third one.
    """
    of: dict[str, str] = {}

    def first(principal: str) -> str:
        found = of.setdefault(principal, principal)
        while found != of[found]:
            # What is on the way points further, so that the way is short the next time.
            of[principal] = of[found]
            principal, found = found, of[found]
        return found

    for session in sessions:
        if len(session) > 1:
            leaders = sorted({first(each) for each in session})
            for each in leaders[1:]:
                of[each] = leaders[0]
    return {principal: first(principal) for principal in of}
