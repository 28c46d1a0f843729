"""What becomes of the ACLs that principals have, told in tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.pipeline.acls.acl_table import ACL_COLUMNS, acl_values
from aclbroker.pipeline.acls.by_principal import unpacked_acls
from aclbroker.pipeline.acls.ruleset import changes
from aclbroker.pipeline.jobs.recommend.known import Known
from aclbroker.pipeline.jobs.recommend.pieces import in_batches
from aclbroker.pipeline.usage.table import Batches

if TYPE_CHECKING:
    from pyspark import Broadcast

CHANGE_COLUMNS: Final = ACL_COLUMNS.append(pa.field("change", pa.string()))
"""The columns of the table of what becomes of each ACL."""


def changes_of(known: Broadcast[Known], batches: Batches) -> Batches:
    """Yield what becomes of each ALLOW of those who have recommended ones, for all `ALLOWS`."""
    for batch in batches:
        for row in batch.to_pylist():
            cluster = known.value.cluster(row["cluster"])
            before = () if cluster is None else cluster.allows.of(row["principal"])
            after = unpacked_acls(row["principal"], row["packed"])
            yield from in_batches(
                CHANGE_COLUMNS,
                (
                    (*acl_values(row["cluster"], acl), change)
                    for acl, change in changes(before, after)
                ),
            )
