"""Where a job writes: tables as Parquet, texts as files, below one directory or URL."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from broker.acl.bindings import AclBinding

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


class Output:
    """A directory, or a URL that Spark has a connector for. What is there by a name is replaced."""

    def __init__(self, spark: SparkSession, place: str) -> None:
        self._spark = spark
        self.place = place.rstrip("/")

    def table(self, name: str, rows: DataFrame) -> DataFrame:
        """Write a Parquet table and return it as it can be read back."""
        path = f"{self.place}/{name}"
        rows.write.mode("overwrite").option("compression", "zstd").parquet(path)
        return self._spark.read.parquet(path)

    def text(self, name: str, content: str) -> None:
        """Write a text file."""
        jvm: Any = self._spark._jvm
        path = jvm.org.apache.hadoop.fs.Path(f"{self.place}/{name}")
        filesystem = path.getFileSystem(self._spark._jsc.hadoopConfiguration())
        stream = filesystem.create(path, True)
        try:
            stream.write(content.encode())
        finally:
            stream.close()

    def acls(self, name: str, acls: Mapping[str, Iterable[AclBinding]]) -> dict[str, str]:
        """Write the ACLs of each cluster as a policy file (docs/policy.md); return the names."""
        raise NotImplementedError
