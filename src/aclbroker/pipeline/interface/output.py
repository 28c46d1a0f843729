"""Where a job writes: tables as Parquet, texts as files, below one directory or URL."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from aclbroker.acl.bindings import AclBinding, invalid_reason
from aclbroker.pipeline.acls.by_principal import AclsByPrincipal, Changed, Grouped, every_change
from aclbroker.pipeline.acls.commands import script
from aclbroker.pipeline.acls.ruleset import Change
from aclbroker.pipeline.local.session import LocalSession
from aclbroker.pipeline.spark.files import local_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Output:
    """A directory, or a URL that Spark has a connector for, whose tables and files are replaced."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self.spark = spark
        self.place = place.rstrip("/")

    def table(self, name: str, rows: DataFrame, *, partition_by: Sequence[str] = ()) -> DataFrame:
        """Write a Parquet table and return it as it can be read back.

        ``partition_by``: columns whose values become directories, the first one outermost.
        """
        path = f"{self.place}/{name}"
        is_here = isinstance(self.spark, LocalSession)
        if is_here:
            # Its query is answered once, for the file and for who asks of the table.
            rows = rows.persist()
        writer = rows.write.mode("overwrite").option("compression", "zstd")
        # The whole table is replaced, not only the partitions that there are now.
        writer = writer.option("partitionOverwriteMode", "static")
        if partition_by:
            writer = writer.partitionBy(*partition_by)
        writer.parquet(path)
        if is_here and not partition_by:
            return self.spark.createDataFrame(rows.toArrow())
        # Without the schema, Spark would take the directory cluster=1 for a number.
        return self.spark.read.schema(rows.schema).parquet(path)

    def text(self, name: str, content: str | Iterable[str]) -> None:
        """Write a text file. The pieces of a ``content`` of several are not put together."""
        pieces = _pieces([content] if isinstance(content, str) else content)
        # What is wrong with the content shows at its beginning: the file is not touched then.
        first = next(pieces, b"")
        local = local_path(self.spark, f"{self.place}/{name}")
        if local is not None:
            local.parent.mkdir(parents=True, exist_ok=True)
            with local.open("wb") as file:
                file.writelines(chain([first], pieces))
            return
        jvm: Any = self.spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.place}/{name}")
        filesystem = path.getFileSystem(self.spark._jsc.hadoopConfiguration())
        stream = filesystem.create(path, True)
        try:
            for piece in chain([first], pieces):
                stream.write(piece)
        finally:
            stream.close()

    def acls(
        self,
        name: str,
        acls: Mapping[str, Iterable[AclBinding] | AclsByPrincipal],
        *,
        current: Mapping[str, Iterable[AclBinding]] | None = None,
    ) -> dict[str, str]:
        """Write the ACLs of each cluster for people and tools; return the names and what each is.

        ``NAME.yaml`` is a policy file (docs/policy.md) of the whole set, and ``NAME.sh`` has the
        commands of `kafka-acls.sh` that bring it about: they add what is not among the ``current``
        ACLs of the cluster, and remove what is among these but not in the set. Without ``current``
        they add everything and remove nothing. If there are several clusters, the names are
        ``NAME-CLUSTER.yaml`` and so on. Of sets by principal no more is held than one principal's
        ACLs. Raises ValueError for an ACL that no broker would create.
        """
        written: dict[str, str] = {}
        for cluster, wanted in acls.items():
            file = f"{name}-{quote(cluster, safe='')}" if len(acls) > 1 else name
            after = Grouped(wanted) if isinstance(wanted, Iterable) else wanted
            before = Grouped((current or {}).get(cluster, ()))
            counts = _checked(before, after)
            self.text(f"{file}.yaml", _policy(after, cluster))
            add, remove = Changed(before, after, "added"), Changed(before, after, "removed")
            adding, removing = counts["added"], counts["removed"]
            title = f"Cluster {cluster}: adds {adding} ACLs and removes {removing}."
            self.text(f"{file}.sh", script(title, add, remove))
            count = counts["kept"] + adding
            written[f"{file}.yaml"] = f"{count} ACLs of {cluster}, as a policy file"
            written[f"{file}.sh"] = (
                f"kafka-acls.sh commands for {cluster}: {adding} ACLs to add, {removing} to remove"
            )
        return written


def _checked(before: AclsByPrincipal, after: AclsByPrincipal) -> Counter[Change]:
    """Return how many ACLs of two sets are added, removed and kept.

    Raises ValueError for one of the new ones that no broker would create.
    """
    counts: Counter[Change] = Counter()
    for acl, change in every_change(before, after):
        reason = None if change == "removed" else invalid_reason(acl)
        if reason is not None:
            raise ValueError(reason)
        counts[change] += 1
    return counts


def _policy(acls: AclsByPrincipal, cluster: str) -> Iterator[str]:
    # Workers import this module with the jobs, and their Python need not have PyYAML.
    from aclbroker.acl.files.policy import policy_text_in_order

    in_order = ((each, acls.of(each)) for each in sorted(acls.principals))
    return policy_text_in_order(in_order, cluster)


_AT_ONCE: Final = 1 << 20
"""How many characters of a text are bytes at a time."""


def _pieces(texts: Iterable[str]) -> Iterator[bytes]:
    """Yield texts, one behind the other, as few pieces of bytes."""
    some: list[str] = []
    size = 0
    for text in texts:
        some.append(text)
        size += len(text)
        if size >= _AT_ONCE:
            yield "".join(some).encode()
            some, size = [], 0
    if some:
        yield "".join(some).encode()
