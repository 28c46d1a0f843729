"""A Kafka topic as a source of lines, one a record, through Spark's own connector."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from aclbroker.pipeline.frames import functions as F
from aclbroker.pipeline.ingest.sources import IngestError, no_piece

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_URL: Final = re.compile(r"kafka://(?P<servers>[^/]+)/(?P<topic>[A-Za-z0-9._-]+)")

# Spark keeps the lines of a batch on disk while it is worked on, so that it must be bounded.
_OPTIONS: Final = {"startingOffsets": "earliest", "maxOffsetsPerTrigger": "5000000"}


def is_topic(path: str) -> bool:
    """Tell whether an input is a topic, and no path."""
    return path.startswith("kafka://")


def topic_lines(spark: SparkSession, url: str, client: Mapping[str, str]) -> DataFrame:
    """Return the records of ``kafka://HOST:PORT[,HOST:PORT...]/TOPIC`` as a stream of lines.

    ``client`` are the properties of a Kafka client, such as ``security.protocol``. Raises
    IngestError for another URL, and if the connector is not there.
    """
    from pyspark.errors import AnalysisException

    match = _URL.fullmatch(url)
    if match is None:
        raise IngestError(f"{url}: expected kafka://HOST:PORT/TOPIC")
    options = _OPTIONS | {"subscribe": match["topic"], "kafka.bootstrap.servers": match["servers"]}
    options |= {f"kafka.{name}": value for name, value in client.items()}
    try:
        records = spark.readStream.format("kafka").options(**options).load()
    except AnalysisException as error:
        raise IngestError(
            f"{url}: Spark's Kafka connector is not there ({error.getCondition()}): add --spark "
            f"spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
        ) from error
    return records.select(
        F.col("value").cast("string").alias("line"),
        F.concat_ws("/", F.lit(url), "partition").alias("source_file"),
        F.lit(0).cast("long").alias("start"),
        *no_piece(),
    )
