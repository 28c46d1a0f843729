"""How the reason is found why a line is no event."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column
from pyspark.sql import functions as F


def first_failed(checks: Mapping[str, Column]) -> Column:
    """Return the key of the first check that is false or null; null if all are true."""
    found = F.when(F.lit(False), F.lit(""))
    for key, check in checks.items():
        found = found.when(~F.coalesce(check, F.lit(False)), F.lit(str(key)))
    return found
