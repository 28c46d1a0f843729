"""Regions of requests as people read them: principals, hosts, operations and names.

All requests of a region are decided alike. A region is written as what it is of and without what,
and gives an example, which an authorizer can be asked about.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from aclbroker.acl.authorizer import Action
from aclbroker.acl.bindings import AclOperation, ResourceType
from aclbroker.acl.decisions import StandardAuthorizerData
from aclbroker.acl.reasoning.hosts import HostArea, HostCut
from aclbroker.acl.reasoning.names import Key, NamePattern, NameRegion, holds, pattern_of
from aclbroker.acl.reasoning.rules import Rules

_SOMEBODY = "User:anybody"


@dataclass(frozen=True, slots=True)
class Principals:
    """The named principals or, if ``is_everyone``, all but the named ones."""

    names: tuple[str, ...]
    is_everyone: bool = False

    def __contains__(self, principal: object) -> bool:
        """Tell whether somebody is of them."""
        return (principal in self.names) is not self.is_everyone

    def __str__(self) -> str:
        listed = ", ".join(self.names)
        if not self.is_everyone:
            return listed
        return f"everyone but {listed}" if self.names else "everyone"


class Request(NamedTuple):
    """One request that an authorizer can be asked about."""

    principal: str
    host: str
    operation: AclOperation
    resource_type: ResourceType
    name: str

    def is_allowed(self, rules: Rules, authorizer: StandardAuthorizerData | None = None) -> bool:
        """Ask an authorizer of the rules, by default a new one."""
        core = authorizer or rules.authorizer()
        session = rules.session(self.principal, self.host)
        return core.decide(session, Action(*self[2:])).allowed

    def __str__(self) -> str:
        return (
            f"{self.principal} from {self.host}: {self.operation.name} on "
            f"{self.resource_type.name} {self.name}"
        )


@dataclass(frozen=True, slots=True)
class Region:
    """Requests that are decided alike: of principals, from hosts, operations on names.

    ``mask`` is the set of hosts in terms of ``cut``, ``bits`` the operations by number. ``apart``
    has for some of the principals patterns in these names: what they request on such a name is not
    of the region, though others' requests are. Ask with ``in`` whether a request is.
    """

    principals: Principals
    cut: HostCut
    mask: int
    bits: int
    names: NameRegion
    apart: Mapping[str, Sequence[Key]] = field(default_factory=dict, hash=False)

    @property
    def hosts(self) -> tuple[HostArea, ...]:
        """The hosts."""
        return self.cut.areas(self.mask)

    @property
    def operations(self) -> tuple[AclOperation, ...]:
        """The operations, by number."""
        return tuple(each for each in AclOperation if self.bits >> each & 1)

    @property
    def is_at_any_host(self) -> bool:
        """Whether it is the same from every host."""
        return self.mask == self.cut.everywhere

    def exceptions(self) -> Iterator[tuple[str, NamePattern]]:
        """Yield those of the principals who are not meant on the names of a pattern, and it."""
        for principal, keys in self.apart.items():
            for key in keys:
                yield principal, pattern_of(key)

    def __contains__(self, request: object) -> bool:
        """Tell whether a request is of the region."""
        return (
            isinstance(request, Request)
            and request.resource_type == self.names.resource_type
            and bool(self.bits >> request.operation & 1)
            and request.principal in self.principals
            and request.name in self.names
            and not any(holds(key, request.name) for key in self.apart.get(request.principal, ()))
            and bool(self.mask & self.cut.at(request.host))
        )

    def example(self, named: Collection[str] = ()) -> Request | None:
        """Return a request of the region, None if no name is left for one: see `request`."""
        try:
            return self.request(named)
        except LookupError:
            return None

    def request(self, named: Collection[str] = ()) -> Request:
        """Return a request of the region.

        ``named`` are the principals that must not be taken for anybody else. Raises LookupError if
        no name is left, as more than a million patterns can bring about.
        """
        principal = self.principals.names[0] if not self.principals.is_everyone else _other(named)
        names = self.names_of(principal)
        name = names.example()
        if name is None:
            raise LookupError(f"the patterns leave no name in {names.pattern}")
        return Request(
            principal,
            self.cut.example(self.mask),
            # The lowest bit is the first operation.
            AclOperation((self.bits & -self.bits).bit_length() - 1),
            self.names.resource_type,
            name,
        )

    def names_of(self, principal: str) -> NameRegion:
        """Return the names on which the requests of one of the principals are of the region."""
        apart = self.apart.get(principal, ())
        return replace(self.names, excepted=(*self.names.excepted, *apart)) if apart else self.names

    @property
    def names_text(self) -> str:
        """The names in words, with those of which some of the principals are not meant."""
        without = ", ".join(f"{who} on {pattern}" for who, pattern in self.exceptions())
        if not without:
            return str(self.names)
        return f"{self.names}{', ' if self.names.excepted else ' but '}{without}"

    def __str__(self) -> str:
        hosts = "; ".join(map(str, self.hosts))
        operations = ", ".join(each.name for each in self.operations)
        return f"{self.principals}: {operations} on {self.names_text} from {hosts}"


def _other(named: Collection[str]) -> str:
    """Return a principal that is not named."""
    found = _SOMEBODY
    while found in named:
        found += "-else"
    return found
