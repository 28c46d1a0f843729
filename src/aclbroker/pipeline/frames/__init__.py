"""The data frames that jobs are written in, whatever computes them.

Their names are those of ``pyspark.sql``. They are Spark's own, or those of `pipeline.local`, which
has as much of them as the pipeline needs and decides small logs in this process. A job takes its
functions and types from here, and never from one of the two:

    from aclbroker.pipeline.frames import functions as F
    from aclbroker.pipeline.frames.types import StringType, StructField
"""

from __future__ import annotations

from aclbroker.pipeline.frames.engine import LOCAL, SPARK, Window, new_observation, use

__all__ = ["LOCAL", "SPARK", "Window", "new_observation", "use"]
