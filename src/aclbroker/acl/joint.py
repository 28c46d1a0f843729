"""Several sets of ACLs that decide together: a denial in any of them wins, else an ALLOW in any.

That is what one index of all of them decides. So each set has an index of its own, for lists and
for what is changed there, and all have a joint one, of which decisions are asked as of any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from aclbroker.acl.bindings import AclBinding, ResourcePattern
from aclbroker.acl.index import AclIndex

Watch = Callable[[AclBinding], None]
"""Is told of an ACL that was just added to a set, or removed from it."""


class PartIndex(AclIndex):
    """One of the sets of a joint index; what changes here has changed there as well.

    An ACL stays in the joint index until no set has it, and a pattern is withheld there until no
    set withholds it. Sets are made by `parts_of`.
    """

    def __init__(self, joint: AclIndex, *, cidr: bool = False) -> None:
        super().__init__(cidr=cidr)
        self._joint = joint
        self._others: Sequence[PartIndex] = ()
        self.watch: Watch | None = None

    def beside(self, others: Sequence[PartIndex]) -> None:
        """Take the other sets of the joint index."""
        self._others = others

    def add(self, binding: AclBinding) -> bool:
        """Add an ACL; return whether it is new to this set. Raises ValueError as `AclIndex.add`."""
        is_new = super().add(binding)
        if is_new:
            self._joint.add(binding)
            self._tell(binding)
        return is_new

    def add_all(self, bindings: Iterable[AclBinding]) -> None:
        """Add ACLs, each as `add` does."""
        for binding in bindings:
            self.add(binding)

    def remove(self, binding: AclBinding) -> bool:
        """Remove an ACL; return whether this set had it."""
        was_there = super().remove(binding)
        if was_there:
            if not any(binding in other for other in self._others):
                self._joint.remove(binding)
            self._tell(binding)
        return was_there

    def withhold(self, pattern: ResourcePattern) -> None:
        """Deny everybody what matches a pattern whose ACLs are not known in this set."""
        super().withhold(pattern)
        self._joint.withhold(pattern)

    def release(self, pattern: ResourcePattern) -> None:
        """Let the ACLs alone decide on a pattern again, as far as this set is concerned."""
        super().release(pattern)
        if not any(pattern in other.withheld for other in self._others):
            self._joint.release(pattern)

    def _tell(self, binding: AclBinding) -> None:
        if self.watch is not None:
            self.watch(binding)


def parts_of(joint: AclIndex, count: int, *, cidr: bool = False) -> list[PartIndex]:
    """Return so many empty sets of a joint index, which is empty, too, and changes by them alone.

    ``cidr`` is that of the joint index.
    """
    parts = [PartIndex(joint, cidr=cidr) for _ in range(count)]
    for part in parts:
        part.beside([other for other in parts if other is not part])
    return parts
