"""Questions about one request that name no address: where it then comes from, and how to say it."""

from __future__ import annotations

from typing import Final, NamedTuple

from aclbroker.acl.bindings import WILDCARD_PRINCIPAL
from aclbroker.acl.reasoning.hosts import HostCut
from aclbroker.acl.reasoning.rules import Rules

_MOST_NAMED: Final = 3
"""How many hosts are named that are left out."""


class Elsewhere(NamedTuple):
    """An address that stands for many, and in words which these are."""

    address: str
    text: str


def elsewhere(rules: Rules, principal: str, here: Rules) -> Elsewhere:
    """Return an address of which no ACL of somebody's speaks, and what it stands for.

    ``here`` are those of the rules that decide on the question. It stands for all addresses but
    those that their ACLs for the principal name; if they name all there are, it is one of these.
    """
    cut = _cut(here, principal)
    if cut.other is None:
        address = cut.example(cut.everywhere)
        return Elsewhere(address, address)
    # It is none that other ACLs name either, or these would seem to be nearly about the request.
    return Elsewhere(_cut(rules, principal).other or cut.other, _text(cut))


def _cut(rules: Rules, principal: str) -> HostCut:
    principals = {*rules.principals_of(principal), WILDCARD_PRINCIPAL}
    return HostCut({acl.host for acl in rules.acls if acl.principal in principals}, rules.cidr)


def _text(cut: HostCut) -> str:
    [area] = cut.areas(cut.at(str(cut.other)))
    named = area.exceptions[:_MOST_NAMED]
    more = len(area.exceptions) - len(named)
    listed = ", ".join(named) + (f" and {more} more" if more else "")
    return f"any host but {listed}" if named else "any host"
