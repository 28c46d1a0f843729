"""Which questions two sets of rules can decide differently; to all others both say the same.

A proposal changes few of the ACLs of a cluster, and most questions need be decided only once.
"""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from aclbroker.acl.authorizer import ANY_RESOURCE
from aclbroker.acl.bindings import WILDCARD_PRINCIPAL, ResourceType
from aclbroker.acl.index import AclIndex
from aclbroker.pipeline.acls.ruleset import Ruleset
from aclbroker.pipeline.usage.grouping import encoded, numbered, tested, values

_RESOURCE: Final = ("resource_type", "resource_name")


class Difference:
    """What differs between the rules of a cluster before and after.

    A decision depends on the settings, on the ACLs of the principals who ask and of ``User:*``, and
    where a resource without ACLs is open to everyone, on whether it has any ACL at all.
    """

    def __init__(self, before: Ruleset, after: Ruleset) -> None:
        others = frozenset(before.acls) ^ frozenset(after.acls)
        self._is_of_settings = replace(before, acls=()) != replace(after, acls=())
        self._principals = {acl.principal for acl in others} - {WILDCARD_PRINCIPAL}
        # All that can change the decision on a resource for who has no ACL in `others`.
        self._of_everyone = AclIndex(
            acl
            for acl in others
            if acl.principal == WILDCARD_PRINCIPAL or before.allow_everyone_if_no_acl_found
        )

    def concerned(self, questions: pa.RecordBatch) -> NDArray[np.bool_]:
        """Tell of each of some questions of the cluster whether its decision can differ."""
        if self._is_of_settings:
            return np.ones(questions.num_rows, bool)
        found = self._of_principals(questions)
        if len(self._of_everyone):
            rest = np.flatnonzero(~found)
            found[rest] = self._on_resources(questions.select(_RESOURCE).take(pa.array(rest)))
        return found

    def _of_principals(self, questions: pa.RecordBatch) -> NDArray[np.bool_]:
        names = ("principal", "other_principals")
        columns = encoded(pa.table({name: questions[name] for name in names}))
        first = tested(columns["principal"], self._principals.__contains__)
        further = tested(
            columns["other_principals"],
            lambda names: not self._principals.isdisjoint(json.loads(names)),
        )
        return first | further

    def _on_resources(self, resources: pa.RecordBatch) -> NDArray[np.bool_]:
        table = encoded(pa.Table.from_batches([resources]))
        _, firsts, of_rows = np.unique(
            numbered(table, _RESOURCE), return_index=True, return_inverse=True
        )
        different = table.take(pa.array(firsts))
        pairs = zip(*(values(different[name]) for name in _RESOURCE), strict=True)
        found = np.fromiter((self._is_on(*pair) for pair in pairs), bool, len(firsts))
        return found[of_rows]

    def _is_on(self, resource_type: str | None, name: str | None) -> bool:
        if resource_type is None or name is None or name == ANY_RESOURCE:
            return True
        return self._of_everyone.has_match(ResourceType[resource_type], name)
