"""The ACLs that one side of a comparison has alone, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

import pyarrow as pa

from aclbroker.acl.bindings import AclBinding
from aclbroker.pipeline.acls.acl_table import acl_table
from aclbroker.pipeline.acls.acl_text import acl_text
from aclbroker.pipeline.analysis.difference import AclDifference

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FURTHER: Final = [pa.field(name, pa.string()) for name in ("change", "differs_in", "counterpart")]


def differences_frame(spark: SparkSession, found: Mapping[str, AclDifference]) -> DataFrame:
    """Return the ACLs that went and came in each cluster.

    ``change`` is ``removed`` or ``added``. Of one that changed, ``differs_in`` is the field in
    which the ``counterpart`` differs, the ACL that came or went with it; both are null for others.
    """

    def rows() -> Iterator[tuple[str, AclBinding, tuple[str | None, ...]]]:
        for cluster, each in found.items():
            to = {one.before: (one.field, acl_text(one.after)) for one in each.changed}
            of = {one.after: (one.field, acl_text(one.before)) for one in each.changed}
            for acl in each.removed:
                yield cluster, acl, ("removed", *to.get(acl, (None, None)))
            for acl in each.added:
                yield cluster, acl, ("added", *of.get(acl, (None, None)))

    return acl_table(spark, rows(), _FURTHER)
